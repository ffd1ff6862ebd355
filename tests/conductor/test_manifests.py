"""What a scenario becomes in the probe's manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.scenario import (
    Accept,
    Access,
    Affinity,
    App,
    Controller,
    Pid1,
    PreStop,
    Service,
    TrafficPolicy,
)
from pytest_drainwatch.workload import manifests

ROOT = Path(__file__).resolve().parents[2]


def container(**app: Any) -> dict[str, Any]:
    found: Any = manifests.deployment(App(**app), "image")
    return dict(found["spec"]["template"]["spec"]["containers"][0])


def test_by_default_the_image_decides_what_runs_and_nothing_precedes_sigterm() -> None:
    shown = container()
    assert "command" not in shown
    assert "lifecycle" not in shown
    assert {"name": "RESPONSE_DELAY", "value": "0.000ms"} in shown["env"]


@pytest.mark.parametrize(
    ("hook", "action"),
    [
        (PreStop(sleep_s=0), {"sleep": {"seconds": 0}}),
        (PreStop(sleep_s=3), {"sleep": {"seconds": 3}}),
        (
            PreStop(http_ns=1500 * NS_PER_MS),
            {"httpGet": {"path": "/prestop?ms=1500", "port": manifests.HTTP_PORT}},
        ),
        (PreStop(exec=("sleep", "3")), {"exec": {"command": ["sleep", "3"]}}),
    ],
)
def test_each_hook_is_one_action(hook: PreStop, action: dict[str, Any]) -> None:
    assert container(pre_stop=hook)["lifecycle"] == {"preStop": action}


def test_a_shell_as_pid_1_has_something_left_to_do() -> None:
    """Else it would become the probe, and the probe PID 1."""
    shell, option, script = container(pid1=Pid1.SHELL)["command"]
    assert (shell, option) == ("sh", "-c")
    assert script.endswith("; true")


def test_the_delay_of_replies_is_the_probes_setting() -> None:
    shown = container(response_delay_ns=1_234_567)
    assert {"name": "RESPONSE_DELAY", "value": "1.235ms"} in shown["env"]


def test_every_image_says_how_its_probe_is_started() -> None:
    """What its own entry point does, for where a shell is to be PID 1."""
    lines = (ROOT / "probe_image" / "Dockerfile").read_text().splitlines()
    (said,) = [line for line in lines if line.startswith("ENV DRAINWATCH_PROBE=")]
    (entry,) = [line for line in lines if line.startswith("ENTRYPOINT ")]
    assert said.split("=", 1)[1] == f'"{" ".join(json.loads(entry.split(" ", 1)[1]))}"'
    assert "${DRAINWATCH_PROBE:?" in manifests.SHELL[-1]


def test_a_service_says_what_the_scenario_says() -> None:
    plain: Any = manifests.service(Service())
    assert plain["spec"]["type"] == "NodePort"
    assert plain["spec"]["externalTrafficPolicy"] == "Cluster"
    assert plain["spec"]["sessionAffinity"] == "None"
    assert plain["spec"]["publishNotReadyAddresses"] is False
    asked: Any = manifests.service(
        Service(
            external_traffic_policy=TrafficPolicy.LOCAL,
            session_affinity=Affinity.CLIENT_IP,
            publish_not_ready_addresses=True,
        )
    )
    assert asked["spec"]["externalTrafficPolicy"] == "Local"
    assert asked["spec"]["sessionAffinity"] == "ClientIP"
    assert asked["spec"]["publishNotReadyAddresses"] is True


def test_a_cluster_ip_has_no_policy_for_traffic_from_outside() -> None:
    """The API server refuses one that has."""
    inside: Any = manifests.service(Service(access=Access.CLUSTER_IP))
    assert inside["spec"]["type"] == "ClusterIP"
    assert "externalTrafficPolicy" not in inside["spec"]


def test_each_controller_keeps_the_same_pods() -> None:
    deployment: Any = manifests.workload(App(replicas=3), "image")
    stateful: Any = manifests.workload(App(replicas=3, controller=Controller.STATEFUL_SET), "image")
    assert (deployment["kind"], stateful["kind"]) == ("Deployment", "StatefulSet")
    for shared in ("replicas", "selector", "template"):
        assert deployment["spec"][shared] == stateful["spec"][shared]
    assert stateful["spec"]["podManagementPolicy"] == "Parallel"
    assert stateful["spec"]["serviceName"] == manifests.NAME
    rolling = deployment["spec"]["strategy"]["rollingUpdate"]
    assert rolling == {"maxUnavailable": 0, "maxSurge": 1}


@pytest.mark.parametrize("accept", list(Accept))
def test_whether_it_accepts_while_it_drains_is_the_probes_setting(accept: Accept) -> None:
    assert {"name": "ACCEPT_ON_DRAIN", "value": str(accept)} in container(accept_on_drain=accept)[
        "env"
    ]


def test_pods_are_watched_whatever_labels_they_have() -> None:
    """A webhook may strip them (case C33); only the client's pod is none of the workload's."""
    assert f"app.kubernetes.io/name!={manifests.CLIENT}" == manifests.POD_SELECTOR
    assert manifests.LABELS["app.kubernetes.io/name"] != manifests.CLIENT


def test_a_pod_may_take_its_time_to_become_ready() -> None:
    assert container()["readinessProbe"]["initialDelaySeconds"] == 0
    assert container(ready_after_s=7)["readinessProbe"]["initialDelaySeconds"] == 7
