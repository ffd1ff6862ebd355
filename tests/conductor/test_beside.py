"""A cluster start beside a trial is recorded once, and the report says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_drainwatch.beside import LOOK_NS, Beside
from pytest_drainwatch.cluster.embedded.starts import STARTS
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.scenario import Scenario
from tests.core import story as s
from tests.core.trials import recording_of


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Time that stands still until it is moved."""
    now = [100 * NS_PER_S]
    monkeypatch.setenv("DW_STATE", str(tmp_path))
    monkeypatch.setattr("time.monotonic_ns", lambda: now[0])
    return now


def watching(provider: str = "embedded") -> tuple[Beside, list[Observation]]:
    recorded: list[Observation] = []
    stage: Any = SimpleNamespace(
        recorder=recorded.append, cluster=SimpleNamespace(provider=provider)
    )
    return Beside(stage), recorded


def test_the_first_one_is_recorded_and_no_other(clock: list[int]) -> None:
    looking, recorded = watching()
    clock[0] += LOOK_NS
    looking.look()
    assert recorded == []
    with STARTS.turn(lambda _: None):
        clock[0] += LOOK_NS - 1
        looking.look()
        assert recorded == [], "it looks once a second"
        clock[0] += 1
        looking.look()
        clock[0] += LOOK_NS
        looking.look()
    (seen,) = recorded
    assert (seen.event, seen.data) == (Event.CLUSTER_START_BESIDE, {"starts": 1})
    assert seen.at == Interval(clock[0] - 2 * LOOK_NS, clock[0] - LOOK_NS)


def test_a_cluster_elsewhere_is_disturbed_by_none(clock: list[int]) -> None:
    looking, recorded = watching("kind")
    with STARTS.turn(lambda _: None):
        clock[0] += LOOK_NS
        looking.look()
    assert recorded == []


def test_a_row_that_cannot_be_read_is_nobody(clock: list[int], tmp_path: Path) -> None:
    looking, recorded = watching()
    (tmp_path / "starts").touch()
    clock[0] += LOOK_NS
    looking.look()
    assert recorded == []


def test_the_report_says_so() -> None:
    recording = recording_of(Scenario())
    quiet = derive(recording).trial
    assert not any("started on this machine" in said for said in (*quiet.notes, *quiet.degraded))
    seen = Observation(
        source=Source.ORCHESTRATOR,
        event=Event.CLUSTER_START_BESIDE,
        at=Interval(s.T0 + 1 * NS_PER_S, s.T0 + 2 * NS_PER_S),
        data={"starts": 2},
    )
    found = derive(replace(recording, observations=(*recording.observations, seen))).trial
    (note,) = (said for said in found.notes if "started on this machine" in said)
    assert note.startswith("2 cluster(s) started on this machine while the trial measured")
    (reason,) = found.degraded
    assert reason.startswith("2 cluster(s) started on this machine")
