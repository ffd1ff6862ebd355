"""What nobody watched: a change may have happened while a watch gap over t = 0 hid it.

A watch that resumes records its gap when it opens again and the frames that it missed
after that. So a gap hides a change until a later frame showed its object without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.jsonvalue import objects
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
        if change.event.startswith("endpointslice"):
            return self.endpoint_since(change.uid, change.received_ns, earliest_ns)
        told = (o for o in self.frames if o.event is Event.POD and o.subject == change.uid)
        return self._since(told, change.received_ns, earliest_ns)

    def endpoint_since(self, uid: str, received_ns: int, earliest_ns: int) -> int:
        """The same for a change of a pod's endpoint that a frame showed."""
        told = (o for o in self.frames if o.event is Event.ENDPOINT_SLICE and _lists(o, uid))
        return self._since(told, received_ns, earliest_ns)

    def _since(self, told: Iterable[Observation], received_ns: int, earliest_ns: int) -> int:
        """``told``: frames that show that of which something changed."""
        if not self.gaps:
            return earliest_ns
        told_ns = max((o.at.hi for o in told if o.at.hi < received_ns), default=0)
        return min([earliest_ns, *(gap.lo for gap in self.gaps if told_ns <= gap.hi)])


def _lists(frame: Observation, uid: str) -> bool:
    return any(endpoint.get("uid") == uid for endpoint in objects(frame.data.get("endpoints")))


def hides_slices(seen: Observation) -> bool:
    """A gap in which an endpoint may have changed."""
    return seen.event is Event.WATCH_GAP and seen.data.get("resource") != "pods"


def hides_pods(seen: Observation) -> bool:
    """A gap in which a pod may have come and gone."""
    return seen.event is Event.WATCH_GAP and seen.data.get("resource") != "endpointslices"
