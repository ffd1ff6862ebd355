"""When the client itself could not look: stalls, and what they forbid to say.

A stall is a fact about the instrument. What it saw while it was stalled happened
at some time during the stall; what it did *not* see then says nothing about the
workload. So an interval that overlaps a stall reaches back to the stall's start, and
silence counts only as far as somebody listened.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_drainwatch.core.interval import Bounds, Interval, merged
from pytest_drainwatch.core.observation import Event, Observation

# What a busy machine does to us. A suspended one, or a CPU quota, is another matter.
BUSY = frozenset({Event.AGENT_STALLED, Event.WATCHER_STALLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalls:
    """The client's stalls, in order and without overlap.

    ``paused`` are stretches in which the agent did not run, whatever the reason: a CPU
    quota (AGENT_THROTTLED) is one, and each pause that it makes is here with its own
    bounds. ``suspended`` are those in which the machine slept: CLOCK_MONOTONIC stood
    still, so a peer elsewhere saw a silence of unknown length.
    """

    paused: tuple[Interval, ...] = ()
    suspended: tuple[Interval, ...] = ()

    def paused_ns(self, within: Interval) -> int:
        """For how long of ``within`` the agent did not run, at most."""
        parts = (within.intersect(pause) for pause in _overlapping(self.paused, within))
        return sum(part.width for part in parts if part is not None)

    def blind(self, within: Interval, *, asleep: bool) -> tuple[Interval, ...]:
        """The stretches that reach into ``within``: of the agent's pauses, or (``asleep``) of
        the machine's sleep alone.
        """
        return _overlapping(self.suspended if asleep else self.paused, within)

    def widen(self, at: Interval) -> Interval:
        """``at`` back to the start of the stall that it overlaps.

        Its upper end stays: by then the event was known.
        """
        pauses = _overlapping(self.paused, at)
        return Interval(min(at.lo, pauses[0].lo), at.hi) if pauses else at

    def delayed(self, at: Interval) -> Interval:
        """``at`` forward to the end of the stall that it overlaps.

        For what we do ourselves: a send whose stamp is followed by a stall may have gone
        out at its end.
        """
        pauses = _overlapping(self.paused, at)
        return Interval(at.lo, max(at.hi, pauses[-1].hi)) if pauses else at

    def slept(self, at: Interval) -> bool:
        """Whether the machine was suspended somewhere in ``at``."""
        return bool(_overlapping(self.suspended, at))


NO_STALLS = Stalls()


def stalls_of(seen: Iterable[Observation]) -> Stalls:
    """The stalls that a recording tells of."""
    seen = tuple(seen)
    return Stalls(
        paused=merged(o.at for o in seen if o.event is Event.AGENT_STALLED),
        suspended=merged(o.at for o in seen if o.event is Event.HOST_SUSPENDED),
    )


def reaches_measured(at_ns: Bounds, settle_ns: int) -> bool:
    """Whether a stall (ns since the trigger) reaches into the part that is measured.

    That begins with the settle time. What holds an agent up before, such as the start of
    another worker's cluster, is in no figure.
    """
    return at_ns[1] > -settle_ns


def _overlapping(stretches: tuple[Interval, ...], at: Interval) -> tuple[Interval, ...]:
    if not stretches:
        return stretches
    first = bisect_left(stretches, at.lo, key=lambda stretch: stretch.hi)
    last = first
    while last < len(stretches) and stretches[last].lo <= at.hi:
        last += 1
    return stretches[first:last]
