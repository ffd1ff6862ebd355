"""Triggers: sent once, by identity, and a refusal waited out as the server says."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from pytest_drainwatch.api import failures
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.scenario import Trigger
from pytest_drainwatch.trigger import Pod, Target, TriggerFailed, fire
from tests.conductor.api_server import Call, reply, serving

POD = Pod(name="probe-1", uid="uid-1")
TARGET = Target(
    namespace="ns", pod=POD, deployment="probe", pods=(POD, Pod(name="probe-2", uid="uid-2"))
)
Answer = Callable[[BaseHTTPRequestHandler, Call], None]


def ok(handler: BaseHTTPRequestHandler, _: Call) -> None:
    reply(handler, {"kind": "Status", "apiVersion": "v1", "status": "Success"})


def refusing(status: int, times: int, retry_after: str | None = None) -> Answer:
    left = [times]

    def answer(handler: BaseHTTPRequestHandler, call: Call) -> None:
        if left[0] == 0:
            return ok(handler, call)
        left[0] -= 1
        body = {
            "kind": "Status",
            "message": "Cannot evict pod as it would violate the pod's disruption budget.",
            "details": {
                "causes": [
                    {
                        "reason": "DisruptionBudget",
                        "message": "The disruption budget web needs 1 healthy pods",
                    }
                ]
            },
        }
        reply(handler, body, status, {} if retry_after is None else {"Retry-After": retry_after})

    return answer


def run(
    verb: Trigger, answer: Answer, folder: Path, timeout_s: float = 60
) -> tuple[list[Observation], list[Call], list[float]]:
    seen: list[Observation] = []
    pauses: list[float] = []
    with serving(answer, folder) as (api, script):
        try:
            fire(api, verb, TARGET, seen.append, timeout_s=timeout_s, sleep=pauses.append)
        finally:
            calls = script.calls
    return seen, calls, pauses


@pytest.mark.parametrize("verb", [Trigger.DELETE, Trigger.EVICT])
def test_a_pod_is_meant_by_its_uid(verb: Trigger, tmp_path: Path) -> None:
    seen, (call,), _ = run(verb, ok, tmp_path)
    options = call.body if verb is Trigger.DELETE else call.body["deleteOptions"]
    assert options["preconditions"] == {"uid": "uid-1"}
    assert seen[0].data["targets"] == ["uid-1"]


def test_scaling_to_zero_targets_every_pod(tmp_path: Path) -> None:
    seen, (call,), _ = run(Trigger.SCALE, ok, tmp_path)
    assert (call.method, call.body) == ("PATCH", {"spec": {"replicas": 0}})
    assert seen[0].data["targets"] == ["uid-1", "uid-2"]


def test_429_is_blocked_and_asked_again_no_sooner_than_after_a_second(tmp_path: Path) -> None:
    """Retry-After may be 0 (K10)."""
    seen, calls, pauses = run(Trigger.EVICT, refusing(429, 2, "0"), tmp_path)
    assert [o.event for o in seen] == [
        Event.TRIGGER_BLOCKED,
        Event.TRIGGER_BLOCKED,
        Event.TRIGGER_ACCEPTED,
    ]
    assert pauses == [1.0, 1.0]
    assert len(calls) == 3
    assert seen[-1].data["attempt"] == 3
    assert "disruption budget web needs" in str(seen[0].data["message"])
    assert (seen[0].data["retry_after_s"], seen[0].data["causes"]) == (0.0, ["DisruptionBudget"])


def test_a_longer_retry_after_is_respected(tmp_path: Path) -> None:
    seen, _, pauses = run(Trigger.EVICT, refusing(429, 1, "10"), tmp_path)
    assert pauses == [10.0]
    assert seen[0].data["retry_after_s"] == 10.0


def test_a_refusal_without_retry_after_says_none(tmp_path: Path) -> None:
    seen, _, pauses = run(Trigger.EVICT, refusing(429, 1), tmp_path)
    assert (seen[0].data["retry_after_s"], pauses) == (None, [1.0])


def test_a_refusal_for_good_names_the_budget(tmp_path: Path) -> None:
    with pytest.raises(TriggerFailed, match=r"is blocked.*disruption budget web"):
        run(Trigger.EVICT, refusing(429, 99, "0"), tmp_path, timeout_s=0.5)


@pytest.mark.parametrize("status", [403, 404, 409, 500])
def test_other_refusals_are_not_repeated(status: int, tmp_path: Path) -> None:
    with pytest.raises(TriggerFailed, match=f"HTTP {status}"):
        run(Trigger.DELETE, refusing(status, 99), tmp_path)


def test_a_broken_connection_is_never_retried_by_the_client(tmp_path: Path) -> None:
    """K16: a repeated DELETE fakes the trigger's time."""
    calls: list[Call] = []

    def hang_up(handler: BaseHTTPRequestHandler, call: Call) -> None:
        calls.append(call)
        handler.connection.close()
        handler.close_connection = True

    with serving(hang_up, tmp_path) as (api, _), pytest.raises(failures()):
        fire(api, Trigger.DELETE, TARGET, lambda _: None, timeout_s=5)
    assert len(calls) == 1
