"""``drainwatch aggregate``: the ancestor's results and ours, as a table and as JSON."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch import report
from pytest_drainwatch.cli import main
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.scenario import Scenario
from tests.core.trials import recording_of
from tests.upstream import example
from tests.upstream.example import DRAINED, MOVED, flow

Captured = pytest.CaptureFixture[str]
Nobody = Callable[..., "subprocess.CompletedProcess[str]"]
NAMES = (
    "trigger_to_first_tcp_terminal_ms",
    "trigger_to_last_tcp_terminal_ms",
    "trigger_to_first_udp_terminal_ms",
    "trigger_to_last_udp_terminal_ms",
    "trigger_to_endpoint_removed_ms",
    "trigger_to_container_terminated_ms",
    "tcp_dead_before_endpoint_removed_ms",
    "udp_first_terminal_minus_container_exit_ms",
    "udp_last_terminal_minus_container_exit_ms",
    "trigger_to_sigterm_ms",
    "sigterm_to_ready_false_ms",
    "sigterm_to_endpoint_removed_ms",
)


def aggregated(folder: Path, capsys: Captured) -> list[dict[str, Any]]:
    """The scenarios of ``aggregate DIR --json``."""
    assert main(["aggregate", str(folder), "--json"]) == 0
    scenarios: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["scenarios"]
    return scenarios


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    """Two repeats in the ancestor's layout; the figures are worked out by hand below."""
    second = (
        flow("tcp-0001", "drained-clean-close", 5051, 5051, example.FIN),
        flow("tcp-0002", "drained-clean-close", 5052, 5052, example.FIN),
        flow("udp-0001", "severed", 2420, 1919, MOVED),
        flow("udp-0002", "severed", 2425, 1925, MOVED),
    )
    folder = tmp_path / "arm-B"
    example.write(folder, example.report("trial-001", flows=DRAINED))
    example.write(folder, example.report("trial-002", flows=second, sigterm=51, removed=5401))
    return tmp_path


def test_the_figures_of_the_ancestors_reports(arm: Path, capsys: Captured) -> None:
    (scenario,) = aggregated(arm, capsys)
    assert scenario["id"] == "B"
    assert scenario["repeats"] == ["arm-B/trial-001", "arm-B/trial-002"]
    found = {
        name: (metric["observed"], metric["min_ms"], metric["median_ms"], metric["max_ms"])
        for name, metric in scenario["metrics"].items()
    }
    assert found == {
        "trigger_to_first_tcp_terminal_ms": (2, 5040, 5045, 5051),
        "trigger_to_last_tcp_terminal_ms": (2, 5043, 5047, 5052),
        "trigger_to_first_udp_terminal_ms": (2, 2410, 2415, 2420),
        "trigger_to_last_udp_terminal_ms": (2, 2412, 2418, 2425),
        "trigger_to_endpoint_removed_ms": (2, 5300, 5350, 5401),
        "trigger_to_container_terminated_ms": (2, 5294, 5344, 5395),
        "tcp_dead_before_endpoint_removed_ms": (2, 257, 303, 349),
        "udp_first_terminal_minus_container_exit_ms": (2, -2975, -2929, -2884),
        "udp_last_terminal_minus_container_exit_ms": (2, -2970, -2926, -2882),
        "trigger_to_sigterm_ms": (2, 40, 45, 51),
        "sigterm_to_ready_false_ms": (2, -9, -9, -9),
        "sigterm_to_endpoint_removed_ms": (2, 5260, 5305, 5350),
    }


def test_udp_ends_stand_beside_their_brackets(arm: Path, capsys: Captured) -> None:
    (scenario,) = aggregated(arm, capsys)
    brackets = {
        name: metric["bracket_ms"]
        for name, metric in scenario["metrics"].items()
        if metric["bracket_ms"] is not None
    }
    assert brackets == {
        # first: acks until 1909 and 1919; last: until 1910 and 1925
        "trigger_to_first_udp_terminal_ms": {"lo": 1914, "hi": 2415},
        "trigger_to_last_udp_terminal_ms": {"lo": 1917.5, "hi": 2418.5},
        "udp_first_terminal_minus_container_exit_ms": {"lo": -3430.5, "hi": -2929.5},
        "udp_last_terminal_minus_container_exit_ms": {"lo": -3427, "hi": -2926},
    }


def test_the_table_says_what_the_numbers_really_are(arm: Path, capsys: Captured) -> None:
    assert main(["aggregate", str(arm)]) == 0
    said = capsys.readouterr().out
    assert "SCENARIO B\n  drain x delete, grace 30 s, Kubernetes v1.34.0" in said
    (row,) = (line for line in said.splitlines() if "trigger_to_first_udp_terminal" in line)
    assert row.split() == [
        *("trigger_to_first_udp_terminal", "2/2", "2410", "2415", "2420"),
        *("between", "1914", "and", "2415", "1909", "to", "2420"),
    ]
    assert "holds the median of all such trials in 50.00%" in said
    assert said.count("500 ms grid") == 1


def test_a_metric_that_no_repeat_measured_says_so(tmp_path: Path, capsys: Captured) -> None:
    alive = flow("udp-0001", "survived-observation-window", None, 39_900, None)
    example.write(tmp_path / "arm-X", example.report(flows=[*DRAINED[:2], alive]))
    (scenario,) = aggregated(tmp_path, capsys)
    metric = scenario["metrics"]["trigger_to_first_udp_terminal_ms"]
    assert (metric["observed"], metric["not_measured"], metric["min_ms"]) == (0, 1, None)
    assert main(["aggregate", str(tmp_path)]) == 0
    assert "not measured" in capsys.readouterr().out


def test_the_earliest_event_of_a_name_counts(tmp_path: Path, capsys: Captured) -> None:
    """As the ancestor does it, whatever pod it is about: the aim is its figures."""
    document = example.report()
    again = {"t_ms": 7000, "source": "k8s", "event": "endpointslice_ready_false"}
    document["trial"]["timeline"].append(again)
    example.write(tmp_path / "arm-B", document)
    (scenario,) = aggregated(tmp_path, capsys)
    assert scenario["metrics"]["sigterm_to_ready_false_ms"]["median_ms"] == -9


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"build": "def5678"}, "git_commit is 'abc1234' in arm-B/trial-001 and 'def5678' in"),
        ({"build": "abc1234-dirty"}, "git_commit is 'abc1234' in"),
        (
            {"environment": {"kube_proxy_mode": "nftables"}},
            "environment.kube_proxy_mode is 'iptables' in arm-B/trial-001 and 'nftables' in",
        ),
        (
            {"environment": {"kubernetes_version": "v1.33.1"}},
            "environment.kubernetes_version is 'v1.34.0' in arm-B/trial-001 and 'v1.33.1' in",
        ),
        ({"config": {"settle_seconds": 3}}, "config.settle_seconds is 10 in"),
        ({"config": {"grace_period_seconds": 40}}, "config.grace_period_seconds is 30 in"),
        ({"config": {"drain_behavior": "ignore"}}, "config.drain_behavior is 'drain' in"),
    ],
)
def test_c61_trials_that_differ_are_not_pooled(
    arm: Path, other: dict[str, Any], said: str, capsys: Captured
) -> None:
    example.write(arm / "arm-B", example.report("trial-003", **other))
    assert main(["aggregate", str(arm)]) == 3
    error = capsys.readouterr().err
    assert said in error
    assert "arm-B/trial-003" in error


def test_what_the_facts_contradict_is_noted(tmp_path: Path, capsys: Captured) -> None:
    stalled = flow("tcp-0002", "severed", 27346, 27334, "write deadline exceeded")
    example.write(tmp_path / "arm-E", example.report(flows=[DRAINED[0], stalled, *DRAINED[2:]]))
    (scenario,) = aggregated(tmp_path, capsys)
    assert any(
        "tcp-0002 is called severed (write deadline exceeded); by its facts it is "
        "not-measured by client-stall" in note
        for note in scenario["notes"]
    )


def test_the_second_copy_of_a_single_trial_counts_once(arm: Path, capsys: Captured) -> None:
    copy = arm / "arm-B" / "report.json"
    copy.write_bytes((arm / "arm-B" / "trial-001" / "report.json").read_bytes())
    (scenario,) = aggregated(arm, capsys)
    assert len(scenario["repeats"]) == 2


def test_two_sets_of_one_arm_are_told_apart_by_their_paths(
    tmp_path: Path, capsys: Captured
) -> None:
    for name in ("one", "two"):
        example.write(tmp_path / name / "arm-B", example.report())
    assert [one["id"] for one in aggregated(tmp_path, capsys)] == ["one/arm-B", "two/arm-B"]


# --- our own results -----------------------------------------------------------------------


def own_report() -> Report:
    measured = derive(recording_of(Scenario()))
    return replace(measured, trial=replace(measured.trial, scenario="drain-delete"))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of ours: two repeats, and a third that measured nothing."""
    folder = tmp_path / "run" / "drain-delete"
    measured = own_report()
    for number in range(2):
        path = folder / f"r{number:02d}" / "report.json"
        path.parent.mkdir(parents=True)
        path.write_text(report.dumps(measured))
    void = folder / "r02" / "recording.jsonl"
    void.parent.mkdir()
    void.write_text("{}\n")
    # As the plugin leaves it: the same run must not count twice.
    (tmp_path / "latest").symlink_to("run")
    return tmp_path / "run"


def test_our_own_repeats_have_the_same_names_and_bounds(run: Path, capsys: Captured) -> None:
    (scenario,) = aggregated(run, capsys)
    assert scenario["id"] == "drain-delete"
    assert scenario["repeats"] == ["drain-delete/r00", "drain-delete/r01"]
    assert tuple(scenario["metrics"]) == NAMES
    metric = scenario["metrics"]["trigger_to_last_tcp_terminal_ms"]
    measured = own_report().trial.flows[0]
    assert (metric["observed"], metric["median_ms"]) == (2, measured.t_terminal_ms)
    assert tuple(metric["median_ns"]) == measured.terminal_ns


def test_a_link_to_the_latest_run_counts_nothing_twice(run: Path, capsys: Captured) -> None:
    (scenario,) = aggregated(run.parent, capsys)
    assert scenario["repeats"] == ["run/drain-delete/r00", "run/drain-delete/r01"]
    (by_link,) = aggregated(run.parent / "latest", capsys)
    assert by_link["metrics"] == scenario["metrics"]


def test_one_repeat_alone_says_nothing_of_its_siblings(run: Path, capsys: Captured) -> None:
    (scenario,) = aggregated(run / "drain-delete" / "r00", capsys)
    assert scenario["repeats"] == ["r00"]
    assert not any("r02" in note for note in scenario["notes"])


def test_a_void_repeat_is_not_counted_and_not_hidden(run: Path, capsys: Captured) -> None:
    (scenario,) = aggregated(run, capsys)
    (note,) = (note for note in scenario["notes"] if "r02" in note)
    assert note == "r02 has a recording and no report: void or unfinished, not counted"
    assert main(["aggregate", str(run)]) == 0
    assert "r02 has a recording and no report" in capsys.readouterr().out


def test_our_repeats_of_two_builds_are_not_pooled(run: Path, capsys: Captured) -> None:
    other = replace(own_report(), git_commit="other")
    (run / "drain-delete" / "r01" / "report.json").write_text(report.dumps(other))
    assert main(["aggregate", str(run)]) == 3
    assert "git_commit is 'abc1234' in drain-delete/r00 and 'other' in" in capsys.readouterr().err


@pytest.fixture
def as_nobody(tmp_path: Path) -> Nobody:
    """``drainwatch …`` as a user whom file modes bind: they do not bind root."""
    prefix: list[str] = []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may read every folder, and setpriv is not there to be somebody else")
        # All rights gone, the user kept: whoever owns a folder is bound by its mode.
        prefix = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*prefix, sys.executable, "-m", "pytest_drainwatch", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )

    return run


# --- what cannot be aggregated -------------------------------------------------------------


def test_without_a_folder_it_is_a_usage_error(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["aggregate"])
    assert stopped.value.code == 2
    assert "DIR" in capsys.readouterr().err


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: Captured) -> None:
    assert main(["aggregate", str(tmp_path / "missing")]) == 3
    assert "missing: no such folder" in capsys.readouterr().err


def test_a_folder_without_reports(tmp_path: Path, capsys: Captured) -> None:
    assert main(["aggregate", str(tmp_path)]) == 3
    assert "no report.json in this folder or below it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b"{",
            "not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2",
        ),
        (
            b'{"schema_version": 1,\n "trial": {"id',
            "not valid JSON: Unterminated string starting at",
        ),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"schema_version": ' + b"[" * 500 + b"]" * 500 + b"}", "recursion limit"),
        (b"{}", "drainwatch_version: is missing"),
        (b'{"schema_version": 1}', "not a pytest-drainwatch report"),
        (b"\xff\xfe", "codec can't decode"),
    ],
)
def test_one_unreadable_report_spoils_the_aggregate(
    arm: Path, content: bytes, said: str, capsys: Captured
) -> None:
    """Without it the figures would be those of a selection."""
    broken = arm / "arm-B" / "trial-003" / "report.json"
    broken.parent.mkdir()
    broken.write_bytes(content)
    assert main(["aggregate", str(arm)]) == 3
    error = capsys.readouterr().err
    assert str(broken) in error
    assert said in error


def test_an_interval_that_ends_before_it_begins_names_its_report(
    run: Path, capsys: Captured
) -> None:
    broken = run / "drain-delete" / "r01" / "report.json"
    document = json.loads(broken.read_text())
    document["trial"]["flows"][0]["terminal_ns"].reverse()
    broken.write_text(json.dumps(document))
    assert main(["aggregate", str(run)]) == 3
    error = capsys.readouterr().err
    assert f"{broken}: an interval needs lo <= hi" in error


def test_a_file_is_no_folder(run: Path, capsys: Captured) -> None:
    path = run / "drain-delete" / "r00" / "report.json"
    assert main(["aggregate", str(path)]) == 3
    error = capsys.readouterr().err
    assert f"{path}: this is a file; expected a folder" in error
    assert f"drainwatch show {path}" in error


@pytest.mark.parametrize("command", ["aggregate", "show"])
@pytest.mark.parametrize("closed", ["drain-delete/r01", "drain-delete", "."])
def test_a_folder_that_cannot_be_looked_into_is_not_left_out(
    run: Path, command: str, closed: str, as_nobody: Nobody
) -> None:
    """What the figures lacked nobody would know."""
    opened = as_nobody(command, str(run))
    assert (opened.returncode, opened.stderr) == (0, "")
    (run / closed).chmod(0)
    found = as_nobody(command, str(run))
    assert (found.returncode, found.stdout) == (3, "")
    assert f"{(run / closed)}: cannot look into this folder: Permission denied" in found.stderr


def test_a_summary_says_what_could_not_be_looked_into(run: Path, as_nobody: Nobody) -> None:
    (run / "drain-delete" / "r01").chmod(0)
    found = as_nobody("aggregate", str(run), "--markdown")
    assert found.returncode == 3
    assert "r01: cannot look into this folder: Permission denied" in found.stderr
    assert "cannot look into this folder" in found.stdout


def test_a_report_that_may_not_be_read_is_not_left_out(run: Path, as_nobody: Nobody) -> None:
    closed = run / "drain-delete" / "r01" / "report.json"
    closed.chmod(0)
    found = as_nobody("aggregate", str(run))
    assert (found.returncode, found.stdout) == (3, "")
    assert str(closed) in found.stderr
    assert "Permission denied" in found.stderr


# --- the published matrix ------------------------------------------------------------------


@example.needs_published
def test_all_sixty_published_statistics_are_reproduced(capsys: Captured) -> None:
    published = json.loads((example.MATRIX / "aggregate.json").read_text())
    expected = {
        (arm["arm"], stat["metric"]): (
            stat["observed_repeats"],
            stat["not_measured_repeats"],
            stat["min"],
            stat["median"],
            stat["max"],
            stat["values"],
        )
        for arm in published
        for stat in arm["stats"]
    }
    found = {
        (scenario["id"], name): (
            metric["observed"],
            metric["not_measured"],
            metric["min_ms"],
            metric["median_ms"],
            metric["max_ms"],
            metric["values_ms"],
        )
        for scenario in aggregated(example.MATRIX, capsys)
        for name, metric in scenario["metrics"].items()
    }
    assert len(expected) == 60
    assert found == expected


@example.needs_published
def test_what_they_call_177_ms_after_container_exit(capsys: Captured) -> None:
    """Arm E: the median is anything from 323 ms before the exit to 177 ms after it."""
    scenarios = {one["id"]: one["metrics"] for one in aggregated(example.MATRIX, capsys)}
    metric = scenarios["E"]["udp_first_terminal_minus_container_exit_ms"]
    assert metric["median_ms"] == 177
    assert metric["bracket_ms"] == {"lo": -323, "hi": 177}
    # And "2.417 s" of arm B is anything from 1.91 s.
    assert scenarios["B"]["trigger_to_first_udp_terminal_ms"]["bracket_ms"] == {
        "lo": 1914,
        "hi": 2417,
    }


@example.needs_published
def test_single_trials_are_scenarios_of_their_own(capsys: Captured) -> None:
    found = aggregated(example.PUBLISHED / "2026-08-31-kind-v1.34.0", capsys)
    assert {one["id"]: len(one["repeats"]) for one in found} == {
        "drain": 1,
        "exit-now": 1,
        "ignore": 1,
    }
    last_tcp = {one["id"]: one["metrics"][NAMES[1]]["median_ms"] for one in found}
    assert last_tcp == {"drain": 25069, "exit-now": 46, "ignore": 30058}
