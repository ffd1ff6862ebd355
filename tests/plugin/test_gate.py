"""``--dw-baseline``, ``--dw-fail-on`` and ``--dw-across`` in a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_drainwatch.telling.gate import in_our_words
from tests.plugin.conftest import run

WITH_WORKERS = pytest.param(["-n2"], marks=pytest.mark.slow)
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
    (made,) = (path for path in (suite.path / "before").iterdir() if not path.is_symlink())
    return made


@pytest.mark.parametrize("workers", [[], WITH_WORKERS], ids=str)
def test_a_run_that_is_as_good_passes(
    suite: pytest.Pytester, baseline: Path, workers: list[str]
) -> None:
    result = run(suite, "--dw-repeat=5", f"--dw-baseline={baseline}", *workers)
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
    result = run(suite, *arguments)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["*regression*", "the run fails for it (--dw-fail-on=regression)"])


def test_who_fails_on_nothing_passes_and_a_run_that_fails_says_so_with_q(
    suite: pytest.Pytester, baseline: Path
) -> None:
    suite.makepyfile(test_x=ONE.format(behavior="DRAIN") + LOST)
    arguments = ("--dw-repeat=5", f"--dw-baseline={baseline}")
    assert run(suite, *arguments, "--dw-fail-on=never").ret == 0
    quiet = run(suite, *arguments, "-q")
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
    result.stdout.fnmatch_lines(["*nevertheless with: --dw-across=kubernetes_version"])
    never = suite.runpytest("--dw-repeat=5", f"--dw-baseline={baseline}", "--dw-fail-on=never")
    assert never.ret == 0


@pytest.mark.parametrize("workers", [[], WITH_WORKERS], ids=str)
def test_a_condition_that_may_differ_is_named_and_shown(
    suite: pytest.Pytester, baseline: Path, workers: list[str]
) -> None:
    suite.makepyfile(test_x=ONE.format(behavior="DRAIN") + ELSEWHERE)
    arguments = ("--dw-repeat=5", f"--dw-baseline={baseline}", *workers)
    assert run(suite, *arguments).ret == pytest.ExitCode.TESTS_FAILED
    result = run(suite, *arguments, "--dw-across=cpus,kubernetes_version")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*no-change*", "*compared across: *kubernetes_version*v1.30.0*"])


def test_a_condition_that_no_report_has_is_refused_before_anything_starts(
    suite: pytest.Pytester, baseline: Path
) -> None:
    result = suite.runpytest(f"--dw-baseline={baseline}", "--dw-across=weather")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *--dw-across=weather: no report has such a condition*"])
    assert not (suite.path / "results").exists()


def test_several_fields_are_named_as_pytest_takes_them() -> None:
    said = "compare nevertheless with: --across cpus --across kernel. More."
    assert in_our_words(said) == "compare nevertheless with: --dw-across=cpus,kernel. More."
    assert in_our_words("other words") == "other words"


NOTHING = """
import pytest

@pytest.mark.skip(reason="not today")
def test_it(trial): pass
"""
STRICT = "--dw-fail-on=regression,insufficient-evidence"


@pytest.mark.parametrize("workers", [[], WITH_WORKERS], ids=str)
@pytest.mark.parametrize("tests", [NOTHING, "def test_it(): pass"], ids=["skipped", "none"])
def test_a_run_that_measured_nothing_does_not_pass_the_gate(
    suite: pytest.Pytester, baseline: Path, tests: str, workers: list[str]
) -> None:
    suite.makepyfile(test_x=tests)
    arguments = (f"--dw-baseline={baseline}", "-q", *workers)
    for more in ((STRICT,), ()):
        result = run(suite, *arguments, *more)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.stdout.fnmatch_lines(["no comparison: nothing was measured*", "the run fails*"])
    assert run(suite, *arguments, "--dw-fail-on=never").ret == 0


@pytest.mark.parametrize("workers", [[], WITH_WORKERS], ids=str)
def test_a_baseline_of_the_ini_is_about_runs_that_measure(
    suite: pytest.Pytester, workers: list[str]
) -> None:
    suite.makeini("[pytest]\ndw_baseline = before\n")
    suite.makepyfile(test_plain="def test_plain(): pass", test_x=ONE.format(behavior="DRAIN"))
    plain = run(suite, "test_plain.py", *workers)
    plain.assert_outcomes(passed=1)
    plain.stdout.no_fnmatch_line("*- drainwatch*")
    there = run(suite, *workers)
    assert there.ret == pytest.ExitCode.USAGE_ERROR
    said = "ERROR: --dw-baseline=before (ini): *no such folder*one is made by: *"
    there.stderr.fnmatch_lines([said])
    assert not list(suite.path.glob("results/*/*/*"))
    # What the error says to do.
    made = run(suite, *("-o", "dw_baseline=", "--dw-repeat=5", "--dw-out=made", *workers))
    assert made.ret == 0
    (suite.path / "made" / "latest").resolve().rename(suite.path / "before")
    judged = run(suite, "--dw-repeat=5", *workers)
    assert judged.ret == 0
    judged.stdout.fnmatch_lines(["*no-change*"])


@pytest.mark.parametrize("look", ["--collect-only", "--setup-plan"])
def test_who_only_looks_needs_no_baseline(suite: pytest.Pytester, look: str) -> None:
    suite.makepyfile(test_x=ONE.format(behavior="DRAIN"))
    assert suite.runpytest("--dw-baseline=nowhere", look).ret == 0


def test_what_does_nothing_without_a_baseline_is_said(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_x=ONE.format(behavior="DRAIN"))
    result = suite.runpytest("--dw-fail-on=regression")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --dw-fail-on is about the comparison *--dw-baseline=DIR*"])
    suite.makeini("[pytest]\ndw_fail_on = insufficient-evidence\n")
    noted = suite.runpytest()
    noted.assert_outcomes(passed=1)
    noted.stdout.fnmatch_lines(["drainwatch: note: fail-on (ini) does nothing without a baseline"])


@pytest.mark.parametrize("workers", [[], WITH_WORKERS], ids=str)
def test_the_json_report_says_what_the_gate_says(
    suite: pytest.Pytester, baseline: Path, workers: list[str]
) -> None:
    arguments = ("--json-report", "--json-report-file=r.json", f"--dw-baseline={baseline}")
    for verdict, more in (("no-change", ("--dw-repeat=5",)), ("insufficient-evidence", (STRICT,))):
        result = run(suite, *arguments, *more, *workers)
        document = json.loads((suite.path / "r.json").read_text())
        assert document["exitcode"] == result.ret
        judged = document["drainwatch"]["baseline"]
        assert judged["verdict"] == verdict
        assert judged["fails"] is (verdict != "no-change") is bool(result.ret)
    assert run(suite, *arguments[:2]).ret == 0
    assert "baseline" not in json.loads((suite.path / "r.json").read_text())["drainwatch"]


def test_old_runs_are_removed_and_a_baseline_among_them_is_not(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_x=ONE.format(behavior="DRAIN"))

    def runs() -> set[Path]:
        return {path for path in (suite.path / "results").iterdir() if not path.is_symlink()}

    run(suite)
    (first,) = runs()
    run(suite)
    (second,) = runs() - {first}
    run(suite, "--dw-keep-runs=1", f"--dw-baseline={first}")
    (third,) = runs() - {first}
    assert third != second
    run(suite, "--dw-keep-runs=1")
    (fourth,) = runs()
    assert fourth not in {first, second, third}
