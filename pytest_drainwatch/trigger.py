"""Ways to terminate a pod: one function each, and the times of asking and of acceptance.

The call that the API accepted is sent exactly once. A refusal (429 by a
disruption budget) is recorded as blocked and asked again no sooner than the
server says, and never sooner than after a second.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api, explain
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.scenario import Trigger

Record = Callable[[Observation], None]
MIN_RETRY_S = 1.0


class TriggerFailed(Exception):
    """The API did not carry the trigger out; the text is the server's answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod by identity."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a trigger may act on: the pod to end, and the Deployment that it belongs to."""

    namespace: str
    pod: Pod
    deployment: str
    pods: Sequence[Pod]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The call that the API carried out: sent and returned, and the pods that it ends."""

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
    """Ask until the API accepts, and record how it went.

    Raises :class:`TriggerFailed` if it refuses for good or until ``timeout_s``.
    """
    from kubernetes.client.exceptions import ApiException

    deadline = time.monotonic() + timeout_s
    attempt = 0
    while True:
        attempt += 1
        sent = time.monotonic_ns()
        try:
            _VERBS[verb](api, target)
        except ApiException as error:
            at = Interval(sent, time.monotonic_ns())
            retry_after = _retry_after_s(error)
            record(_blocked(at, attempt, verb, error, retry_after))
            pause = max(MIN_RETRY_S, retry_after or 0.0)
            if error.status != 429 or time.monotonic() + pause > deadline:
                how = "is blocked: it was refused" if error.status == 429 else "was refused"
                raise TriggerFailed(
                    f"{verb} of pod {target.pod.name} {how} {attempt} time(s), last with "
                    f"{explain(error)}"
                ) from error
            sleep(pause)
            continue
        at = Interval(sent, time.monotonic_ns())
        ended = target.pods if verb is Trigger.SCALE else [target.pod]
        accepted = Accepted(at=at, attempts=attempt, targets=tuple(pod.uid for pod in ended))
        record(
            Observation(
                source=Source.ORCHESTRATOR,
                event=Event.TRIGGER_ACCEPTED,
                at=at,
                data={
                    "verb": str(verb),
                    "attempt": attempt,
                    "targets": list(accepted.targets),
                    "pods": [pod.name for pod in ended],
                },
            )
        )
        return accepted


def delete(api: Api, target: Target) -> None:
    """DELETE the pod, and only if it is still the one we mean."""
    _send(
        api.core.delete_namespaced_pod,
        target.pod.name,
        target.namespace,
        body={"preconditions": {"uid": target.pod.uid}},
    )


def evict(api: Api, target: Target) -> None:
    """POST an Eviction, which respects disruption budgets."""
    _send(
        api.core.create_namespaced_pod_eviction,
        target.pod.name,
        target.namespace,
        body={
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": target.pod.name, "namespace": target.namespace},
            "deleteOptions": {"preconditions": {"uid": target.pod.uid}},
        },
    )


def scale(api: Api, target: Target) -> None:
    """Scale the Deployment to zero: every pod is a target and none replaces it."""
    _send(
        api.apps.patch_namespaced_deployment_scale,
        target.deployment,
        target.namespace,
        body={"spec": {"replicas": 0}},
    )


def _send(call: Callable[..., Any], *arguments: str, body: object) -> None:
    """Call without parsing the answer: its status says all, and an odd body must not count."""
    response = call(*arguments, body=body, _preload_content=False, _request_timeout=REQUEST_TIMEOUT)
    response.drain_conn()


_VERBS: dict[Trigger, Callable[[Api, Target], None]] = {
    Trigger.DELETE: delete,
    Trigger.EVICT: evict,
    Trigger.SCALE: scale,
}


def _blocked(
    at: Interval, attempt: int, verb: Trigger, error: object, retry_after_s: float | None
) -> Observation:
    return Observation(
        source=Source.ORCHESTRATOR,
        event=Event.TRIGGER_BLOCKED,
        at=at,
        data={
            "verb": str(verb),
            "attempt": attempt,
            "status": getattr(error, "status", None),
            "retry_after_s": retry_after_s,
            "causes": _causes(error),
            "message": explain(error) if isinstance(error, Exception) else str(error),
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
