"""What the node's PID 1 is told to do: the message from the owner to reaper and node."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path


class Gate(StrEnum):
    """What a component may wait for before it is started: that another one answers."""

    CONTAINERD = "containerd"
    ETCD = "etcd"
    API_ANSWERS = "api-answers"
    API_READY = "api-ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One process of the node.

    Attributes:
        gates: what it waits for, all of them.
        passing: it does one job and ends with 0; any other end is the node's end.
    """

    name: str
    argv: tuple[str, ...]
    gates: tuple[Gate, ...] = ()
    passing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that reaper and node need to know.

    Attributes:
        state, logs: see `layout.Layout`.
        link: name of the host's end of the veth pair.
        sources: addresses with prefix length for the host's end.
        node_address: address with prefix length for the node's end.
        node_name: host name of the node.
        service_range: gets an on-link route in the node, else its own processes
            could not reach a ClusterIP, for want of a default route.
        pod_range: what is masqueraded when it leaves the node.
        cgroup: the cluster's own root, relative to every hierarchy.
        kept: folders that the node must see although it hides what lies around them.
        volatile: name of a folder below `state` that must be a tmpfs, or empty.
        components: in the order of their start.
    """

    state: str
    logs: str
    link: str
    sources: tuple[str, ...]
    node_address: str
    node_name: str
    service_range: str
    pod_range: str
    cgroup: str
    kept: tuple[str, ...]
    volatile: str
    components: tuple[Component, ...]

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def read_plan(path: Path) -> Plan:
    """Read what `Plan.write` wrote."""
    document = json.loads(path.read_text())
    components = tuple(
        Component(
            name=entry["name"],
            argv=tuple(entry["argv"]),
            gates=tuple(map(Gate, entry["gates"])),
            passing=entry["passing"],
        )
        for entry in document.pop("components")
    )
    sources, kept = (tuple(document.pop(name)) for name in ("sources", "kept"))
    return Plan(components=components, sources=sources, kept=kept, **document)
