"""Asking the API server for one call: when it was sent and returned, or how it was refused."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from pytest_drainwatch.api import explain
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.scenario import Trigger
from pytest_drainwatch.trigger.calls import Call

Record = Callable[[Observation], None]
MIN_RETRY_S = 1.0
# A disruption budget stands in the way, or somebody asked too often.
TOO_MANY = 429


class TriggerFailed(Exception):
    """The trigger was not carried out, or not undone; the text is the server's answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A call that the API server did not carry out."""

    error: Exception
    status: int | None
    retry_after_s: float | None

    @property
    def why(self) -> str:
        return explain(self.error)


def insist(
    call: Call, verb: Trigger, record: Record, timeout_s: float, sleep: Callable[[float], None]
) -> tuple[int, Interval]:
    """Ask until it is accepted; returns the attempts that it took and the last one's times.

    Raises :class:`TriggerFailed` if it is refused for good, or until ``timeout_s``.
    """
    deadline = time.monotonic() + timeout_s
    attempt = 0
    while True:
        attempt += 1
        went = ask(call, verb, attempt, record)
        if isinstance(went, Interval):
            return attempt, went
        pause = max(MIN_RETRY_S, went.retry_after_s or 0.0)
        if went.status != TOO_MANY or time.monotonic() + pause > deadline:
            how = "is blocked: it was refused" if went.status == TOO_MANY else "was refused"
            raise TriggerFailed(
                f"{verb} of {call.what} {how} {attempt} time(s), last with {went.why}"
            ) from went.error
        sleep(pause)


def ask(call: Call, verb: Trigger, attempt: int, record: Record) -> Interval | Refused:
    """Make the call once: when it was sent and when it returned, or how it was refused."""
    from kubernetes.client.exceptions import ApiException

    sent = time.monotonic_ns()
    try:
        call.send()
    except ApiException as error:
        at = Interval(sent, time.monotonic_ns())
        refused = Refused(error=error, status=error.status, retry_after_s=_retry_after_s(error))
        record(_blocked(at, attempt, verb, refused))
        return refused
    return Interval(sent, time.monotonic_ns())


def _blocked(at: Interval, attempt: int, verb: Trigger, refused: Refused) -> Observation:
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
