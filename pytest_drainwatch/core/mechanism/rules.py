"""kube-proxy's rules: which lines are about a Service, and what they do to new connections.

Two steps, because only lines about the Service are recorded: :func:`lines_about` picks
them, each readable on its own, and :func:`effects` says what they do. An established
connection meets neither: conntrack remembers where it was led.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pytest_drainwatch.core.mechanism import iptables, nftables
from pytest_drainwatch.core.mechanism.step import Step

MAX_LINES = 80
MAX_LENGTH = 300
CUT = " …"

_PICK: dict[str, Callable[[str, str], list[str]]] = {
    "iptables": iptables.lines_about,
    "nftables": nftables.lines_about,
}
_READ: dict[str, Callable[[str], Step | None]] = {
    "iptables": iptables.step,
    "nftables": nftables.step,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What the rules do to a new connection from outside to one port of the Service.

    The port is that of the ClusterIP or the node port. ``endpoints`` are the addresses
    that it may be led to; ``rejects`` or ``drops``: a rule answers for them or swallows it.
    """

    proto: str
    port: int
    endpoints: tuple[str, ...]
    rejects: bool
    drops: bool


def known(mode: str) -> bool:
    """Whether the rules of that mode of kube-proxy can be read."""
    return mode in _PICK


def lines_about(mode: str, listing: str, service: str) -> tuple[list[str], int]:
    """The lines about ``service`` (namespace/name), and how many are left out.

    Raises :class:`KeyError` for a mode that is not :func:`known`.
    """
    found = [
        line if len(line) <= MAX_LENGTH else line[: MAX_LENGTH - len(CUT)] + CUT
        for line in _PICK[mode](listing, service)
    ]
    return found[:MAX_LINES], max(0, len(found) - MAX_LINES)


def effects(mode: str, lines: Iterable[str]) -> tuple[Effect, ...] | None:
    """What recorded lines do, by transport and port.

    None for an unknown mode, and if a line was cut: it may have led to more endpoints.
    """
    lines = tuple(lines)
    if not known(mode) or any(line.endswith(CUT) for line in lines):
        return None
    steps = [step for line in lines if (step := _READ[mode](line)) is not None]
    chains: dict[str, list[Step]] = {}
    entrances: dict[tuple[str, int], list[Step]] = {}
    for step in steps:
        chains.setdefault(step.chain, []).append(step)
        if step.entrance is not None:
            entrances.setdefault(step.entrance, []).append(step)
    return tuple(
        _effect(proto, port, entrances[proto, port], chains) for proto, port in sorted(entrances)
    )


def _effect(proto: str, port: int, first: list[Step], chains: dict[str, list[Step]]) -> Effect:
    """Follow the rules from their entrance: a chain that nothing leads to does nothing."""
    met, ahead, passed = list[Step](), list(first), set[str]()
    while ahead:
        step = ahead.pop()
        met.append(step)
        for chain in step.jumps:
            if chain not in passed:
                passed.add(chain)
                ahead += chains.get(chain, [])
    return Effect(
        proto=proto,
        port=port,
        endpoints=tuple(sorted({address for step in met for address in step.serves})),
        rejects=any(step.rejects for step in met),
        drops=any(step.drops for step in met),
    )
