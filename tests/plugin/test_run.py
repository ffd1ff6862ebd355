"""What a person sees of a run: outcomes, artifacts, words; and what it must not cost."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pytest_drainwatch import report


def test_a_kept_promise_passes_and_a_broken_one_fails(drain_suite: pytest.Pytester) -> None:
    result = drain_suite.runpytest()
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "drainwatch: 3 trial(s), about * s one after the other",
            "*- drainwatch: exit-now-delete -*",
            "tcp: 1/1 rst, * after the trigger, * SIGTERM",
            "*sigterm_received*",
            "all of it: drainwatch show results/*/exit-now-delete/r00/report.json",
            "*- drainwatch -*",
            "*SCENARIO*SIGTERM*TCP*ENDED AT*UDP*ENDED AT*EXIT*REPORT*",
            "*drain-delete*40 ms*1/1 announced-fin*5.04 s*/drain-delete/r00/report.json",
        ]
    )


def test_k_drain_selects_the_behaviour_and_nothing_else(drain_suite: pytest.Pytester) -> None:
    result = drain_suite.runpytest("--collect-only", "-q", "-k", "drain")
    assert [line for line in result.outlines if "::" in line] == [
        "test_termination.py::test_connections_close_cleanly[drain-delete]"
    ]


def test_each_trial_leaves_a_valid_report(drain_suite: pytest.Pytester) -> None:
    drain_suite.runpytest("--dw-out", "there")
    found = sorted((drain_suite.path / "there").glob("2*/*/r00/report.json"))
    assert [path.parent.parent.name for path in found] == [
        "drain-delete",
        "exit-now-delete",
        "ignore-delete",
    ]
    for path in found:
        assert report.loads(path.read_text()).schema_version == 1
    latest = drain_suite.path / "there" / "latest"
    assert (latest / "drain-delete/r00/report.json").exists()


def test_a_second_attempt_does_not_overwrite_the_first(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        def test_one(trial): pass
        def test_two(trial): pass
        """
    )
    suite.runpytest().assert_outcomes(passed=2)
    names = [p.parent.name for p in suite.path.glob("results/2*/drain-delete/*/report.json")]
    assert sorted(names) == ["r00", "r00.2"]


def test_a_void_trial_is_an_error_with_the_invariant(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest
        from pytest_drainwatch import TrialVoid

        @pytest.fixture
        def dw_flows():
            raise TrialVoid("preflight check 'x' failed\\n  invariant: y")

        def test_promise(trial): pass
        """
    )
    result = suite.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*TrialVoid: preflight check 'x' failed", "*invariant: y"])


def test_the_hook_gets_each_trial(suite: pytest.Pytester) -> None:
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(
            "\ndef pytest_drainwatch_trial(trial, request):\n"
            "    print('HOOK', request.node.name, trial.tcp.drained)\n"
        )
    suite.makepyfile("def test_it(trial): pass")
    suite.runpytest("-s").stdout.fnmatch_lines(["*HOOK test_it 1*"])


def test_json_report_and_junit_get_headlines(drain_suite: pytest.Pytester) -> None:
    drain_suite.runpytest("--json-report", "--json-report-file=r.json", "--junitxml=r.xml")
    document = json.loads((drain_suite.path / "r.json").read_text())
    trials = document["drainwatch"]["trials"]
    assert document["drainwatch"]["schema"] == 1
    assert [trial["tcp"] for trial in trials] == [
        "1/1 announced-fin",
        "1/1 rst",
        "1/1 rst",
    ]
    assert 'name="dw.scenario" value="exit-now-delete"' in (drain_suite.path / "r.xml").read_text()


def test_each_trial_of_a_test_has_its_row(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        from pytest_drainwatch.telling import told

        def test_two(request, dw_flows, trial):
            from pytest_drainwatch.trial import measure

            told.announce(request, measure(dw_flows))
        """
    )
    result = suite.runpytest("--json-report", "--json-report-file=r.json")
    assert sum("1/1 announced-fin" in line for line in result.outlines) == 2
    document = json.loads((suite.path / "r.json").read_text())
    assert len(document["drainwatch"]["trials"]) == 2


def test_an_impossible_scenario_is_named_and_nothing_crashes(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest
        from pytest_drainwatch import Flows, Scenario

        @pytest.mark.parametrize("scenario", [Scenario(flows=Flows(tcp=5, udp=0))])
        def test_it(trial): pass
        """
    )
    result = suite.runpytest("--dw-tcp-flows=0")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *test_it*with the options given*at least one flow*"])


def test_unequal_counts_are_explained_from_the_first_failure(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        from pytest_drainwatch.core.document import Counts

        def test_it(trial):
            assert trial.tcp == Counts(total=1, severed=1, mechanisms={"rst": 1})
        """
    )
    suite.runpytest().stdout.fnmatch_lines(
        ["E *flow counts: 1/1 announced-fin == 1/1 rst", "E *drained: 1 != 0"]
    )


def test_what_a_person_must_know_is_said_without_v(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        from pytest_drainwatch.showing.progress import PytestProgress

        def test_it(request):
            progress = PytestProgress(request.config)
            progress.line("kept: export KUBECONFIG=x")
            progress.phase("settle")
        """
    )
    result = suite.runpytest()
    result.stdout.fnmatch_lines(["drainwatch: kept: export KUBECONFIG=x"])
    result.stdout.no_fnmatch_line("*settle*")
    suite.runpytest("-v").stdout.fnmatch_lines(["drainwatch: settle"])
    suite.runpytest("-q").stdout.no_fnmatch_line("*kept*")


def test_under_xdist_the_controller_shows_every_trial(drain_suite: pytest.Pytester) -> None:
    result = drain_suite.runpytest_subprocess("-n2", "-p", "xdist")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*drain-delete*1/1 announced-fin*"])
    runs = [p for p in (drain_suite.path / "results").iterdir() if not p.is_symlink()]
    assert len(runs) == 1


def test_a_suite_runs_without_the_plugin(suite: pytest.Pytester) -> None:
    (suite.path / "conftest.py").unlink()
    suite.makepyfile(
        """
        import pytest_drainwatch

        def test_unrelated(): assert pytest_drainwatch.__version__
        """
    )
    suite.runpytest_subprocess("-p", "no:drainwatch").assert_outcomes(passed=1)


def test_a_run_that_uses_none_of_it_imports_nothing_heavy(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_unrelated():
            heavy = {"kubernetes", "pydantic", "yaml", "rich", "urllib3", "asyncio"}
            loaded = {name for name in sys.modules if name in heavy}
            assert not loaded, loaded
            ours = {name for name in sys.modules if name.startswith("pytest_drainwatch.")}
            assert "pytest_drainwatch.plugin" in ours
            assert "pytest_drainwatch.trial" not in ours
        """
    )
    pytester.runpytest_subprocess("-p", "no:xdist", "-p", "no:json-report").assert_outcomes(
        passed=1
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--dw-drain=-1"], "--dw-drain=-1 (command line): expected a duration"),
        (["--dw-cluster=minikube"], "expected one of: auto, embedded, kind, existing"),
        (["--dw-tcp-flows=0", "--dw-udp-flows=0"], "at least one flow"),
        (["--dw-cluster=kind", "--dw-context=x"], "--dw-context cannot apply"),
    ],
)
def test_a_bad_option_is_a_usage_error(
    suite: pytest.Pytester, arguments: list[str], said: str
) -> None:
    result = suite.runpytest(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: *{said}*"])


IMPOSSIBLE = """
import pytest
from pytest_drainwatch import Flows, Scenario

@pytest.mark.parametrize("scenario", [Scenario(flows=Flows(tcp=5, udp=0))])
def test_impossible(trial): pass

def test_possible(trial): pass
"""


@pytest.mark.parametrize(
    "select", [["-k", "test_possible"], ["--deselect", "test_suite.py::test_impossible"], ["--lf"]]
)
def test_what_is_not_run_is_not_refused(suite: pytest.Pytester, select: list[str]) -> None:
    suite.makepyfile(test_suite=IMPOSSIBLE.replace("(trial): pass", "(trial): assert False"))
    suite.runpytest("-k", "test_possible").assert_outcomes(failed=1, deselected=1)
    suite.makepyfile(test_suite=IMPOSSIBLE)
    result = suite.runpytest("--dw-tcp-flows=0", *select)
    assert result.parseoutcomes()["passed"] == 1
    assert result.ret == 0
    assert suite.runpytest("--dw-tcp-flows=0").ret == pytest.ExitCode.USAGE_ERROR


def test_under_xdist_a_usage_error_is_its_tests_and_says_why(suite: pytest.Pytester) -> None:
    suite.makepyfile(IMPOSSIBLE + "\n@pytest.mark.trial(repeat=5)\ndef test_marked(): pass\n")
    result = suite.runpytest_subprocess("-n2", "-p", "xdist", "--dw-tcp-flows=0")
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines_random(
        [
            "usage error: *test_impossible*with the options given*at least one flow*",
            "usage error: *test_marked*(repeat=5) is about what a test measures, *",
        ]
    )
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM"])
def test_a_signal_is_an_interrupt_on_ones_own_cluster_too(
    suite: pytest.Pytester, sent: str
) -> None:
    suite.makepyfile(
        f"""
        import os, signal, time
        from pathlib import Path
        import pytest

        @pytest.fixture
        def cleared_up():
            yield
            Path("cleared-up").touch()

        def test_long(cleared_up, dw_namespace):
            os.kill(os.getpid(), signal.{sent})
            time.sleep(60)
        """
    )
    result = suite.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert (suite.path / "cleared-up").exists()


BROKEN = """
@pytest.fixture(autouse=True)
def broken(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("a bug in rendering")
    import pytest_drainwatch.render.terminal as terminal
    monkeypatch.setattr(terminal, {name!r}, fail)
"""


@pytest.mark.parametrize("name", ["ends", "timeline", "counts"])
def test_what_cannot_be_shown_harms_no_trial(drain_suite: pytest.Pytester, name: str) -> None:
    with (drain_suite.path / "conftest.py").open("a") as conftest:
        conftest.write(BROKEN.format(name=name))
    result = drain_suite.runpytest()
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines_random(
        ["*cannot be shown: RuntimeError('a bug in rendering')*", "*/drain-delete/r00/report.json"]
    )
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_a_table_that_cannot_be_shown_does_not_end_the_run(drain_suite: pytest.Pytester) -> None:
    with (drain_suite.path / "conftest.py").open("a") as conftest:
        conftest.write(
            "\ndef pytest_sessionstart(session):\n"
            "    from pytest_drainwatch.render import terminal\n"
            "    terminal.trial_rows = None\n"
        )
    result = drain_suite.runpytest_subprocess()
    result.assert_outcomes(passed=1, failed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["the table of trials cannot be shown: TypeError*", "results/*/drain-delete/*report.json"]
    )


def test_help_survives_a_bad_ini(suite: pytest.Pytester) -> None:
    suite.makeini("[pytest]\ndw_drain = soon\n")
    assert suite.runpytest().ret == pytest.ExitCode.USAGE_ERROR
    result = suite.runpytest("--help")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*--dw-drain=DURATION*"])


def test_ini_sets_what_the_command_line_does_not(drain_suite: pytest.Pytester) -> None:
    drain_suite.makeini("[pytest]\ndw_drain = 40s\n")
    result = drain_suite.runpytest("-v", "-k", "drain")
    result.stdout.fnmatch_lines(
        [
            "drainwatch: given: drain (ini)",
            "drainwatch: note: drain-delete: drain window (40 s) >= grace period (30 s)*",
        ]
    )


def test_the_environment_stands_between_command_line_and_ini(
    drain_suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    drain_suite.makeini("[pytest]\ndw_drain = 40s\ndw_settle = 7s\n")
    monkeypatch.setenv("DW_DRAIN", "41s")
    monkeypatch.setenv("DW_SETTLE", "8s")
    result = drain_suite.runpytest("-v", "-k", "drain", "--dw-settle", "9s")
    result.stdout.fnmatch_lines(["drainwatch: given: drain (environment), settle (command line)"])


def test_an_unwritable_results_folder_is_an_error(suite: pytest.Pytester) -> None:
    (suite.path / "results").write_text("a file, not a folder")
    suite.makepyfile("def test_it(dw_namespace): pass")
    result = suite.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*TrialVoid: cannot create a results folder in */results*"])


def test_quiet_is_quiet(drain_suite: pytest.Pytester) -> None:
    result = drain_suite.runpytest("-q")
    result.stdout.no_fnmatch_line("*SCENARIO*")


def test_this_repository_selects_the_drain_behaviour_by_k_drain() -> None:
    """The card's own command, on the shipped scenarios."""
    import subprocess

    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "scenarios/", "-k", "drain", "--collect-only", "-q"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    selected = [line.partition("[")[2] for line in done.stdout.splitlines() if "::" in line]
    published = ["B-drain-delete]", "D-drain-evict]", "E-drain-scale]"]
    assert selected == [*published, "drain-delete]", "drain-evict]", "drain-scale]"]
