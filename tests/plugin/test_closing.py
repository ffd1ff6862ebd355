"""The end of a run: what is said of it, what is cleared away, and what must not go wrong."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import pytest

from tests.plugin.conftest import run

# What is slow with workers has its like in test_relay.py, test_workers.py and test_gate.py.
WITH_WORKERS = pytest.param(["-n2"], marks=pytest.mark.slow)
WORKERS = pytest.mark.parametrize("workers", [[], WITH_WORKERS], ids=str)
ONE = "def test_it(trial): pass\n"


def runs(suite: pytest.Pytester) -> set[Path]:
    return {path for path in (suite.path / "results").iterdir() if not path.is_symlink()}


def summary(suite: pytest.Pytester) -> dict[str, object]:
    (written,) = suite.path.glob("results/2*/summary.json")
    found: dict[str, object] = json.loads(written.read_text())
    return found


VOID = """
import pytest
from pytest_drainwatch import TrialVoid

@pytest.fixture
def dw_flows(dw_flows):
    raise TrialVoid("nothing here works")

def test_it(trial): pass
"""
CANNOT_BE_COLLECTED = "import nowhere\n"


@pytest.mark.parametrize(
    ("tests", "arguments", "ret"),
    [
        ({"test_it": VOID}, [], pytest.ExitCode.TESTS_FAILED),
        ({"test_it": ONE, "test_no": CANNOT_BE_COLLECTED}, [], pytest.ExitCode.INTERRUPTED),
        ({"test_it": ONE}, ["--setup-plan"], pytest.ExitCode.OK),
        ({"test_it": ONE}, ["--collect-only"], pytest.ExitCode.OK),
    ],
    ids=["void", "not collected", "setup-plan", "collect-only"],
)
@WORKERS
def test_a_run_that_measured_nothing_removes_none_that_did(
    suite: pytest.Pytester,
    tests: dict[str, str],
    arguments: list[str],
    ret: pytest.ExitCode,
    workers: list[str],
) -> None:
    if ret is pytest.ExitCode.INTERRUPTED and workers:
        pytest.skip("workers run what could be collected, and measure")
    suite.makepyfile(test_it=ONE)
    run(suite)
    (good,) = runs(suite)
    suite.makepyfile(**tests)
    assert run(suite, "--dw-keep-runs=1", *arguments, *workers).ret == ret
    assert (good / "drain-delete" / "r00" / "report.json").exists()
    suite.makepyfile(test_it=ONE, test_no="")
    assert run(suite, "--dw-keep-runs=1", *workers).ret == 0
    assert good not in runs(suite)


def test_a_void_run_does_not_push_a_good_one_out(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=ONE)
    run(suite)
    (good,) = runs(suite)
    suite.makepyfile(test_it=VOID)
    for _ in range(2):
        run(suite)
    suite.makepyfile(test_it=ONE)
    run(suite, "--dw-keep-runs=2")
    assert good in runs(suite)
    run(suite, "--dw-keep-runs=2")
    assert good not in runs(suite)


def test_a_setup_plan_or_a_failed_collection_writes_nothing(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=ONE, test_no=CANNOT_BE_COLLECTED)
    result = suite.runpytest()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.no_fnmatch_line("*incomplete*")
    suite.runpytest("test_it.py", "--setup-plan").assert_outcomes()
    assert not (suite.path / "results").exists()


@WORKERS
def test_a_test_may_change_the_directory(suite: pytest.Pytester, workers: list[str]) -> None:
    elsewhere = suite.mkdir("elsewhere")
    suite.makepyfile(
        f"""
        import os
        import pytest
        from pytest_drainwatch import Scenario

        @pytest.mark.parametrize("scenario", [Scenario(name=f"s{{n}}") for n in range(3)])
        def test_it(trial):
            os.chdir({str(elsewhere)!r})
        """
    )
    result = run(suite, *workers, "--dw-out=there")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines_random([f"  s{n} * there/*/s{n}/r00/report.json" for n in range(3)])
    result.stdout.no_fnmatch_line("*incomplete*")
    assert list(elsewhere.iterdir()) == []
    assert len(list(suite.path.glob("there/2*/*/r00/report.json"))) == 3


@WORKERS
def test_a_path_in_an_ini_is_meant_from_the_inis_folder(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: list[str]
) -> None:
    suite.makeini("[pytest]\ndw_out = res\n")
    below = suite.mkdir("below")
    (below / "test_it.py").write_text(ONE)
    monkeypatch.chdir(below)
    run(suite, *workers).assert_outcomes(passed=1)
    assert len(list(suite.path.glob("res/2*/drain-delete/r00/report.json"))) == 1
    run(suite, *workers, "--dw-out=own").assert_outcomes(passed=1)
    assert len(list(below.glob("own/2*/drain-delete/r00/report.json"))) == 1


PROPERTIES = """
def test_mine(record_property):
    record_property("dw.stalls", "none that I saw")
    record_property("dw.x", "my own")
    record_property("dw2.scenario", "no trial")

def test_with_a_trial(record_property, trial):
    record_property("dw.stalls", "none that I saw")
    record_property("dw.x", "my own")

def test_before_it(record_property, drainwatch):
    from pytest_drainwatch import Scenario
    record_property("dw.stalls", "none that I saw")
    drainwatch(Scenario(name="later"))
"""


@WORKERS
def test_a_users_own_properties_are_his(suite: pytest.Pytester, workers: list[str]) -> None:
    suite.makepyfile(PROPERTIES)
    result = run(suite, *workers, "--junitxml=r.xml", "-o", "junit_family=xunit1")
    result.assert_outcomes(passed=3)
    result.stdout.no_fnmatch_line("*Error*")
    rows = [line for line in result.outlines if line.endswith("/report.json")]
    assert sorted(row.split()[0] for row in rows) == ["drain-delete", "later"]
    assert (suite.path / "r.xml").read_text().count('name="dw.x" value="my own"') == 2
    alone = run(suite, *workers, "-k", "test_mine")
    alone.stdout.no_fnmatch_line("*- drainwatch -*")


def test_what_goes_wrong_at_the_end_becomes_a_line(suite: pytest.Pytester) -> None:
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(
            "\n@pytest.fixture(autouse=True)\n"
            "def broken(measured, request):\n"
            "    import pytest_drainwatch.repeats.summary as summary\n"
            "    import pytest_drainwatch.render.overload as overload\n"
            "    patch = pytest.MonkeyPatch()\n"
            "    request.config.add_cleanup(patch.undo)\n"
            "    patch.setattr(summary, 'dumps', None)\n"
            "    patch.setattr(overload, 'advice', None)\n"
        )
    suite.makepyfile(ONE)
    result = run(suite)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "  drain-delete *report.json",
            "stalls cannot be shown: TypeError: *",
            "summary.json is not written: TypeError: *",
        ]
    )


@WORKERS
def test_quiet_is_not_silent_about_what_is_wrong(
    suite: pytest.Pytester, workers: list[str]
) -> None:
    suite.makepyfile(test_it=VOID)
    result = run(suite, "-q", *workers)
    result.stdout.fnmatch_lines(["incomplete: 1 of 1 trials were not measured: results/*"])
    suite.makepyfile(test_it=ONE)
    fine = run(suite, "-q", *workers)
    fine.stdout.no_fnmatch_line("*- drainwatch -*")
    suite.makepyfile(
        test_it="""
        def test_it(trial):
            (trial.folder.parents[1] / "summary.json").mkdir()
        """
    )
    unwritable = run(suite, "-q", *workers)
    unwritable.assert_outcomes(passed=1)
    unwritable.stdout.fnmatch_lines(["summary.json is not written: *"])


KILLED = """
import os
import signal
import time
from pytest_drainwatch import Scenario

def test_body(drainwatch):
    drainwatch(Scenario(name="first"))
    os.kill(os.getpid(), signal.SIGKILL)
    drainwatch(Scenario(name="second"))
"""
KILLED_JUDGING = """
import os
import signal

def test_setup(trial):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("tests", "name", "complete"),
    [(KILLED, "first", False), (KILLED_JUDGING, "drain-delete", True)],
    ids=["in its body", "in setup"],
)
def test_what_a_killed_process_measured_has_its_row_and_what_it_may_have_is_missed(
    suite: pytest.Pytester, tests: str, name: str, complete: bool
) -> None:
    suite.makepyfile(tests)
    result = run(suite, "-n2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"  {name}: not judged * results/*/{name}/r00/report.json"])
    assert summary(suite)["complete"] is complete
    if not complete:
        result.stdout.fnmatch_lines(["incomplete: 1 of 2 trials were not measured"])


def test_an_expected_failure_hides_no_void_trial(suite: pytest.Pytester) -> None:
    suite.makepyfile(VOID.replace("def test_it", "@pytest.mark.xfail\ndef test_it"))
    result = suite.runpytest()
    result.assert_outcomes(xfailed=1)
    result.stdout.fnmatch_lines(["incomplete: 1 of 1 trials were not measured"])


FAILS_FIRST = """
from pathlib import Path

def test_it(trial):
    first = not Path("again").exists()
    Path("again").touch()
    assert not first
"""


@WORKERS
def test_the_json_report_has_every_attempt(suite: pytest.Pytester, workers: list[str]) -> None:
    suite.makepyfile(FAILS_FIRST)
    result = run(suite, *("--reruns=1", "--json-report", "--json-report-file=r.json", *workers))
    assert result.ret == 0
    trials = json.loads((suite.path / "r.json").read_text())["drainwatch"]["trials"]
    assert [(t["attempt"], t["outcome"]) for t in trials] == [(1, "failed"), (2, "passed")]
    assert {t["nodeid"].partition("::")[2] for t in trials} == {"test_it"}
    assert len({t["report"] for t in trials}) == 2
    assert [t["stalls"] for t in trials] == [0, 0]


def test_with_dist_each_a_tests_runs_are_no_attempts(suite: pytest.Pytester) -> None:
    suite.makepyfile(ONE)
    result = run(suite, "-n2", "--dist=each")
    result.assert_outcomes(passed=2)
    rows = [line for line in result.outlines if line.endswith("/report.json")]
    assert [row.split()[0] for row in rows] == ["drain-delete", "drain-delete"]
    result.stdout.no_fnmatch_line("*attempt 2*")


def test_the_marker_says_what_it_takes(suite: pytest.Pytester) -> None:
    suite.runpytest("--markers").stdout.fnmatch_lines(["@pytest.mark.trial(repeat=N): *"])


def test_a_run_that_measures_nothing_asks_for_no_cluster(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor for settings, of which nobody gave any."""
    for name in [name for name in os.environ if name.startswith("DW_")]:
        monkeypatch.delenv(name)
    telling = ("telling.closing", "telling.gate", "telling.told")
    dear = ("cluster", "settings", "core.interval", "planning.planned", *telling)
    for name in dear:  # a module that was moved is not one that was spared
        assert importlib.util.find_spec(f"pytest_drainwatch.{name}") is not None
    pytester.makepyfile(
        f"""
        import sys

        def test_unrelated():
            dear = {dear!r}
            assert not {{f"pytest_drainwatch.{{name}}" for name in dear}} & set(sys.modules)
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:xdist", "-p", "no:json-report")
    result.assert_outcomes(passed=1)
    (said,) = (line for line in result.outlines if line.startswith("drainwatch: "))
    assert "cluster" not in said
