"""Ways to terminate pods, and the times of asking and of acceptance.

A call that the API accepted is sent exactly once. A refusal (429 by a disruption
budget) is recorded as blocked and asked again no sooner than the server says, and
never sooner than after a second. Of several calls only the first may be asked again:
once a pod was told to end, t = 0 has passed, and the others must follow at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from pytest_drainwatch.api import Api, explain
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.scenario import Trigger
from pytest_drainwatch.trigger.calls import Call, calls_of, ended_by
from pytest_drainwatch.trigger.target import Pod, Target

Record = Callable[[Observation], None]
MIN_RETRY_S = 1.0

__all__ = ["Accepted", "Pod", "Target", "TriggerFailed", "fire"]


class TriggerFailed(Exception):
    """The API did not carry the trigger out; the text is the server's answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The trigger as the API carried it out, and the pods that it ends.

    ``at`` reaches from the first call's send, which is t = 0, to the last one's return.
    """

    at: Interval
    attempts: int
    targets: tuple[str, ...]


def fire(
    api: Api,
    verb: Trigger,
    target: Target,
    record: Record,
    *,
    timeout_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Accepted:
    """Ask until the API accepts, and record how it went. A control asks nothing.

    Raises :class:`TriggerFailed` if it refuses for good or until ``timeout_s``, or if it
    refuses one of several calls after another was accepted.
    """
    calls = calls_of(api, verb, target)
    attempts, made = 1, list[Interval]()
    for call in calls:
        if not made:
            attempts, accepted = _insist(call, verb, record, timeout_s, sleep)
            made.append(accepted)
            continue
        went = _try(call, verb, 1, record)
        if isinstance(went, _Refused):
            raise TriggerFailed(
                f"{verb} of {call.what} was refused with {went.why}, after {len(made)} of "
                f"{len(calls)} pods had been told to end; expected all to end at once. Look at: "
                f"kubectl -n {target.namespace} get events,poddisruptionbudgets"
            ) from went.error
        made.append(went)
    ended = ended_by(verb, target)
    at = Interval(made[0].lo, made[-1].hi) if made else Interval.point(time.monotonic_ns())
    uids = tuple(pod.uid for pod in ended)
    record(
        Observation(
            source=Source.ORCHESTRATOR,
            event=Event.TRIGGER_ACCEPTED,
            at=at,
            data={
                "verb": str(verb),
                "attempt": attempts,
                "targets": list(uids),
                "pods": [pod.name for pod in ended],
                "calls": [[each.lo, each.hi] for each in made],
            },
        )
    )
    return Accepted(at=at, attempts=attempts, targets=uids)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refused:
    """A call that the API server did not carry out."""

    error: Exception
    status: int | None
    retry_after_s: float | None

    @property
    def why(self) -> str:
        return explain(self.error)


def _insist(
    call: Call, verb: Trigger, record: Record, timeout_s: float, sleep: Callable[[float], None]
) -> tuple[int, Interval]:
    """Ask until it is accepted; returns the attempts that it took and the last one's times."""
    deadline = time.monotonic() + timeout_s
    attempt = 0
    while True:
        attempt += 1
        went = _try(call, verb, attempt, record)
        if isinstance(went, Interval):
            return attempt, went
        pause = max(MIN_RETRY_S, went.retry_after_s or 0.0)
        if went.status != 429 or time.monotonic() + pause > deadline:
            how = "is blocked: it was refused" if went.status == 429 else "was refused"
            raise TriggerFailed(
                f"{verb} of {call.what} {how} {attempt} time(s), last with {went.why}"
            ) from went.error
        sleep(pause)


def _try(call: Call, verb: Trigger, attempt: int, record: Record) -> Interval | _Refused:
    """Make the call once: when it was sent and when it returned, or how it was refused."""
    from kubernetes.client.exceptions import ApiException

    sent = time.monotonic_ns()
    try:
        call.send()
    except ApiException as error:
        at = Interval(sent, time.monotonic_ns())
        refused = _Refused(error=error, status=error.status, retry_after_s=_retry_after_s(error))
        record(_blocked(at, attempt, verb, refused))
        return refused
    return Interval(sent, time.monotonic_ns())


def _blocked(at: Interval, attempt: int, verb: Trigger, refused: _Refused) -> Observation:
    return Observation(
        source=Source.ORCHESTRATOR,
        event=Event.TRIGGER_BLOCKED,
        at=at,
        data={
            "verb": str(verb),
            "attempt": attempt,
            "status": refused.status,
            "retry_after_s": refused.retry_after_s,
            "causes": _causes(refused.error),
            "message": refused.why,
        },
    )


def _causes(error: object) -> list[str]:
    """What kind of thing stands in the way, in the API server's words: DisruptionBudget."""
    try:
        details = json.loads(getattr(error, "body", "") or "{}")["details"]
        return [str(cause["reason"]) for cause in details["causes"] if "reason" in cause]
    except (ValueError, KeyError, TypeError):
        return []


def _retry_after_s(error: object) -> float | None:
    headers = getattr(error, "headers", None) or {}
    try:
        return float(headers["Retry-After"])
    except (KeyError, TypeError, ValueError):
        return None
