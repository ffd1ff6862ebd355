"""The trigger as it was carried out: when t = 0 is, and which pods it was about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.jsonvalue import integer, text, texts
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.scenario import Trigger


class CannotDerive(ValueError):
    """The recording holds no trial to judge: it is void, interrupted or incomplete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The accepted call; t = 0 is when it was sent."""

    t0_ns: int
    accepted: Observation
    targets: frozenset[str]
    blocked: tuple[Observation, ...]

    @property
    def control(self) -> bool:
        """Nothing was to be terminated (verb ``none``): the targets are those of the flows."""
        return self.accepted.data.get("verb") == Trigger.NONE

    @property
    def killed(self) -> Mapping[str, tuple[str, int]]:
        """By pod uid: its container that was killed past the API, and its restarts of before."""
        found = self.accepted.data.get("containers")
        if self.accepted.data.get("verb") != Trigger.CONTAINER_KILL or not isinstance(found, dict):
            return {}
        shown = ((uid, each) for uid, each in found.items() if isinstance(each, list) and each)
        return {uid: (text(each[0]), integer(each[-1])) for uid, each in shown}


def start_of(seen: Sequence[Observation]) -> Start:
    accepted = [o for o in seen if o.event is Event.TRIGGER_ACCEPTED]
    if len(accepted) != 1:
        raise CannotDerive(
            f"expected one accepted trigger, found {len(accepted)}; "
            "the recording ends before the trigger or holds several trials"
        )
    return Start(
        t0_ns=accepted[0].at.lo,
        accepted=accepted[0],
        targets=frozenset(texts(accepted[0].data.get("targets"))),
        blocked=tuple(o for o in seen if o.event is Event.TRIGGER_BLOCKED),
    )
