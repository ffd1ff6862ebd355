"""What the nodes of somebody else's cluster say of themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_KEEPS_AWAY = frozenset({"NoSchedule", "NoExecute"})
# What a cordon comes with. It goes a moment after the node was uncordoned, whose word counts.
CORDONED = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Nodes by name, with the addresses where their NodePorts answer.

    Attributes:
        seen: how many there are; `None`: they may not be listed.
        taking: how many take pods.
        addresses: of those that take pods and have an InternalIP.
        first: the address to connect to: of one that takes pods, or else of any.
    """

    seen: int | None = None
    taking: int | None = None
    addresses: Mapping[str, str]
    first: str | None = None


NOT_LISTED = Nodes(addresses={})


def read(items: Sequence[Any]) -> Nodes:
    """Reduce a list of Node objects."""
    takers = [node for node in items if takes_pods(node)]
    by_name = sorted((str(node.metadata.name), internal_address(node)) for node in takers)
    addresses = {name: address for name, address in by_name if address}
    anywhere = filter(None, map(internal_address, items))
    return Nodes(
        seen=len(items),
        taking=len(takers),
        addresses=addresses,
        first=next(iter(addresses.values()), None) or next(anywhere, None),
    )


def takes_pods(node: Any) -> bool:
    """Ready, not cordoned, and without a taint that keeps pods away."""
    spec, conditions = node.spec, node.status.conditions or ()
    ready = any(c.type == "Ready" and c.status == "True" for c in conditions)
    taints = (taint for taint in spec.taints or () if taint.key != CORDONED)
    tainted = any(taint.effect in _KEEPS_AWAY for taint in taints)
    return ready and not spec.unschedulable and not tainted


def internal_address(node: Any) -> str:
    """Its InternalIP; empty if it has none."""
    for address in node.status.addresses or ():
        if address.type == "InternalIP":
            return str(address.address)
    return ""
