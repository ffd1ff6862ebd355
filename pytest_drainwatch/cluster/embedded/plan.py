"""What reaper and nodes are told to do: the message from the owner to them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any


class Gate(StrEnum):
    """What a component may wait for before it is started: that another one answers."""

    CONTAINERD = "containerd"
    ETCD = "etcd"
    API_ANSWERS = "api-answers"
    API_READY = "api-ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One process of a node.

    Attributes:
        gates: what it waits for, all of them.
        passing: it does one job and ends with 0; any other end is the node's end.
        control_plane: only the first node has it.
    """

    name: str
    argv: tuple[str, ...]
    gates: tuple[Gate, ...] = ()
    passing: bool = False
    control_plane: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """Everything that the PID 1 of one node needs to know.

    Attributes:
        state, logs: of this node alone, see `layout.Layout`.
        name: host name of the node.
        address: with prefix length, of the node's end of its link.
        routes: pod range and address of every other node.
        service_range: gets an on-link route in the node, else its own processes
            could not reach a ClusterIP, for want of a default route.
        pod_range: of this node; masqueraded when it leaves for other places than pods.
        pods: the range of the pods of all nodes.
        api: where the API server answers, as seen from the node.
        pki: folder with the certificate by which the gates ask it.
        cgroup: the node's own root, relative to every hierarchy.
        kept: folders that the node must see although it hides what lies around them.
        volatile: name of a folder below `state` that must be a tmpfs, or empty.
        components: in the order of their start.
    """

    state: str
    logs: str
    name: str
    address: str
    routes: tuple[tuple[str, str], ...]
    service_range: str
    pod_range: str
    pods: str
    api: str
    pki: str
    cgroup: str
    kept: tuple[str, ...]
    volatile: str
    components: tuple[Component, ...]

    def waits_for(self, gate: Gate) -> bool:
        """Whether any component waits for it."""
        return any(gate in component.gates for component in self.components)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that the reaper needs to know.

    Attributes:
        state, logs: of the cluster, see `layout.Layout`.
        link: name of the host's end of the veth pair.
        sources: addresses with prefix length for the host's end.
        cgroup: the cluster's own root, relative to every hierarchy; those of its nodes are
            in it, or are it.
        nodes: one or more; the first has the control plane.
    """

    state: str
    logs: str
    link: str
    sources: tuple[str, ...]
    cgroup: str
    nodes: tuple[NodePlan, ...]

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def read_plan(path: Path) -> Plan:
    """Read what `Plan.write` wrote. Raises ValueError if it is no such plan."""
    document = json.loads(path.read_text())
    try:
        sources = tuple(document.pop("sources"))
        nodes = tuple(map(_node, document.pop("nodes")))
        return Plan(sources=sources, nodes=nodes, **document)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no plan of this version: {error!r}") from error


def _node(document: dict[str, Any]) -> NodePlan:
    components = tuple(
        Component(
            name=entry["name"],
            argv=tuple(entry["argv"]),
            gates=tuple(map(Gate, entry["gates"])),
            passing=entry["passing"],
            control_plane=entry["control_plane"],
        )
        for entry in document.pop("components")
    )
    routes = tuple((pods, via) for pods, via in document.pop("routes"))
    kept = tuple(document.pop("kept"))
    return NodePlan(components=components, routes=routes, kept=kept, **document)
