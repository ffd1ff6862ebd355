"""What the workers of a run are given, in which order, and what is said of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pytest_drainwatch.planning.dealing import CLUSTER_S, Work
from pytest_drainwatch.planning.forecast import Workers, duration

UNEVEN = """
import pytest
from pytest_drainwatch import App, Behavior, ClusterNeeds, Scenario
from pytest_drainwatch.core.interval import NS_PER_S

def lasting(seconds, **needs):
    app = App(behavior=Behavior.DRAIN, drain_ns=seconds * NS_PER_S, grace_period_s=200)
    return Scenario(name=f"s{seconds}", app=app, cluster=ClusterNeeds(**needs))

LONG = [lasting(s) for s in (100, 101, 102, 103, 1, 2, 3, 4)]
MODES = [lasting(s, proxy_mode=mode) for s in (10, 11) for mode in ("iptables", "nftables")]

@pytest.mark.parametrize("scenario", LONG, ids=lambda s: s.id)
def test_long(trial): pass

@pytest.mark.parametrize("scenario", MODES, ids=lambda s: f"{s.id}-{s.cluster.proxy_mode}")
def test_modes(trial): pass
"""


def shares(suite: pytest.Pytester, *arguments: str) -> list[list[str]]:
    """The tests that each worker was given at the start: two each, so that nobody steals."""
    result = suite.runpytest_subprocess("-v", *arguments)
    found: dict[str, list[str]] = {}
    for line in result.outlines:
        if match := re.match(r"\[(gw\d)\] .* PASSED .*::(\S+)", line):
            found.setdefault(match[1], []).append(match[2])
    return sorted(found.values())


def test_with_worksteal_each_worker_has_as_much_to_do(suite: pytest.Pytester) -> None:
    suite.makepyfile(UNEVEN)
    given = shares(suite, "-n4", "--dist=worksteal", "-k", "test_long")
    assert sorted(len(each) for each in given) == [2, 2, 2, 2]
    for each in given:
        assert sum("[s10" in test for test in each) == 1, "one of the long ones"


def test_with_worksteal_a_worker_has_one_kind_of_cluster(suite: pytest.Pytester) -> None:
    suite.makepyfile(UNEVEN)
    given = shares(suite, "-n2", "--dist=worksteal", "-k", "test_modes")
    kinds = [{test.partition("-")[2] for test in each} for each in given]
    assert kinds in ([{"iptables]"}, {"nftables]"}], [{"nftables]"}, {"iptables]"}])


def test_every_worker_collects_the_same(suite: pytest.Pytester) -> None:
    suite.makepyfile(UNEVEN)
    result = suite.runpytest_subprocess("-n3", "--dist=worksteal", "--dw-repeat=3")
    result.assert_outcomes(passed=36)


def test_the_plan_of_the_workers_is_the_controllers(drain_suite: pytest.Pytester) -> None:
    """How many, how long and on how many workers; and what a note says is said once."""
    result = drain_suite.runpytest_subprocess(
        *("-n2", "--dist=worksteal", "--dw-repeat=2", "--dw-drain=40s")
    )
    said = [line for line in result.outlines if line.startswith("drainwatch: ")]
    assert sum("6 trial(s), about " in line and "with 2 workers" in line for line in said) == 1
    assert sum("note: drain-delete: " in line for line in said) == 1
    assert any("2 workers, each with clusters of its own" in line for line in said)
    (written,) = drain_suite.path.glob("results/2*/summary.json")
    assert json.loads(written.read_text())["complete"] is True
    assert [path.name for path in written.parent.glob(".*")] == []


def test_quiet_workers_are_quiet(drain_suite: pytest.Pytester) -> None:
    result = drain_suite.runpytest_subprocess("-n2", "-q")
    result.stdout.no_fnmatch_line("drainwatch: *")


def test_an_existing_cluster_is_taken_in_turns_and_that_is_said(
    drain_suite: pytest.Pytester,
) -> None:
    result = drain_suite.runpytest_subprocess("-n2", "--dw-context=theirs")
    result.stdout.fnmatch_lines(
        [
            "drainwatch: 2 workers take turns on cluster theirs: one trial at a time",
            "drainwatch: 3 trial(s), about * s: 2 workers take turns on one cluster",
        ]
    )


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        (Workers(), "about 85 s one after the other"),
        (Workers(number=2, mode="worksteal"), "about 45 s with 2 workers"),
        (Workers(number=2, mode="load"), "about 45 s with 2 workers"),
        (Workers(number=2, mode="loadscope"), "at least 42 s with 2 workers"),
        (Workers(number=2, mode="each"), "about 85 s one after the other"),
        (
            Workers(number=2, mode="load", take_turns=True),
            "about 85 s: 2 workers take turns on one cluster",
        ),
    ],
)
def test_how_long_it_takes_is_said_for_each_way_of_sharing_out(workers: Workers, said: str) -> None:
    works = [Work(seconds=20, clusters=("a",))] * 4
    assert CLUSTER_S == 5
    assert duration(works, workers, alive=2) == said


@pytest.mark.parametrize(("fresh", "clusters"), [("session", 1), ("scenario", 3), ("trial", 6)])
def test_each_cluster_that_will_be_started_counts(
    drain_suite: pytest.Pytester, fresh: str, clusters: int
) -> None:
    result = drain_suite.runpytest(
        *("--collect-only", "--dw-repeat=2", f"--dw-fresh-cluster={fresh}")
    )
    (seconds,) = re.findall(r"6 trial\(s\), about (\d+) s", result.stdout.str())
    assert int(seconds) == 242 + clusters * CLUSTER_S


def test_a_run_that_only_collects_says_what_its_workers_would_take(
    suite: pytest.Pytester,
) -> None:
    suite.makepyfile(UNEVEN)
    measured = suite.runpytest_subprocess("-n4", "--dist=worksteal", "-k", "test_long")
    only = suite.runpytest("-n4", "--dist=worksteal", "-k", "test_long", "--collect-only")
    (said,) = (line for line in only.outlines if "8 trial(s), about" in line)
    assert said.endswith("with 4 workers")
    assert said in measured.outlines


def test_a_run_that_measures_nothing_leaves_nothing(suite: pytest.Pytester) -> None:
    suite.makepyfile("def test_it(): pass")
    for arguments in ([], ["-n2"]):
        result = suite.runpytest_subprocess(*arguments)
        result.assert_outcomes(passed=1)
        result.stdout.no_fnmatch_line("*trial(s)*")
    assert not Path(suite.path / "results").exists()
