"""What a tired person reads of a broken promise and of a void trial, whatever pytest was told."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

BROKEN = """
from pytest_drainwatch import App, Scenario
import pytest

@pytest.mark.parametrize("scenario", [Scenario(app=App(behavior="exit-now"))])
def test_nobody_is_cut_off(trial):
    print("what the test wrote")
    assert trial.tcp.drained == trial.tcp.total
"""
SECTION = [
    "*- drainwatch: exit-now-delete -*",
    "tcp: 1/1 rst, * after the trigger, * SIGTERM",
    "  why: the app ended by itself *",
    "  try: handle SIGTERM: *",
    "page: results/*/report.html#/trial/exit-now-delete%2Fr00",
    "all of it: drainwatch show results/*/exit-now-delete/r00/report.json",
]


@pytest.mark.parametrize(
    "more",
    [
        *([], ["--tb=short"], ["--tb=native"], ["-rA"], ["-q"], ["-s"]),
        pytest.param(
            ["--tb=line"],
            marks=pytest.mark.skipif(
                pytest.version_tuple < (9, 2), reason="pytest 8.4 shows no more than the line"
            ),
        ),
        *(["--show-capture=no"], ["--show-capture=stderr"]),
    ],
    ids=str,
)
def test_what_broke_and_what_to_try_is_part_of_the_failure(
    suite: pytest.Pytester, more: list[str]
) -> None:
    suite.makepyfile(BROKEN)
    result = suite.runpytest(*more)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(SECTION)
    assert sum("drainwatch: exit-now-delete -" in line for line in result.outlines) == 1


def test_who_wants_no_tracebacks_gets_the_row_in_the_table(suite: pytest.Pytester) -> None:
    suite.makepyfile(BROKEN)
    result = suite.runpytest("--tb=no")
    result.stdout.no_fnmatch_line("*why:*")
    result.stdout.fnmatch_lines(["*exit-now-delete*1/1 rst*report.json", "page: *report.html"])


def test_it_comes_from_a_worker_as_well(suite: pytest.Pytester) -> None:
    suite.makepyfile(BROKEN)
    result = suite.runpytest_subprocess("-n1", "--show-capture=no")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(SECTION)


def test_junit_and_json_have_it_in_the_failure(suite: pytest.Pytester) -> None:
    suite.makepyfile(BROKEN)
    suite.runpytest("--junitxml=r.xml", "--json-report", "--json-report-file=r.json")
    (failure,) = ET.parse(suite.path / "r.xml").iter("failure")
    assert "try: handle SIGTERM" in (failure.text or "")
    (test,) = json.loads((suite.path / "r.json").read_text())["tests"]
    assert "try: handle SIGTERM" in test["call"]["longrepr"]


def test_a_failure_without_a_traceback_has_it_too(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        BROKEN.replace(
            "    assert trial.tcp.drained == trial.tcp.total", "    pytest.fail('x', pytrace=False)"
        )
    )
    suite.runpytest().stdout.fnmatch_lines(SECTION)


def test_a_test_that_passes_shows_none_of_it(suite: pytest.Pytester) -> None:
    suite.makepyfile(BROKEN.replace("drained ==", "severed =="))
    result = suite.runpytest("-rA")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*why:*")


# --- void trials ---------------------------------------------------------------------------

VOID = """
import pytest
from pytest_drainwatch import TrialVoid
from pytest_drainwatch.cluster import ClusterError

def harness():
    try:
        raise OSError("the cause")
    except OSError as error:
        raise {error} from error

@pytest.fixture
def dw_flows():
    harness()

def test_promise(trial): pass
"""
CHECK = (
    "preflight check 'x' failed\\n  invariant: i\\n  observed:  o\\n  expected:  e\\n"
    "  look at:   kubectl get pods"
)


def errors(result: pytest.RunResult) -> list[str]:
    """The lines of its error, without pytest's headings."""
    start = next(n for n, line in enumerate(result.outlines) if "ERROR at setup" in line)
    rest = result.outlines[start + 1 :]
    end = next(n for n, line in enumerate(rest) if line.startswith(("=", "---")))
    return rest[:end]


@pytest.mark.parametrize("kind", ["TrialVoid", "ClusterError"])
def test_a_void_trial_says_what_was_expected_and_what_to_look_at(
    suite: pytest.Pytester, kind: str
) -> None:
    suite.makepyfile(VOID.format(error=f'{kind}("{CHECK}")'))
    result = suite.runpytest()
    result.assert_outcomes(errors=1)
    assert errors(result)[-5:] == [
        f"E   {kind}: preflight check 'x' failed",
        "E     invariant: i",
        "E     observed:  o",
        "E     expected:  e",
        "E     look at:   kubectl get pods",
    ]
    assert len(errors(result)) <= 9
    result.stdout.no_fnmatch_line("*the cause*")


def test_of_a_void_trial_full_trace_shows_all(suite: pytest.Pytester) -> None:
    suite.makepyfile(VOID.format(error='TrialVoid("nothing")'))
    suite.runpytest("--full-trace").stdout.fnmatch_lines(["*OSError: the cause", "*TrialVoid*"])


def test_any_other_error_is_shown_as_pytest_does(suite: pytest.Pytester) -> None:
    suite.makepyfile(VOID.format(error='RuntimeError("a bug")'))
    suite.runpytest().stdout.fnmatch_lines(["*OSError: the cause", "*RuntimeError: a bug"])


def test_a_void_trial_of_a_tests_body_names_its_line(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        from pytest_drainwatch.telling import void
        from pytest_drainwatch import TrialVoid

        def test_promise(trial):
            raise TrialVoid("not measured; expected a cluster. Look at: drainwatch doctor")
        """
    )
    result = suite.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">   raise TrialVoid(*",
            "test_a_void_trial_of_a_tests_body_names_its_line.py:5",
            "E   TrialVoid: not measured; expected a cluster. Look at: drainwatch doctor",
        ]
    )


@pytest.mark.parametrize("noise", ["'word ' * 3000", "'a line\\n' * 300"], ids=["long", "many"])
def test_however_much_a_server_says_a_void_trial_fits_on_a_screen(
    suite: pytest.Pytester, noise: str
) -> None:
    suite.makepyfile(
        VOID.format(error=f'TrialVoid("void: " + {noise} + ". Look at: kubectl get pods")')
    )
    result = suite.runpytest()
    lines = errors(result)
    assert sum(-(-len(line) // 100) or 1 for line in lines) <= 25
    assert lines[-1].endswith("Look at: kubectl get pods")


def test_junit_has_the_text_of_a_void_trial(suite: pytest.Pytester, tmp_path: Path) -> None:
    suite.makepyfile(VOID.format(error=f'TrialVoid("{CHECK}")'))
    suite.runpytest(f"--junitxml={tmp_path / 'r.xml'}")
    (error,) = ET.parse(tmp_path / "r.xml").iter("error")
    assert "look at:   kubectl get pods" in (error.text or "")
