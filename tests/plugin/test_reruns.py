"""A failed trial that is run again and passes is not forgotten."""

from __future__ import annotations

import json

import pytest

FLAKY = """
import pytest
from pathlib import Path
from pytest_drainwatch import Scenario, TrialVoid

@pytest.mark.parametrize("scenario", [Scenario(name="one")])
def test_flaky(trial):
    assert len(list(trial.folder.parent.iterdir())) == 2, "the first time"

def test_steady(trial): pass

@pytest.fixture
def voided():
    if not Path("void").exists():
        Path("void").touch()
        raise TrialVoid("nothing was measured")

def test_void(voided, drainwatch):
    drainwatch(Scenario(name="two"))

def test_plain():
    if not Path("plain").exists():
        Path("plain").touch()
        assert False
"""
WORKERS = pytest.mark.parametrize("workers", [[], ["-n2"], ["-n2", "--dist=worksteal"]], ids=str)


@WORKERS
def test_every_attempt_has_its_folder_its_row_and_a_line(
    suite: pytest.Pytester, workers: list[str]
) -> None:
    suite.makepyfile(FLAKY)
    result = suite.runpytest_subprocess("--reruns=1", *workers)
    assert result.ret == 0
    assert result.parseoutcomes()["rerun"] == 3
    result.stdout.fnmatch_lines_random(
        [
            "*one r00: failed *one/r00/report.json",
            "*one r00 attempt 2: passed *one/r00.2/report.json",
            "  drain-delete  *drain-delete/r00/report.json",
            "*two r00 attempt 2: passed *two/r00/report.json",
            "2 trial(s) failed and were run again: *",
        ]
    )
    told = result.stdout.str()
    (line,) = (each for each in told.splitlines() if "failed and were run again" in each)
    assert "test_flaky[one]" in line
    assert "test_void" in line
    assert "test_plain" not in line, "it measures nothing"
    (written,) = suite.path.glob("results/2*/summary.json")
    attempts = [(t["scenario"], t["attempt"]) for t in json.loads(written.read_text())["trials"]]
    assert attempts.count(("one", 1)) == 1
    assert attempts.count(("one", 2)) == 1


def test_without_reruns_nothing_is_said_of_them(suite: pytest.Pytester) -> None:
    suite.makepyfile(FLAKY)
    result = suite.runpytest()
    result.assert_outcomes(passed=1, failed=2, errors=1)
    result.stdout.no_fnmatch_line("*run again*")
    result.stdout.no_fnmatch_line("*attempt*")
