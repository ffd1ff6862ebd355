"""What the load balancer in front of the nodes did with a target pod's node.

It asks nodes, and not pods: it goes on sending new connections to a node until that has failed
its health checks, whatever the slice says of the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import Bounds, Interval, bounds
from pytest_drainwatch.core.jsonvalue import integer_or_none
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.pieces import Tried
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.windows.document import BalancerWindow, Span
from pytest_drainwatch.core.windows.met import Attempts

NO_NODE = "the slices do not say on which node the pod is"
NOT_SEEN = "its state at t = 0 was not seen"
STILL_UP = "it held the node healthy until the recording ended"
WAS_DOWN = "it did not hold the node healthy at t = 0"


def balanced(
    seen: Iterable[Observation],
    uid: str,
    node: str | None,
    tried: Sequence[Tried],
    t0_ns: int,
) -> BalancerWindow | None:
    """That of the pod ``uid``, which runs on ``node``; None: there was no load balancer."""
    seen = tuple(seen)
    if not any(o.event is Event.BALANCER_STARTED for o in seen):
        return None
    last = bounds(_last_answered(tried, uid, t0_ns))
    if node is None:
        return BalancerWindow(sends=Span(opens_ns=None, note=NO_NODE), last_answered_ns=last)
    changes = [o for o in seen if o.event is Event.BALANCER_SERVER and o.subject == node]
    since = [o for o in changes if o.at.hi > t0_ns]
    down = next((o for o in since if o.data.get("up") is False), None)
    again = [o for o in since if down and o.data.get("up") is True and o.at.lo >= down.at.hi]
    let_go = [
        o
        for o in seen
        if o.event is Event.BALANCER_DEREGISTERED and o.subject == node and o.at.hi > t0_ns
    ]
    sends = _span([o for o in changes if o.at.hi <= t0_ns], down, t0_ns)
    attempts = Attempts.of(tried)
    if attempts is not None:
        # What the balancer does was looked at throughout: no gap hides it.
        sends = replace(sends, met=attempts.met(sends, (), t0_ns))
    return BalancerWindow(
        sends=sends,
        again_ns=_since(again, t0_ns),
        last_answered_ns=last,
        let_go_ns=_since(let_go, t0_ns),
        closed=integer_or_none(let_go[0].data.get("sessions")) if let_go else None,
    )


def _span(before: Sequence[Observation], down: Observation | None, t0_ns: int) -> Span:
    """From t = 0 until the node was held unhealthy."""
    up = before[-1].data.get("up") if before else None
    if up is not True:
        return Span(opens_ns=None, note=NOT_SEEN if up is None else WAS_DOWN)
    if down is None:
        return Span(opens_ns=(0, 0), note=STILL_UP)
    closes = down.at.since(t0_ns)
    return Span(opens_ns=(0, 0), closes_ns=(closes.lo, closes.hi), lasts_ns=(closes.lo, closes.hi))


def _since(found: Sequence[Observation], t0_ns: int) -> Bounds | None:
    return bounds(found[0].at.since(t0_ns)) if found else None


def _last_answered(tried: Iterable[Tried], uid: str, t0_ns: int) -> Interval | None:
    """From the beginning of the last new connection that the pod answered to its answer."""
    ends = list(_answered(tried, uid))
    return max(ends, key=lambda at: at.hi).since(t0_ns) if ends else None


def _answered(tried: Iterable[Tried], uid: str) -> Iterator[Interval]:
    for each in tried:
        if each.prober.proto is Proto.TCP:
            for piece in each.pieces:
                if piece.fate is Result.ANSWERED and piece.run.responder == uid:
                    yield piece.ended
