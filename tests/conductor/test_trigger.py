"""Triggers: sent once, by identity, and a refusal waited out as the server says."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch.api import failures
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.scenario import Controller, Trigger
from pytest_drainwatch.trigger import Armed, Kill, Owner, Pod, Target, TriggerFailed
from pytest_drainwatch.trigger.calls import RESTARTED
from tests.conductor.api_server import Call, reply, serving

POD, OTHER, THIRD = (Pod(name=f"probe-{n}", uid=f"uid-{n}") for n in (1, 2, 3))
TARGET = Target(
    namespace="ns",
    pod=POD,
    chosen=(POD,),
    pods=(POD, OTHER),
    controller=Owner(kind=Controller.DEPLOYMENT, name="probe"),
)
TWO_OF_THREE = replace(TARGET, chosen=(POD, OTHER), pods=(POD, OTHER, THIRD))
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
    verb: Trigger,
    answer: Answer,
    folder: Path,
    timeout_s: float = 60,
    target: Target = TARGET,
) -> tuple[list[Observation], list[Call], list[float]]:
    seen: list[Observation] = []
    pauses: list[float] = []
    with serving(answer, folder) as (api, script):
        try:
            with Armed(api, verb, target, seen.append) as armed:
                armed.fire(timeout_s=timeout_s, sleep=pauses.append)
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


@pytest.mark.parametrize("verb", [Trigger.DELETE, Trigger.EVICT])
def test_several_pods_are_told_one_right_after_the_other(verb: Trigger, tmp_path: Path) -> None:
    seen, calls, pauses = run(verb, ok, tmp_path, target=TWO_OF_THREE)
    options = [c.body if verb is Trigger.DELETE else c.body["deleteOptions"] for c in calls]
    assert [each["preconditions"]["uid"] for each in options] == ["uid-1", "uid-2"]
    (accepted,) = seen
    assert (accepted.data["targets"], accepted.data["pods"]) == (
        ["uid-1", "uid-2"],
        ["probe-1", "probe-2"],
    )
    made: Any = accepted.data["calls"]
    stamps = [stamp for call in made for stamp in call]
    assert stamps == sorted(stamps)
    assert [len(call) for call in made] == [2, 2]
    assert (accepted.at.lo, accepted.at.hi) == (stamps[0], stamps[-1]), "t = 0: the first send"
    assert not pauses


def refusing_from(number: int, status: int) -> Answer:
    """Carries out the calls before that number (from 1) and refuses the rest."""
    count = [0]

    def answer(handler: BaseHTTPRequestHandler, call: Call) -> None:
        count[0] += 1
        if count[0] < number:
            return ok(handler, call)
        reply(handler, {"kind": "Status", "message": "no more"}, status)

    return answer


@pytest.mark.parametrize("status", [429, 409])
def test_a_later_refusal_is_no_trigger(status: int, tmp_path: Path) -> None:
    """One pod is on its way out, another is not: nobody asked for that."""
    seen: list[Observation] = []
    with (
        serving(refusing_from(2, status), tmp_path) as (api, script),
        pytest.raises(TriggerFailed, match="after 1 of 2 pods had been told to end"),
    ):
        Armed(api, Trigger.EVICT, TWO_OF_THREE, seen.append).fire(timeout_s=60)
    assert [o.event for o in seen] == [Event.TRIGGER_BLOCKED]
    assert len(script.calls) == 2, "it is not asked again: the first pod is ending"


def test_the_first_of_several_may_be_blocked_for_a_while(tmp_path: Path) -> None:
    seen, calls, pauses = run(Trigger.EVICT, refusing(429, 2, "0"), tmp_path, target=TWO_OF_THREE)
    assert [c.path.split("/")[-2] for c in calls] == ["probe-1"] * 3 + ["probe-2"]
    assert (seen[-1].data["attempt"], pauses) == (3, [1.0, 1.0])


def test_a_stateful_set_is_scaled_as_what_it_is(tmp_path: Path) -> None:
    target = replace(TARGET, controller=Owner(kind=Controller.STATEFUL_SET, name="probe"))
    _, (call,), _ = run(Trigger.SCALE, ok, tmp_path, target=target)
    assert call.path.endswith("/statefulsets/probe/scale")
    _, (call,), _ = run(Trigger.SCALE, ok, tmp_path)
    assert call.path.endswith("/deployments/probe/scale")


def test_a_rollout_changes_the_template_and_ends_every_pod_of_before(tmp_path: Path) -> None:
    seen, (call,), _ = run(Trigger.ROLLOUT, ok, tmp_path)
    template = call.body["spec"].pop("template")
    assert (call.method, call.body) == ("PATCH", {"spec": {}})
    (annotation,) = template["metadata"]["annotations"].items()
    assert annotation[0] == RESTARTED
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", annotation[1]), "as kubectl's"
    assert seen[0].data["targets"] == ["uid-1", "uid-2"]


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (Controller.DEPLOYMENT, "/deployments/web"),
        (Controller.STATEFUL_SET, "/statefulsets/web"),
        (Controller.DAEMON_SET, "/daemonsets/web"),
    ],
)
def test_each_kind_of_controller_is_restarted_as_what_it_is(
    kind: Controller, path: str, tmp_path: Path
) -> None:
    target = replace(TARGET, controller=Owner(kind=kind, name="web"))
    _, (call,), _ = run(Trigger.ROLLOUT, ok, tmp_path, target=target)
    assert call.path == f"/apis/apps/v1/namespaces/ns{path}"


def test_a_forced_delete_has_no_grace_and_still_means_one_pod(tmp_path: Path) -> None:
    seen, (call,), _ = run(Trigger.FORCE_DELETE, ok, tmp_path)
    assert call.body == {"preconditions": {"uid": "uid-1"}, "gracePeriodSeconds": 0}
    assert seen[0].data["targets"] == ["uid-1"]
    _, (plain,), _ = run(Trigger.DELETE, ok, tmp_path)
    assert "gracePeriodSeconds" not in plain.body


def test_a_kill_asks_nothing_of_the_api_and_says_which_container(tmp_path: Path) -> None:
    killed: list[str] = []
    kills = {
        pod.uid: Kill(container="web", restarts=2, send=partial(killed.append, pod.uid))
        for pod in (POD, OTHER)
    }
    target = replace(TWO_OF_THREE, kills=kills)
    (accepted,), calls, _ = run(Trigger.CONTAINER_KILL, ok, tmp_path, target=target)
    assert not calls
    assert killed == ["uid-1", "uid-2"]
    assert accepted.data["targets"] == killed
    assert accepted.data["containers"] == {"uid-1": ["web", 2], "uid-2": ["web", 2]}


def test_a_workload_that_is_not_ours_gets_its_scale_back(tmp_path: Path) -> None:
    def answer(handler: BaseHTTPRequestHandler, call: Call) -> None:
        reply(handler, {"kind": "Scale", "spec": {"replicas": 3}})

    theirs = replace(TARGET, ours=False)
    _, calls, _ = run(Trigger.SCALE, answer, tmp_path, target=theirs)
    asked = [(c.method, (c.body or {}).get("spec")) for c in calls]
    assert asked == [("GET", None), ("PATCH", {"replicas": 0}), ("PATCH", {"replicas": 3})]
    _, calls, _ = run(Trigger.SCALE, answer, tmp_path)
    assert [c.method for c in calls] == ["PATCH"], "what is ours goes anyway"


def test_the_number_to_scale_back_to_is_told_before_it_is_gone(tmp_path: Path) -> None:
    """After a kill -9 nobody else knows it."""
    told: list[str] = []
    seen_before_the_call: list[bool] = []

    def answer(handler: BaseHTTPRequestHandler, call: Call) -> None:
        if call.method == "PATCH":
            seen_before_the_call.append(
                any("kubectl -n ns scale deployment/probe --replicas=3" in line for line in told)
            )
        reply(handler, {"kind": "Scale", "spec": {"replicas": 3}})

    for target, lines in ((replace(TARGET, ours=False), 1), (TARGET, 0)):
        told.clear()
        seen_before_the_call.clear()
        with (
            serving(answer, tmp_path) as (api, _),
            Armed(api, Trigger.SCALE, target, lambda _: None, told.append) as armed,
        ):
            armed.fire(timeout_s=5)
        assert len(told) == lines, "what is ours goes anyway"
        assert seen_before_the_call[0] is bool(lines)


def test_deleting_the_namespace_ends_every_pod(tmp_path: Path) -> None:
    seen, (call,), _ = run(Trigger.NAMESPACE_DELETE, ok, tmp_path)
    assert (call.method, call.path) == ("DELETE", "/api/v1/namespaces/ns")
    assert seen[0].data["targets"] == ["uid-1", "uid-2"]


def test_a_control_asks_nothing(tmp_path: Path) -> None:
    (accepted,), calls, _ = run(Trigger.NONE, ok, tmp_path)
    assert not calls
    assert accepted.event is Event.TRIGGER_ACCEPTED
    assert accepted.at.lo == accepted.at.hi
    assert (accepted.data["targets"], accepted.data["calls"]) == (["uid-1"], [])


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
        Armed(api, Trigger.DELETE, TARGET, lambda _: None).fire(timeout_s=5)
    assert len(calls) == 1
