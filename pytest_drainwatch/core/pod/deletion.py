"""What a pod's frames say about its end: deleted when, with what grace, and by whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_drainwatch.core import transitions
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.jsonvalue import integer_or_none
from pytest_drainwatch.core.moments import Start
from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.core.pod.container_life import Life
from pytest_drainwatch.core.transitions import Transition


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """A pod's deletion as one run of one of its containers met it.

    ``at`` is None if that run ended before it, or nobody saw one. ``graces_s`` are the
    deletionGracePeriodSeconds in order: a later delete can only shorten them.
    ``disruption``, ``reason`` and ``message`` are what the pod's status says.
    """

    target: bool
    at: Interval | None
    graces_s: tuple[int, ...]
    disruption: str | None
    reason: str | None
    message: str | None

    @classmethod
    def of(
        cls, life: Life, changes: Sequence[Transition], start: Start, blind: Sequence[Interval]
    ) -> Deletion:
        """``blind`` are the watch gaps over t = 0."""
        uid, frames = life.record.uid, life.record.frames
        target = uid in start.targets
        received = next(
            (
                c.received_ns
                for c in changes
                if c.uid == uid and c.event == transitions.POD_DELETION_TIMESTAMP_SET
            ),
            None,
        )
        at = None
        # Frames of one pod come in the order of its changes: an end that is shown before
        # the deletion came before it.
        if received is not None and (life.ended_ns is None or received <= life.ended_ns):
            # A target's deletion follows the trigger, unless nobody watched just then.
            since = [start.t0_ns] if target else [frame.at.lo for frame in frames[:1]]
            since += [gap.lo for gap in blind if received <= gap.hi]
            at = Interval(min([received, *since]), received)
        shown = [o for o in frames if life.ended_ns is None or o.at.hi <= life.ended_ns]
        # The kubelet removes the object itself with a grace period of 0.
        leaving = [o for o in shown if o.data.get("deletion_timestamp")]
        kept = [o for o in leaving if o.data.get("type") != "DELETED"]
        graces = [integer_or_none(o.data.get("deletion_grace_period_s")) for o in kept or leaving]
        return cls(
            target=target,
            at=at,
            graces_s=tuple(dict.fromkeys(g for g in graces if g is not None)),
            disruption=_last(frames, "disruption"),
            reason=_last(frames, "reason"),
            message=_last(frames, "message"),
        )


def _last(frames: Sequence[Observation], name: str) -> str | None:
    return next((str(o.data[name]) for o in reversed(frames) if o.data.get(name)), None)
