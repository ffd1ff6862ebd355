"""What nobody watched: a change may have happened while a watch gap over t = 0 hid it.

A watch that resumes records its gap when it opens again and the frames that it missed
after that. So a gap hides a change until a later frame showed its object without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.transitions import Transition


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind:
    """The watch gaps over t = 0, and every frame."""

    gaps: tuple[Interval, ...]
    frames: tuple[Observation, ...]

    @classmethod
    def of(cls, seen: Iterable[Observation], t0_ns: int) -> Blind:
        seen = tuple(seen)
        gaps = (o.at for o in seen if o.event is Event.WATCH_GAP)
        return cls(
            gaps=tuple(gap for gap in gaps if gap.lo < t0_ns <= gap.hi),
            frames=tuple(o for o in seen if o.event in (Event.POD, Event.ENDPOINT_SLICE)),
        )

    def since(self, change: Transition, earliest_ns: int) -> int:
        """The lower bound of ``change``: ``earliest_ns``, or earlier where a gap hid it."""
        if not self.gaps:
            return earliest_ns
        at_ns = change.received_ns
        told = (o.at.hi for o in self.frames if o.at.hi < at_ns and _tells(o, change))
        told_ns = max(told, default=0)
        return min([earliest_ns, *(gap.lo for gap in self.gaps if told_ns <= gap.hi)])


def _tells(frame: Observation, change: Transition) -> bool:
    """Whether a frame shows that of which ``change`` is a change."""
    if change.event.startswith("endpointslice"):
        return frame.event is Event.ENDPOINT_SLICE
    return frame.event is Event.POD and frame.subject == change.uid
