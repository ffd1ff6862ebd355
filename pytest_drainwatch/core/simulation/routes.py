"""Who sends new connections to the pod, until when, and how long their requests take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.simulation.inputs import Inputs

EVERY_NS = NS_PER_S
LOAD_BALANCER = "load balancer"
POOLED = "pooled client"
# Percent of the longest request: what the requests of a source take, in turn.
PATTERN = (1, 10, 25, 100)
# The nodes open theirs one after the other in the half second before.
LOAD_BALANCER_PHASE_NS = EVERY_NS // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One source. It opens a connection at ``phase_ns`` of every second, before ``until_ns``;
    ``turn`` is where in the pattern its first request since the deletion stands.
    """

    source: str
    until_ns: int
    phase_ns: int
    turn: int


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it was meant: nothing of its fate."""

    source: str
    start_ns: int
    takes_ns: int


def routes(inputs: Inputs) -> tuple[Route, ...]:
    """The nodes, fastest first, and then the load balancer."""
    count = inputs.nodes
    found = [
        Route(
            source=f"node {n + 1}",
            until_ns=inputs.propagation_ns * (n + 1) // count,
            phase_ns=LOAD_BALANCER_PHASE_NS * n // count,
            turn=n % len(PATTERN),
        )
        for n in range(count)
    ]
    if inputs.load_balancer_ns is not None:
        found.append(
            Route(
                source=LOAD_BALANCER,
                until_ns=inputs.load_balancer_ns,
                phase_ns=LOAD_BALANCER_PHASE_NS,
                turn=0,
            )
        )
    return tuple(found)


def sent(route: Route, longest_ns: int) -> Iterator[Sent]:
    """Its requests in order: those that the deletion finds in flight, and those after it."""
    second = -(longest_ns // EVERY_NS) - 1
    while (start_ns := second * EVERY_NS + route.phase_ns) < route.until_ns:
        takes_ns = longest_ns * PATTERN[(second + route.turn) % len(PATTERN)] // 100
        if start_ns >= 0 or start_ns + takes_ns > 0:
            yield Sent(route.source, start_ns, takes_ns)
        second += 1
