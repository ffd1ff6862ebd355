"""What a phase that cannot go on says: why, and where to look."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_drainwatch.core.start import CannotDerive
from pytest_drainwatch.flows.process import AgentFailed
from pytest_drainwatch.preflight import TrialVoid
from pytest_drainwatch.workload import probe
from tests.conductor.test_interrupts import stage


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "evidence", lambda *_: ())


@pytest.mark.parametrize(
    "error", [AgentFailed("the flow agent ended"), CannotDerive("one flow is lost")], ids=str
)
def test_who_names_no_command_leaves_what_was_recorded(error: Exception, tmp_path: Path) -> None:
    said = f"void in phase 'observe': {error}. Look at: tail -n 5 {tmp_path / 'recording.jsonl'}"
    with pytest.raises(TrialVoid) as caught, stage(tmp_path).phase("observe"):
        raise error
    assert str(caught.value) == said
    assert (tmp_path / "recording.jsonl").read_text().count('"void"') == 1


def test_who_names_one_is_left_as_he_is(tmp_path: Path) -> None:
    with pytest.raises(TrialVoid) as caught, stage(tmp_path).phase("observe"):
        raise AgentFailed("it did not stop. Look at: the machine's load")
    assert (
        str(caught.value) == "void in phase 'observe': it did not stop. Look at: the machine's load"
    )


def test_whatever_ends_a_phase_nothing_moves_on_the_screen_after_it(tmp_path: Path) -> None:
    trial, rests = stage(tmp_path), list[int]()
    trial.progress.rest = lambda: rests.append(1)  # type: ignore[method-assign]
    with trial.phase("prepare"):
        pass
    with pytest.raises(TrialVoid), trial.phase("observe"):
        raise TrialVoid("x")
    with pytest.raises(KeyboardInterrupt), trial.phase("observe"):
        raise KeyboardInterrupt
    assert len(rests) == 3
