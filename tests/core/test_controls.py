"""The controls' verdicts: each can say no."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_drainwatch.controls import CONTROLS, Control, nothing_lost
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.doctor import told
from tests.core import story as s


def judged() -> TrialReport:
    """A pod was deleted, and its flows were severed."""
    flows = [*s.alive("tcp-0001", 99), *s.alive("udp-0001", 99)]
    return derive(s.recording([s.accepted()], flows, s.cluster())).trial


@pytest.mark.parametrize("control", CONTROLS, ids=[control.name for control in CONTROLS])
def test_a_trial_without_flows_or_attempts_shows_nothing(control: Control) -> None:
    empty: Any = replace(judged(), flows=(), new_connections=())
    assert control.judge(empty)


def test_what_is_wrong_is_told_with_its_control() -> None:
    control = CONTROLS[0]
    assert list(told(control, ["tcp-0001 is severed"])) == [
        f"✗ {control.name}: {control.shows}",
        "    tcp-0001 is severed",
    ]
    assert list(told(control, [])) == [f"✓ {control.name}: {control.shows}"]


def test_nothing_lost_means_every_request() -> None:
    trial = judged()
    lossy = [replace(flow, unanswered=2, continuity=None) for flow in trial.flows]
    assert any(
        "lost 1 request" in line for line in nothing_lost(replace(trial, flows=tuple(lossy)))
    )
