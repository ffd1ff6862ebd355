"""``aggregate --csv``: a row a trial, a row a flow, and nobody else's file is overwritten."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_drainwatch.cli import main
from pytest_drainwatch.core.flow.classify import Outcome
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.repeats.flow_columns import FLOW_COLUMNS
from pytest_drainwatch.core.repeats.trial_columns import TRIAL_COLUMNS
from pytest_drainwatch.core.scenario import App, Flows, Scenario, Service, ViaNode
from tests.cli import folders
from tests.cli.folders import measured, recorded, void
from tests.upstream import example

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two repeats, one of them in two attempts, and a void one."""
    run = tmp_path / "run"
    measured(run, name="r00", test="a.py::t[r00]")
    measured(run, name="r00.2")
    measured(run, name="r01")
    recorded(run, "drain-delete", "r02", void())
    return run


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def written(run: Path, out: Path) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    assert main(["aggregate", str(run), "--csv", str(out)]) == 0
    return rows(out / "trials.csv"), rows(out / "flows.csv")


def test_a_row_for_each_trial_and_flow(run: Path, tmp_path: Path, capsys: Captured) -> None:
    trials, flows = written(run, tmp_path / "out")
    assert capsys.readouterr().out == ""
    assert [(t["folder"], t["repeat"], t["attempt"]) for t in trials] == [
        ("drain-delete/r00", "0", "1"),
        ("drain-delete/r00.2", "0", "2"),
        ("drain-delete/r01", "1", "1"),
    ]
    (flow,) = folders.WHOLE.trial.flows
    assert flow.terminal_ns is not None
    assert len(flows) == 3
    found = flows[2]
    assert (found["folder"], found["id"], found["proto"], found["role"]) == (
        "drain-delete/r01",
        "tcp-0001",
        "tcp",
        "target",
    )
    assert (found["outcome"], found["mechanism"]) == ("drained-clean-close", "announced-fin")
    assert (int(found["terminal_lo_ns"]), int(found["terminal_hi_ns"])) == flow.terminal_ns
    assert found["t_terminal_ms"] == str(flow.t_terminal_ms)
    assert found["gap_lo_ns"] == ""


def test_a_trials_row_holds_its_figures_and_conditions(run: Path, tmp_path: Path) -> None:
    (first, *_), _ = written(run, tmp_path)
    summary = folders.WHOLE.trial.summary
    assert summary.trigger_to_sigterm_ns is not None
    assert first["trigger_to_sigterm_ms"] == str(summary.trigger_to_sigterm_ms)
    assert int(first["trigger_to_sigterm_lo_ns"]) == summary.trigger_to_sigterm_ns[0]
    assert int(first["trigger_to_sigterm_hi_ns"]) == summary.trigger_to_sigterm_ns[1]
    assert (first["target_tcp_drained_clean_close"], first["target_tcp_severed"]) == ("1", "0")
    assert (first["target_flows_lost_lo"], first["target_flows_lost_hi"]) == ("0", "0")
    assert first["git_commit"] == folders.WHOLE.git_commit
    assert first["test"] == "a.py::t[r00]"


def test_what_was_not_measured_is_empty_and_never_zero(run: Path, tmp_path: Path) -> None:
    (first, *_), _ = written(run, tmp_path)
    for name in (
        "trigger_to_first_udp_terminal_ms",
        "trigger_to_first_udp_terminal_hi_ns",
        "bystander_flows_lost_lo",
        "new_connections_failed_hi",
        "new_tcp_attempts",
        "new_tcp_connections_failing_ms",
        "degraded",
    ):
        assert first[name] == "", name
    # And this one was measured.
    assert first["target_tcp_not_measured"] == "0"


def test_a_zero_that_was_measured_is_a_zero(tmp_path: Path) -> None:
    trial = folders.WHOLE.trial
    flow = replace(trial.flows[0], terminal_ns=(0, NS_PER_MS), t_terminal_ms=0)
    folders.write(
        tmp_path / "run" / "a" / "r00", replace(folders.WHOLE, trial=replace(trial, flows=(flow,)))
    )
    trials, flows = written(tmp_path / "run", tmp_path)
    assert (flows[0]["t_terminal_ms"], flows[0]["terminal_lo_ns"]) == ("0", "0")
    assert trials[0]["trigger_to_first_tcp_terminal_lo_ns"] == "0"


def test_the_file_is_rfc_4180_whatever_a_text_holds(tmp_path: Path) -> None:
    trial = folders.WHOLE.trial
    hostile = 'a "quoted", one;\nand a line\r\nmore – ünïcode'
    flow = replace(trial.flows[0], detail=hostile, outcome=Outcome.SEVERED)
    config = {**Scenario().config(), "pre_stop": {"exec": ["sh", "-c", 'echo "a,b"']}}
    changed = replace(trial, flows=(flow,), scenario="a,b", config=config)
    folders.write(tmp_path / "run" / "a" / "r00", replace(folders.WHOLE, trial=changed))
    trials, flows = written(tmp_path / "run", tmp_path)
    assert flows[0]["detail"] == hostile
    assert trials[0]["scenario"] == "a,b"
    assert json.loads(trials[0]["config.pre_stop"]) == config["pre_stop"]
    raw = (tmp_path / "trials.csv").read_bytes()
    assert raw.count(b"\n") == raw.count(b"\r\n") == 2, "one header, one row"
    header = raw.split(b"\r\n")[0].decode().split(",")
    assert header == [column.name for column in TRIAL_COLUMNS]


def test_names_are_unique_and_every_setting_has_a_column() -> None:
    for names in ([c.name for c in TRIAL_COLUMNS], [c.name for c in FLOW_COLUMNS]):
        assert len(set(names)) == len(names)
    asked = Scenario(
        app=App(replicas=2, spread_over_nodes=True),
        flows=Flows(probe_each_node=True),
        service=Service(via_node=ViaNode.OTHER_NODE),
    )
    settings = {f"config.{name}" for name in {**Scenario().config(), **asked.config()}}
    assert settings <= {column.name for column in TRIAL_COLUMNS}


def test_trials_that_differ_stand_in_one_table(run: Path, tmp_path: Path) -> None:
    trial = replace(folders.WHOLE.trial, scenario="drain-delete")
    other = replace(folders.WHOLE, git_commit="else", trial=trial)
    folders.write(run / "drain-delete" / "r03", other)
    trials, _ = written(run, tmp_path)
    assert {row["git_commit"] for row in trials} == {folders.WHOLE.git_commit, "else"}
    # And its figures are refused as ever.
    assert main(["aggregate", str(run)]) == 3


def test_our_own_files_are_replaced(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    written(run, out)
    measured(run, name="r05")
    trials, _ = written(run, out)
    assert len(trials) == 4
    assert sorted(path.name for path in out.iterdir()) == ["flows.csv", "trials.csv"]


@pytest.mark.parametrize("name", ["trials.csv", "flows.csv"])
@pytest.mark.parametrize("content", [b"", b"name,age\r\nann,3\r\n", b"\x00\xff"])
def test_other_peoples_files_stay(
    run: Path, tmp_path: Path, name: str, content: bytes, capsys: Captured
) -> None:
    theirs = tmp_path / name
    theirs.write_bytes(content)
    assert main(["aggregate", str(run), "--csv", str(tmp_path)]) == 3
    assert f"{theirs}: this file is not one of ours" in capsys.readouterr().err
    assert theirs.read_bytes() == content
    assert not [path for path in tmp_path.glob("*.csv") if path != theirs], "nothing is half done"


def test_where_nothing_can_be_written(run: Path, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "out").write_text("a file")
    assert main(["aggregate", str(run), "--csv", str(tmp_path / "out")]) == 3
    assert str(tmp_path / "out") in capsys.readouterr().err


def test_a_report_that_cannot_be_read_is_not_left_out(
    run: Path, tmp_path: Path, capsys: Captured
) -> None:
    (run / "drain-delete" / "r01" / "report.json").write_text("{")
    assert main(["aggregate", str(run), "--csv", str(tmp_path)]) == 3
    assert "r01/report.json" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.csv"))


def test_the_ancestors_reports_have_no_such_columns(tmp_path: Path, capsys: Captured) -> None:
    example.write(tmp_path / "arm-B", example.report())
    assert main(["aggregate", str(tmp_path), "--csv", str(tmp_path / "out")]) == 3
    assert "this is a report of drainwatch v0.1" in capsys.readouterr().err
