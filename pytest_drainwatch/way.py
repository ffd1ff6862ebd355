"""The way from the flow agent to the probe: from where, to which address and ports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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

    def source(self, number: int) -> str | None:
        """The address of the flows (0) or of a prober (1, 2), as far as there are so many."""
        return self.sources[min(number, len(self.sources) - 1)] if self.sources else None


def find(stage: Stage, ports: probe.Ports) -> Way:
    """The way that the scenario asks for; makes a client pod if that lies in the cluster.

    Raises ClusterError or ClientFailed if there is none.
    """
    cluster = stage.cluster
    if stage.scenario.service.access is Access.NODE_PORT:
        return Way(
            command=cluster.agent_command,
            sources=tuple(cluster.source_addresses),
            address=cluster.node_address,
            tcp=ports.tcp,
            udp=ports.udp,
        )
    seat = cluster.enter_pod(client.apply(stage.api, stage.namespace, stage.image))
    assert ports.address is not None, "a Service that is reached by its ClusterIP has one"
    return Way(
        command=seat.command,
        sources=seat.addresses,
        address=ports.address,
        tcp=ports.tcp,
        udp=ports.udp,
        note=seat.note,
    )
