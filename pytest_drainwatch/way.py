"""The way from the flow agent to the probe: from where, to which address and ports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_drainwatch import outside, via
from pytest_drainwatch.core.scenario import Access
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.workload import client, probe


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Where the agent runs, the addresses that it has there, and what it connects to."""

    command: Callable[[Sequence[str]], list[str]]
    sources: tuple[str, ...]  # empty: the system chooses
    address: str
    tcp: int
    udp: int
    note: str | None = None
    node: str | None = None  # whose NodePort the address is; None: not known, or nobody's
    other_nodes: tuple[tuple[str, str], ...] = ()  # name and address of each

    def source(self, number: int) -> str | None:
        """The address of the flows (0) or of a prober (from 1 on), as far as there are so many."""
        return self.sources[min(number, len(self.sources) - 1)] if self.sources else None

    def told(self) -> dict[str, object]:
        """As a recording holds it."""
        return {
            "address": self.address,
            "tcp_port": self.tcp,
            "udp_port": self.udp,
            "sources": list(self.sources),
            "note": self.note,
            "node": self.node,
        }


def find(stage: Stage, ports: probe.Ports) -> Way:
    """The way that the scenario asks for; makes a client pod if that lies in the cluster.

    Raises ClusterError, ClientFailed or TrialVoid if there is none.
    """
    cluster = stage.cluster
    access = stage.scenario.service.access
    if access is not Access.CLUSTER_IP:
        address = outside.address(stage)
        by_node = cluster.node_addresses if access is Access.NODE_PORT else {}
        return Way(
            command=cluster.agent_command,
            sources=tuple(cluster.source_addresses),
            address=address,
            tcp=outside.port(stage, ports.tcp),
            udp=outside.port(stage, ports.udp),
            node=via.entered(by_node, address),
            other_nodes=via.others(by_node, address),
        )
    seat = cluster.enter_pod(client.apply(stage.api, stage.place, stage.image))
    assert ports.address is not None, "a Service that is reached by its ClusterIP has one"
    return Way(
        command=seat.command,
        sources=seat.addresses,
        address=ports.address,
        tcp=ports.tcp,
        udp=ports.udp,
        note=seat.note,
    )
