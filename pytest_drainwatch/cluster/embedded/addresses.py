"""Which addresses, link and names a cluster's slot stands for. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

# RFC 2544's range for benchmarks: neither private nor routed, so it meets nobody's network.
RANGE = IPv4Network("198.18.0.0/15")
BLOCK_BITS = 28
SLOTS = 256

POD_RANGE = IPv4Network("10.244.0.0/16")
SERVICE_RANGE = IPv4Network("10.96.0.0/16")

MOST_NODES = 5

_FIRST_SOURCE = 1
# One for the flows, one for a prober of UDP, and one for a prober at each node.
_SOURCES = 2 + MOST_NODES
_FIRST_NODE = _FIRST_SOURCE + _SOURCES


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The addresses of one slot: some on the host's side, room for seven nodes."""

    slot: int

    def __post_init__(self) -> None:
        if not 0 <= self.slot < SLOTS:
            raise ValueError(f"slot is {self.slot}: expected 0 to {SLOTS - 1}")

    @property
    def network(self) -> IPv4Network:
        size = 2 ** (32 - BLOCK_BITS)
        return IPv4Network((int(RANGE.network_address) + self.slot * size, BLOCK_BITS))

    @property
    def sources(self) -> tuple[IPv4Address, ...]:
        """Addresses on the host's side. Several, so that a prober does not use up the
        allowance of ICMP errors that the kernel grants to each address (FACTS K13)."""
        first = self.network.network_address + _FIRST_SOURCE
        return tuple(first + index for index in range(_SOURCES))

    @property
    def node(self) -> IPv4Address:
        """The first node's, which has the control plane."""
        return self.node_at(0)

    def node_at(self, index: int) -> IPv4Address:
        """The address of node *index*, from 0."""
        if not 0 <= index < MOST_NODES:
            raise ValueError(f"node is {index}: expected 0 to {MOST_NODES - 1}")
        return self.network.network_address + _FIRST_NODE + index

    def node_name(self, index: int) -> str:
        """The host name of node *index*, which is its name in Kubernetes."""
        return f"dw-node-{self.slot}" + (f"-{index + 1}" if index else "")

    @property
    def link(self) -> str:
        """Name of the host's end of the pair that leads to the nodes."""
        return f"dwh{self.slot}"


def pod_range(node_index: int) -> IPv4Network:
    """The pods' range of one node."""
    return list(POD_RANGE.subnets(new_prefix=24))[node_index]
