"""``drainwatch show --trace``: what it writes where, and what it says when it cannot."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_drainwatch.cli import main
from tests.cli.folders import measured
from tests.trace.checker import problems
from tests.trace.reports import SAMPLE

Captured = pytest.CaptureFixture[str]
TRIAL = SAMPLE / "kubernetes-1.37" / "B-drain-delete" / "r00" / "report.json"


def processes(text: str) -> list[str]:
    assert problems(text) == []
    events = json.loads(text)["traceEvents"]
    return [e["args"]["name"] for e in events if e["name"] == "process_name"]


def test_beside_the_report_by_default(tmp_path: Path, capsys: Captured) -> None:
    shutil.copy(TRIAL, tmp_path)
    assert main(["show", "--trace", str(tmp_path / "report.json")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'trace.json'}\n"
    assert processes((tmp_path / "trace.json").read_text()) == ["B-drain-delete/r00"]


def test_a_run_is_one_file_in_its_folder(tmp_path: Path, capsys: Captured) -> None:
    run = tmp_path / "run"
    for scenario in ("a", "b"):
        measured(run, scenario)
    assert main(["show", "--trace", str(run)]) == 0
    found = processes((run / "trace.json").read_text())
    assert len(found) == len(set(found)) == 2
    assert main(["aggregate", str(run)]) == 0, "and it is in nobody's way"


def test_two_runs_are_told_apart(tmp_path: Path, capsys: Captured) -> None:
    for run in ("before", "after"):
        folder = tmp_path / run / "B-drain-delete" / "r00"
        folder.mkdir(parents=True)
        shutil.copy(TRIAL, folder)
    where = str(tmp_path / "both.json")
    runs = [str(tmp_path / run) for run in ("before", "after")]
    assert main(["show", "--trace", *runs, "-o", where]) == 0
    assert processes(Path(where).read_text()) == [
        "before/B-drain-delete/r00",
        "after/B-drain-delete/r00",
    ]


def test_printed_with_a_dash(capsys: Captured) -> None:
    assert main(["show", "--trace", str(TRIAL), "-o", "-"]) == 0
    assert processes(capsys.readouterr().out) == ["B-drain-delete/r00"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["{}/missing"], 3, "missing: No such file"),
        (["{}"], 3, "no report.json in this folder"),
        (["{}/other.json"], 3, "not a pytest-drainwatch report"),
        (["{trial}", "{trial}"], 2, "expected where it goes: -o FILE"),
        (["{trial}", "-o", "{}/other.json/x.json"], 3, "cannot write it"),
    ],
)
def test_what_cannot_be_done_is_said(
    tmp_path: Path, arguments: list[str], code: int, said: str, capsys: Captured
) -> None:
    words = [word.format(tmp_path, trial=TRIAL) for word in arguments]
    (tmp_path / "other.json").write_text("{}")
    assert main(["show", "--trace", *words]) == code
    assert said in capsys.readouterr().err
    assert not list(tmp_path.glob("**/trace.json"))


def test_an_output_without_anything_to_write_is_a_usage_error(capsys: Captured) -> None:
    assert main(["show", str(TRIAL), "-o", "x"]) == 2
    assert "--trace" in capsys.readouterr().err
