"""Repeats as a suite asks for them: ids, order, selection, folders, and what is refused."""

from __future__ import annotations

import json
import re

import pytest

from pytest_drainwatch.planning.dealing import CLUSTER_S

TWO = """
import pytest
from pytest_drainwatch import Scenario

SCENARIOS = [Scenario(name=name) for name in ("one", "two")]

@pytest.mark.trial
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it(trial, dw_repeat):
    assert trial.folder.name == f"r{dw_repeat:02d}"
    assert trial.report.trial.repeat == dw_repeat
    assert trial.report.trial.test.endswith(f"{trial.scenario.id}-r{dw_repeat:02d}]")

def test_plain(): pass
"""


def collected(suite: pytest.Pytester, *arguments: str) -> list[str]:
    """The tests that would run, in their order, without their file."""
    result = suite.runpytest("--collect-only", "-q", *arguments)
    return [line.partition("::")[2] for line in result.outlines if "::" in line]


def test_repeats_are_tests_and_take_turns(suite: pytest.Pytester) -> None:
    suite.makepyfile(TWO)
    assert collected(suite, "--dw-repeat=3") == [
        *(f"test_it[{name}-r{number:02d}]" for number in range(3) for name in ("one", "two")),
        "test_plain",
    ]
    assert collected(suite) == ["test_it[one]", "test_it[two]", "test_plain"]
    assert collected(suite, "--dw-repeat=1") == collected(suite)


def test_with_a_fresh_cluster_for_each_scenario_its_repeats_stand_together(
    suite: pytest.Pytester,
) -> None:
    suite.makepyfile(TWO)
    assert collected(suite, "--dw-repeat=2", "--dw-fresh-cluster=scenario")[:4] == [
        f"test_it[{name}-r{number:02d}]" for name in ("one", "two") for number in range(2)
    ]


NEEDING = """
import pytest
from pytest_drainwatch import ClusterNeeds, Scenario

def needing(mode):
    return Scenario(name=mode, cluster=ClusterNeeds(proxy_mode=mode))

@pytest.mark.parametrize("scenario", [needing(mode) for mode in {modes}])
def test_it(trial): pass
"""


@pytest.mark.parametrize(
    ("modes", "turns"),
    [
        # Two clusters live at once: nothing is lost if they take turns at every repeat.
        (["iptables", "nftables"], [["iptables", "nftables"]]),
        # Of three each would start again with every repeat.
        (["iptables", "nftables", "ipvs"], [["iptables", "nftables"], ["ipvs"]]),
    ],
)
def test_only_as_many_clusters_take_turns_as_live_at_once(
    suite: pytest.Pytester, modes: list[str], turns: list[list[str]]
) -> None:
    suite.makepyfile(NEEDING.replace("{modes}", repr(modes)))
    assert collected(suite, "--dw-repeat=3") == [
        f"test_it[{mode}-r{number:02d}]"
        for together in turns
        for number in range(3)
        for mode in together
    ]
    said = suite.runpytest("--collect-only", "--dw-repeat=3").stdout.str()
    once = suite.runpytest("--collect-only").stdout.str()
    started_s = CLUSTER_S * len(modes)
    assert seconds_in(said) - started_s == pytest.approx(3 * (seconds_in(once) - started_s), abs=2)
    # One mode for all of them: one cluster, and all take turns.
    assert collected(suite, "--dw-repeat=2", "--dw-proxy-mode=iptables") == [
        f"test_it[{mode}-r{number:02d}]" for number in range(2) for mode in modes
    ]
    # A cluster of its own for each: the order costs nothing, so all take turns.
    assert collected(suite, "--dw-repeat=2", "--dw-fresh-cluster=trial") == [
        f"test_it[{mode}-r{number:02d}]" for number in range(2) for mode in modes
    ]


def seconds_in(said: str) -> int:
    (seconds,) = re.findall(r"trial\(s\), about (\d+) s one after the other", said)
    return int(seconds)


ARMS = """
import pytest
from pytest_drainwatch import Scenario, arms

@pytest.mark.parametrize(
    "arms", [arms(Scenario(name="x"), "app.replicas", {"a": 1, "b": 2, "c": 3})]
)
def test_arms(trials): pass
"""


@pytest.mark.parametrize(("fresh", "starts"), [("session", 1), ("scenario", 6), ("trial", 6)])
def test_each_arm_that_gets_a_fresh_cluster_counts(
    suite: pytest.Pytester, fresh: str, starts: int
) -> None:
    suite.makepyfile(ARMS)
    arguments = ("--collect-only", "--dw-repeat=2", f"--dw-fresh-cluster={fresh}")
    shared = suite.runpytest("--collect-only", "--dw-repeat=2").stdout.str()
    said = suite.runpytest(*arguments).stdout.str()
    assert seconds_in(said) - seconds_in(shared) == CLUSTER_S * (starts - 1)


def test_stepwise_goes_on_in_the_order_in_which_tests_run(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        TWO.replace(
            "def test_it(trial, dw_repeat):",
            "def test_it(trial, dw_repeat, request):\n"
            "    if request.config.getini('console_output_style') == 'count':\n"
            "        assert 'two-r01' not in request.node.name",
        )
    )
    failing = ("-o", "console_output_style=count")
    suite.runpytest("--sw", "--dw-repeat=3", *failing).assert_outcomes(passed=3, failed=1)
    # one-r02 was not measured yet, and in the order of definition it stands before two-r01.
    assert collected(suite, "--sw", "--dw-repeat=3") == [
        *("test_it[two-r01]", "test_it[one-r02]", "test_it[two-r02]", "test_plain")
    ]


def test_each_repeat_has_its_folder_its_row_and_a_share_of_the_summary(
    suite: pytest.Pytester,
) -> None:
    suite.makepyfile(TWO)
    result = suite.runpytest("--dw-repeat=2")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(
        [
            "drainwatch: 4 trial(s), *",
            "*one r00 *one/r00/report.json",
            "*two r00 *two/r00/report.json",
            "*one r01 *one/r01/report.json",
        ]
    )
    (written,) = suite.path.glob("results/2*/summary.json")
    summary = json.loads(written.read_text())
    assert summary["complete"] is True, summary["trials"]
    assert [(t["scenario"], t["repeat"], t["state"]) for t in summary["trials"]] == [
        (name, number, "measured") for name in ("one", "two") for number in range(2)
    ]


def test_a_test_says_its_own_number_and_the_option_overrides_it(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        @pytest.mark.trial(repeat=2)
        def test_marked(trial): pass

        def test_unmarked(trial): pass
        """
    )
    assert collected(suite) == ["test_marked[r00]", "test_marked[r01]", "test_unmarked"]
    assert collected(suite, "--dw-repeat=1") == ["test_marked", "test_unmarked"]
    assert len(collected(suite, "--dw-repeat=3")) == 6


@pytest.mark.parametrize(
    ("select", "number"),
    [(["-k", "r02"], 2), (["-k", "two"], 5), (["-k", "r02 and two"], 1), (["-k", "drain"], 0)],
)
def test_k_selects_what_it_says(suite: pytest.Pytester, select: list[str], number: int) -> None:
    suite.makepyfile(test_suite=TWO)
    assert len(collected(suite, "--dw-repeat=5", *select)) == number


def test_k_drain_selects_all_repeats_of_the_behaviour_and_nothing_else(
    drain_suite: pytest.Pytester,
) -> None:
    assert collected(drain_suite, "--dw-repeat=2", "-k", "drain") == [
        "test_connections_close_cleanly[drain-delete-r00]",
        "test_connections_close_cleanly[drain-delete-r01]",
    ]


@pytest.mark.parametrize("option", ["--lf", "--ff"])
def test_the_last_failures_are_known_by_their_repeat(suite: pytest.Pytester, option: str) -> None:
    suite.makepyfile(TWO + "\ndef test_last(trial, dw_repeat): assert dw_repeat != 1\n")
    suite.runpytest("--dw-repeat=3").assert_outcomes(passed=9, failed=1)
    found = collected(suite, "--dw-repeat=3", option)
    assert found[0] == "test_last[r01]"
    assert len(found) == (1 if option == "--lf" else 10)


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("repeat=0", "takes a whole number from 1 on, got: 0"),
        ("repeat=True", "takes a whole number from 1 on, got: True"),
        ("repeat='5'", "takes a whole number from 1 on, got: '5'"),
        ("5", "takes repeat=N and nothing else, got: 5"),
        ("repeat=2, grace=3", "takes repeat=N and nothing else, got: grace"),
    ],
)
def test_a_bad_marker_is_a_usage_error_that_names_the_test(
    suite: pytest.Pytester, marker: str, said: str
) -> None:
    suite.makepyfile(
        f"""
        import pytest

        @pytest.mark.trial({marker})
        def test_it(trial): pass

        def test_other(): pass
        """
    )
    result = suite.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: *::test_it*: *{said}*".replace("[", "[[]")])
    assert suite.runpytest("-k", "other").ret == 0, "what is not run is not refused"


def test_repeats_of_a_test_that_measures_nothing_are_refused(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        @pytest.mark.trial(repeat=5)
        def test_it(): pass
        """
    )
    result = suite.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *::test_it: *asks for none of the fixtures that do*"])


def test_a_marker_of_that_name_may_be_somebody_elses(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        @pytest.mark.trial("clinical", phase=2)
        def test_it(): pass

        def test_ours(trial): pass
        """
    )
    suite.runpytest().assert_outcomes(passed=2)


def test_what_is_asked_for_while_a_test_runs_is_measured_once_and_that_is_said(
    suite: pytest.Pytester,
) -> None:
    suite.makepyfile(
        """
        def test_late(request): assert request.getfixturevalue("trial").tcp.total == 1

        def test_named(trial): pass

        def test_plain(dw_repeat): pass
        """
    )
    said = "drainwatch: note: *::test_late is measured once: *"
    repeated = suite.runpytest("--dw-repeat=2")
    repeated.assert_outcomes(passed=4)
    repeated.stdout.fnmatch_lines([said])
    assert repeated.stdout.str().count("is measured once") == 1
    suite.runpytest().stdout.no_fnmatch_line(said)


def test_trials_that_only_bodies_know_are_forecast_too(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        from pytest_drainwatch import Scenario

        def test_it(drainwatch): drainwatch(Scenario())
        """
    )
    said = "drainwatch: trials: those of 2 test(s) that choose in their body, about * s one after*"
    for arguments in ([], ["--collect-only"]):
        suite.runpytest("--dw-repeat=2", *arguments).stdout.fnmatch_lines([said])


FORMS = """
import unittest
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pytest_drainwatch import App, Scenario, arms

pytestmark = pytest.mark.parametrize("number", [1, 2])

@pytest.fixture
def scenario(request):
    return Scenario(name=f"s{getattr(request, 'param', 0)}")

@pytest.mark.parametrize("scenario", [7], indirect=True)
def test_indirect(trial, number):
    assert trial.scenario.id == "s7"

class TestPlain:
    def test_method(self, drainwatch, number):
        trial = drainwatch(Scenario(name="in-the-body"))
        assert trial.folder.name.startswith(f"r{trial.report.trial.repeat:02d}")

@pytest.mark.parametrize("arms", [arms(Scenario(name="x"), "trigger", {
    "delete": "delete", "scale": "scale"})])
def test_arms(trials, number):
    assert list(trials) == ["delete", "scale"]

@settings(max_examples=2, suppress_health_check=list(HealthCheck), deadline=None, database=None)
@given(st.booleans())
def test_property(trial, number, value):
    assert trial.tcp.total == 1
"""


def test_every_form_of_a_test_can_be_repeated(suite: pytest.Pytester) -> None:
    suite.makepyfile(FORMS)
    result = suite.runpytest("--dw-repeat=2", "-v")
    result.assert_outcomes(passed=16)


def test_a_class_of_unittests_is_measured_once_and_that_is_said(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import unittest
        import pytest

        @pytest.mark.usefixtures("trial")
        class Classic(unittest.TestCase):
            def test_it(self): pass
        """
    )
    result = suite.runpytest("--dw-repeat=2")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["drainwatch: note: *::Classic::test_it is measured once: *"])


def test_with_fixtures_of_ones_own_there_are_repeats_too(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        @pytest.fixture
        def trial(dw_flows):
            return dw_flows

        def test_it(trial, request):
            assert trial[1].name == f"r{request.getfixturevalue('dw_repeat'):02d}"
        """
    )
    suite.runpytest("--dw-repeat=2").assert_outcomes(passed=2)
