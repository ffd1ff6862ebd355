"""``--dw-baseline`` and ``--dw-fail-on`` in a run."""

from __future__ import annotations

from pathlib import Path

import pytest

ONE = """
import pytest
from pytest_drainwatch import App, Behavior, Scenario

@pytest.mark.parametrize("scenario", [Scenario(name="x", app=App(behavior=Behavior.{behavior}))])
def test_it(trial): pass
"""


@pytest.fixture
def baseline(suite: pytest.Pytester) -> Path:
    """Five trials that drained."""
    suite.makepyfile(test_x=ONE.format(behavior="DRAIN"))
    suite.runpytest("--dw-repeat=5", "--dw-out=before").assert_outcomes(passed=5)
    (run,) = (path for path in (suite.path / "before").iterdir() if not path.is_symlink())
    return run


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=str)
def test_a_run_that_is_as_good_passes(
    suite: pytest.Pytester, baseline: Path, workers: list[str]
) -> None:
    result = suite.runpytest_subprocess("--dw-repeat=5", f"--dw-baseline={baseline}", *workers)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*- drainwatch: baseline -*", "*no-change*"])
    result.stdout.no_fnmatch_line("*the run fails*")


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=str)
def test_a_run_in_which_less_drains_fails_though_its_tests_pass(
    suite: pytest.Pytester, baseline: Path, workers: list[str]
) -> None:
    lost = ONE.format(behavior="DRAIN") + LOST
    suite.makepyfile(test_x=lost)
    arguments = ("--dw-repeat=5", f"--dw-baseline={baseline}", *workers)
    result = suite.runpytest_subprocess(*arguments)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["*regression*", "the run fails for it (--dw-fail-on=regression)"])
    assert suite.runpytest_subprocess(*arguments, "--dw-fail-on=never").ret == 0
    quiet = suite.runpytest_subprocess(*arguments, "-q")
    quiet.stdout.fnmatch_lines(["*regression*"])


# The instrument says that every connection was reset, under the same configuration.
LOST = """
@pytest.fixture(autouse=True)
def lost(measured, monkeypatch):
    from dataclasses import replace
    import pytest_drainwatch.trial as conductor
    from pytest_drainwatch import report
    from pytest_drainwatch.recorder import write_atomic
    whole = conductor.measure
    def measure(held):
        asked, folder = held
        exits = replace(asked, app=replace(asked.app, behavior=Behavior.EXIT_NOW))
        trial = whole((exits, folder))
        kept = whole(held)
        changed = replace(trial.report, trial=replace(
            trial.report.trial, config=kept.report.trial.config, scenario=asked.id
        ))
        write_atomic(folder / "report.json", report.dumps(changed))
        return replace(kept, report=changed)
    monkeypatch.setattr(conductor, "measure", measure)
"""


def test_one_trial_is_not_evidence_and_fails_only_if_asked_to(
    suite: pytest.Pytester, baseline: Path
) -> None:
    result = suite.runpytest(f"--dw-baseline={baseline}")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*insufficient-evidence*"])
    strict = suite.runpytest(f"--dw-baseline={baseline}", "--dw-fail-on=insufficient-evidence")
    assert strict.ret == pytest.ExitCode.TESTS_FAILED


def test_a_baseline_that_is_none_is_a_usage_error_before_anything_starts(
    suite: pytest.Pytester,
) -> None:
    suite.makepyfile(test_x=ONE.format(behavior="DRAIN"))
    result = suite.runpytest("--dw-baseline=nowhere")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --dw-baseline=nowhere: *"])
    assert not (suite.path / "results").exists()


# The same on another Kubernetes.
ELSEWHERE = """
@pytest.fixture(autouse=True)
def elsewhere(measured, monkeypatch):
    from dataclasses import replace
    import pytest_drainwatch.trial as conductor
    from pytest_drainwatch import report
    from pytest_drainwatch.recorder import write_atomic
    whole = conductor.measure
    def measure(held):
        trial = whole(held)
        there = replace(trial.report.environment, kubernetes_version="v1.30.0")
        changed = replace(trial.report, environment=there)
        write_atomic(trial.folder / "report.json", report.dumps(changed))
        return replace(trial, report=changed)
    monkeypatch.setattr(conductor, "measure", measure)
"""


def test_what_cannot_be_compared_is_no_pass(suite: pytest.Pytester, baseline: Path) -> None:
    suite.makepyfile(test_x=ONE.format(behavior="DRAIN") + ELSEWHERE)
    result = suite.runpytest("--dw-repeat=5", f"--dw-baseline={baseline}")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["no comparison: *kubernetes_version*", "the run fails for it*"])
    never = suite.runpytest("--dw-repeat=5", f"--dw-baseline={baseline}", "--dw-fail-on=never")
    assert never.ret == 0


def test_old_runs_are_removed_and_a_baseline_among_them_is_not(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_x=ONE.format(behavior="DRAIN"))
    suite.runpytest_subprocess()
    (first,) = (path for path in (suite.path / "results").iterdir() if not path.is_symlink())
    kept = suite.runpytest_subprocess("--dw-keep-runs=1", f"--dw-baseline={first}")
    kept.stdout.fnmatch_lines(["no old run was removed: the baseline is one of them *"])
    assert first.exists()
    suite.runpytest_subprocess("--dw-keep-runs=1")
    assert not first.exists()
    assert len([p for p in (suite.path / "results").iterdir() if not p.is_symlink()]) == 1
