"""For how long something was so, by the slices of the Service.

Each frame is a snapshot, so a stretch lasts from the first that shows it to the first that
does not any more. What is undone later ends one stretch, and another begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.blind import Blind
from pytest_drainwatch.core.endpoints import Snapshot
from pytest_drainwatch.core.interval import Interval

# What must have preceded the end that a snapshot shows; None: not known.
Cause = Callable[[Snapshot], int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A stretch that reaches past t = 0, on the harness's clock.

    ``opens`` is None if it was so at t = 0, and ``closes`` if it was still so at the end.
    """

    opens: Interval | None
    closes: Interval | None

    @property
    def lasts(self) -> Interval | None:
        """How long it lasted since t = 0, where both of its ends are known."""
        if self.opens is None or self.closes is None:
            return None
        # Both are frames of one watch: the end was shown after the beginning.
        shortest = max(0, self.closes.lo - self.opens.hi)
        return Interval(shortest, self.closes.hi - self.opens.lo)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the slices showed, and which gaps of their watch there were."""

    snapshots: Sequence[Snapshot]
    gaps: Sequence[Interval]
    blind: Blind
    t0_ns: int

    def stretches(
        self, uid: str, holds: Iterable[bool], cause: Cause | None = None
    ) -> tuple[Stretch, ...]:
        """Those of what ``holds`` says of pod ``uid`` at each snapshot."""
        found: list[Stretch] = []
        opened, opens = False, None
        earliest_ns, shown_ns = None, 0
        for snapshot, now in zip(self.snapshots, holds, strict=True):
            at_ns = snapshot.received_ns
            if now is not opened and at_ns < self.t0_ns:
                opens = None
            elif now is not opened:
                change = self._change(uid, snapshot, earliest_ns)
                if now:
                    opens = change
                else:
                    caused = None if cause is None else cause(snapshot)
                    if caused is not None:
                        # A gap may have hidden an end before the one whose cause is known.
                        hidden = [g.lo for g in self.gaps if shown_ns <= g.hi and g.lo <= at_ns]
                        lo = max(change.lo, min([caused, *hidden]))
                        change = Interval(min(lo, at_ns), at_ns)
                    found.append(Stretch(opens=opens, closes=change))
                earliest_ns = change.lo
            opened, shown_ns = now, at_ns
        if opened:
            found.append(Stretch(opens=opens, closes=None))
        return tuple(found)

    def _change(self, uid: str, snapshot: Snapshot, earliest_ns: int | None) -> Interval:
        """When what a snapshot shows happened: after the change before it, if there was one."""
        at_ns = snapshot.received_ns
        lo = self.blind.endpoint_since(uid, at_ns, self.t0_ns)
        return Interval(min(at_ns, lo if earliest_ns is None else max(lo, earliest_ns)), at_ns)


def listed(snapshots: Iterable[Snapshot], uid: str) -> Iterable[bool]:
    """Whether each shows the pod in any slice."""
    return (uid in snapshot.by_uid for snapshot in snapshots)


def ready(snapshots: Iterable[Snapshot], uid: str) -> Iterable[bool]:
    """Whether each shows the pod as ready."""
    return (snapshot.has(uid, "ready") for snapshot in snapshots)


def unready(snapshots: Iterable[Snapshot], uid: str) -> Iterable[bool]:
    """Whether the pod was last listed, and not as ready, at each: a removal alone says nothing."""
    now = False
    for snapshot in snapshots:
        if uid in snapshot.by_uid:
            now = not snapshot.has(uid, "ready")
        yield now
