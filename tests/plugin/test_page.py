"""A run that measured leaves a page, and says where it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.conftest import run

ONE = "def test_it(trial): pass\n"
TWO = """
import pytest
from pytest_drainwatch import Scenario

@pytest.mark.parametrize("scenario", [Scenario(), Scenario(name="other")])
def test_it(trial):
    assert trial.scenario.id == "other"
"""


def page(suite: pytest.Pytester) -> Any:
    """The data of the one page."""
    (written,) = suite.path.glob("results/2*/report.html")
    found = re.search(r'id="data">(.*?)</script>', written.read_text(), re.S)
    assert found is not None
    return json.loads(found[1])


@pytest.mark.parametrize(
    "workers", [[], pytest.param(["-n2"], marks=pytest.mark.slow)], ids=["", "-n2"]
)
def test_the_page_has_every_trial_with_the_outcome_of_its_test(
    suite: pytest.Pytester, workers: list[str]
) -> None:
    suite.makepyfile(TWO)
    result = run(suite, *workers)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["page: results/*/report.html"])
    found = page(suite)
    assert {trial["id"]: trial["outcome"] for trial in found["trials"]} == {
        "drain-delete/r00": "failed",
        "other/r00": "passed",
    }
    assert found["run"]["complete"] is True
    (written,) = suite.path.glob("results/2*")
    for trial in found["trials"]:
        assert (written / trial["report"]).is_file()


def test_it_is_written_with_q_too_and_its_line_is_not(suite: pytest.Pytester) -> None:
    suite.makepyfile(ONE)
    result = run(suite, "-q")
    result.stdout.no_fnmatch_line("*report.html*")
    assert len(page(suite)["trials"]) == 1


def test_a_run_that_measured_nothing_has_none(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        "import pytest\nfrom pytest_drainwatch import TrialVoid\n"
        "@pytest.fixture\ndef dw_flows(dw_flows): raise TrialVoid('nothing works')\n" + ONE
    )
    run(suite).assert_outcomes(errors=1)
    assert not list(suite.path.glob("results/2*/report.html"))


def test_a_page_that_cannot_be_written_is_a_line(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        def test_it(trial):
            (trial.folder.parent.parent / "report.html").mkdir()
        """
    )
    result = run(suite)
    result.assert_outcomes(passed=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["no page is written: RecorderError: cannot write *report.html*"])
    (folder,) = suite.path.glob("results/2*")
    assert (folder / "summary.json").is_file()


def test_with_a_baseline_the_page_compares(suite: pytest.Pytester) -> None:
    suite.makepyfile(ONE)
    run(suite, "--dw-out=before").assert_outcomes(passed=1)
    run(suite, "--dw-baseline=before/latest", "--dw-fail-on=never")
    found = page(suite)
    assert found["run"]["comparison"]["verdict"] == "insufficient-evidence"
    assert Path(found["run"]["comparison"]["baseline"]).parent.name == "before"


def test_a_baseline_of_something_else_is_said_on_the_page(suite: pytest.Pytester) -> None:
    suite.makepyfile(ONE)
    run(suite, "--dw-out=before").assert_outcomes(passed=1)
    suite.makepyfile(
        "from pytest_drainwatch import Scenario, matrix\nimport pytest\n"
        "@pytest.mark.parametrize('scenario', [Scenario(name='else')])\n" + ONE
    )
    result = run(suite, "--dw-baseline=before/latest", "--dw-fail-on=never")
    result.assert_outcomes(passed=1)
    comparison = page(suite)["run"]["comparison"]
    assert comparison["verdict"] == "no comparison"
    assert "no scenario in common" in comparison["text"]
