"""The controls' verdicts: each can say no."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_drainwatch.controls import CONTROLS, Control, nothing_lost
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.core.flow.classify import Outcome
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.doctor import told
from tests.core import story as s
from tests.core.tries import Try, prober, tries


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


def calm(*tries: list[Try], also: tuple[Observation, ...] = ()) -> TrialReport:
    """Nothing was terminated, and the flows are open at the end."""
    flows = [
        *s.alive("tcp-0001", 59_990),
        s.client(Event.FLOW_OPEN_AT_END, "tcp-0001", s.at(59_995), sent=1),
    ]
    frames = [s.endpoints(-100, (s.OLD, True, True, False)), s.pod(s.OLD, -6000)]
    tried = prober(*tries)
    return derive(s.recording([s.accepted(verb="none")], flows, frames, tried, also)).trial


def test_nothing_lost_means_that_all_of_it_is_known() -> None:
    ordinary = tries(-500, 300)
    assert nothing_lost(calm(ordinary)) == []
    for part, said in (
        (tries(1000, 1, Result.UNFINISHED), "1 unfinished"),
        (tries(1000, 2, Result.CLIENT_LIMIT), "2 client-limit"),
        (tries(-600, 1, Result.CLIENT_LIMIT), "1 client-limit"),
        (tries(-600, 3, Result.REFUSED), "3 attempt(s) failed before the trigger"),
        (tries(-2600, 1, Result.UNFINISHED, took_ms=1), "1 unfinished"),
        (tries(1000, 1, Result.REFUSED), "1 of 201 new connections"),
    ):
        assert any(said in line for line in nothing_lost(calm(ordinary, part))), said
    whole = calm(ordinary)
    (found,) = whole.new_connections
    for lost, said in ((3, "3 attempt(s) lost"), (None, "an unknown number of attempts lost")):
        lossy = replace(whole, new_connections=(replace(found, lost=lost),))
        assert any(said in line for line in nothing_lost(lossy))


@pytest.mark.parametrize("name", ["control-closed", "control-reset", "control-survivor"])
def test_udp_is_judged_where_its_end_is_determined(name: str) -> None:
    control = next(one for one in CONTROLS if one.name == name)
    trial = judged()
    (udp,) = [flow for flow in trial.flows if flow.proto is Proto.UDP]
    wrong = [
        o for o in Outcome if any(udp.id in line for line in control.judge(with_udp(trial, o)))
    ]
    right = {Outcome.SURVIVED if name == "control-survivor" else Outcome.SEVERED}
    assert set(Outcome) - set(wrong) == right


def with_udp(trial: TrialReport, outcome: Outcome) -> TrialReport:
    flows = [replace(f, outcome=outcome) if f.proto is Proto.UDP else f for f in trial.flows]
    return replace(trial, flows=tuple(flows))
