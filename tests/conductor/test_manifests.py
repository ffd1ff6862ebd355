"""What a scenario becomes in the probe's manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.scenario import App, Pid1, PreStop
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
