"""What a pod's frames say about its end: deleted when, with what grace, and by whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_drainwatch.core import transitions
from pytest_drainwatch.core.blind import Blind
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.jsonvalue import integer_or_none
from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.core.pod.container_life import Life
from pytest_drainwatch.core.start import Start
from pytest_drainwatch.core.transitions import Transition


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """A pod's deletion as one run of one of its containers met it.

    ``at`` is None if that run ended before it, or nobody saw one. ``graces_s`` are the
    deletionGracePeriodSeconds in order: a later delete can only shorten them.
    ``disruption``, ``reason`` and ``message`` are what the pod's status says, as far as it was
    asked: recordings before ``disruption_shown`` was told do not have the first.
    """

    target: bool
    at: Interval | None
    graces_s: tuple[int, ...]
    disruption: str | None
    reason: str | None
    message: str | None
    disruption_shown: bool

    @property
    def grace_s(self) -> int | None:
        """What the API server set, never what the spec asked for (case C35); None if shortened."""
        return self.graces_s[0] if len(self.graces_s) == 1 else None

    @classmethod
    def of(cls, life: Life, changes: Sequence[Transition], start: Start, blind: Blind) -> Deletion:
        uid, frames = life.record.uid, life.record.frames
        target = uid in start.targets
        marked = (c for c in changes if c.event == transitions.POD_DELETION_TIMESTAMP_SET)
        change = next((c for c in marked if c.uid == uid), None)
        at = None
        # Frames of one pod come in the order of its changes: an end that is shown before
        # the deletion came before it.
        if change and (life.ended_ns is None or change.received_ns <= life.ended_ns):
            received_ns = change.received_ns
            # A target's deletion follows the trigger, unless nobody watched just then.
            since_ns = start.t0_ns if target else frames[0].at.lo
            at = Interval(min(received_ns, blind.since(change, since_ns)), received_ns)
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
            disruption_shown=any("disruption" in o.data for o in leaving),
        )


def _last(frames: Sequence[Observation], name: str) -> str | None:
    return next((str(o.data[name]) for o in reversed(frames) if o.data.get(name)), None)
