"""Triggers that cannot do to a target what their name says; each has a target that they can."""

from __future__ import annotations

from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch import preflight
from pytest_drainwatch.core.scenario import Controller, Trigger
from pytest_drainwatch.trigger import Kill, Obstacle, Owner, Pod, Target, find_obstacle
from tests.conductor.api_server import Call, reply, serving

POD = Pod(name="web-1", uid="uid-1", node="n1")
WEB = Target(
    namespace="ns",
    pod=POD,
    chosen=(POD,),
    pods=(POD,),
    controller=Owner(kind=Controller.DEPLOYMENT, name="web"),
    kills={"uid-1": Kill(container="web", restarts=0, send=lambda: None)},
)
BARE = replace(WEB, controller=None)
DAEMONS = replace(WEB, controller=Owner(kind=Controller.DAEMON_SET, name="web"))
SET = replace(WEB, controller=Owner(kind=Controller.STATEFUL_SET, name="web"))
THEIRS = replace(WEB, ours=False, own_namespace=False)
GIVEN = replace(WEB, own_namespace=False)
UNKILLABLE = replace(WEB, kills={})


def look(
    verb: Trigger, target: Target, folder: Path, spec: dict[str, Any] | None = None
) -> Obstacle | None:
    def answer(handler: BaseHTTPRequestHandler, _: Call) -> None:
        reply(handler, {"spec": spec or {}})

    with serving(answer, folder) as (api, _):
        return find_obstacle(api, verb, target)


@pytest.mark.parametrize(
    ("verb", "target"),
    [
        (Trigger.DELETE, BARE),
        (Trigger.FORCE_DELETE, BARE),
        (Trigger.EVICT, BARE),
        (Trigger.NONE, BARE),
        (Trigger.SCALE, WEB),
        (Trigger.SCALE, SET),
        (Trigger.SCALE, THEIRS),
        (Trigger.ROLLOUT, WEB),
        (Trigger.ROLLOUT, SET),
        (Trigger.ROLLOUT, DAEMONS),
        (Trigger.NAMESPACE_DELETE, WEB),
        (Trigger.CONTAINER_KILL, BARE),
    ],
)
def test_nothing_is_in_the_way(verb: Trigger, target: Target, tmp_path: Path) -> None:
    assert look(verb, target, tmp_path) is None
    assert preflight.trigger_possible(verb, None).passed


@pytest.mark.parametrize(
    ("verb", "target", "observed"),
    [
        (Trigger.SCALE, BARE, "no controller that could be scaled"),
        (Trigger.SCALE, DAEMONS, "no replicas to scale"),
        (Trigger.ROLLOUT, BARE, "no controller that could restart them"),
        (Trigger.NAMESPACE_DELETE, THEIRS, "not this trial's own"),
        (Trigger.NAMESPACE_DELETE, GIVEN, "not this trial's own"),
        (Trigger.CONTAINER_KILL, UNKILLABLE, "no container of web-1"),
    ],
)
def test_a_target_for_which_it_makes_no_sense(
    verb: Trigger, target: Target, observed: str, tmp_path: Path
) -> None:
    found = look(verb, target, tmp_path)
    assert found is not None
    assert observed in found.observed
    check = preflight.trigger_possible(verb, found)
    assert (check.passed, check.hopeless) == (False, True)
    assert found.look_at in str(check)


@pytest.mark.parametrize(
    ("target", "spec", "observed"),
    [
        (WEB, {"paused": True}, "deployment web is paused"),
        (SET, {"updateStrategy": {"type": "OnDelete"}}, "statefulset web has updateStrategy"),
        (DAEMONS, {"updateStrategy": {"type": "OnDelete"}}, "daemonset web has updateStrategy"),
        (
            SET,
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}},
            "partition 2",
        ),
    ],
)
def test_a_controller_that_would_not_restart_its_pods(
    target: Target, spec: dict[str, Any], observed: str, tmp_path: Path
) -> None:
    found = look(Trigger.ROLLOUT, target, tmp_path, spec)
    assert found is not None
    assert observed in found.observed


@pytest.mark.parametrize(
    "spec",
    [
        {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}},
        {"updateStrategy": {"type": "RollingUpdate"}, "paused": False},
    ],
)
def test_a_controller_that_would(spec: dict[str, Any], tmp_path: Path) -> None:
    assert look(Trigger.ROLLOUT, SET, tmp_path, spec) is None
