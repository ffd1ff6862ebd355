"""``drainwatch fidelity``: what it prints, what it exits with, and what it refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_drainwatch import report
from pytest_drainwatch.cli import main
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.recording import Recording, dumps
from pytest_drainwatch.core.scenario import Behavior, Scenario
from pytest_drainwatch.core.simulation import trial as simulator
from pytest_drainwatch.core.simulation.latencies import Latencies
from tests.core.fidelity.made import DRAINS, EXITS, unmarked

Output = pytest.CaptureFixture[str]


def put(folder: Path, recording: Recording, *, beside: bool = False) -> None:
    """A trial on disk; ``beside``: with its recording."""
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(report.dumps(derive(recording)))
    if beside:
        (folder / "recording.jsonl").write_text(dumps(recording))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two scenarios, two trials each, of a cluster as the model has it."""
    for scenario in (DRAINS, EXITS):
        for number in range(2):
            took = Latencies(sigterm_ns=(20 + 9 * number) * NS_PER_MS)
            made = unmarked(simulator.simulate_trial(scenario, took))
            put(tmp_path / scenario.id / f"r{number:02d}", made, beside=number == 0)
    return tmp_path


def test_a_true_model_holds_and_exits_with_0(run: Path, capsys: Output) -> None:
    assert main(["fidelity", str(run)]) == 0
    told = capsys.readouterr().out
    assert "HOLDS: 24 of 24 flows ended as predicted" in told
    assert "DOES NOT HOLD" not in told
    assert "drain-delete (2 trials)" in told
    assert "target tcp: 6 of 6 outcomes and 6 of 6 mechanisms as predicted" in told


def test_a_false_model_does_not_and_exits_with_1(
    run: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    true: Callable[..., Recording] = simulator.simulate_trial

    def false(scenario: Scenario, took: Latencies | None = None) -> Recording:
        ignores = replace(scenario.app, behavior=Behavior.IGNORE)
        return true(replace(scenario, app=ignores), took)

    monkeypatch.setattr(simulator, "simulate_trial", false)
    assert main(["fidelity", str(run)]) == 1
    told = capsys.readouterr().out
    assert "DOES NOT HOLD: 18 of 24 flows ended as predicted" in told
    assert "drain-delete: target tcp flows: 0 outcomes of 6 as predicted" in told
    assert "outside" in told


def test_json_has_every_value_with_its_unit(run: Path, capsys: Output) -> None:
    assert main(["fidelity", str(run), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["fidelity_schema"], told["holds"], told["broken"]) == (1, True, [])
    (cluster,) = told["clusters"]
    assert cluster["trials"] == 4
    assert {arm["scenario"] for arm in cluster["arms"]} == {"drain-delete", "exit-now-delete"}
    shown = {
        each["name"]: each
        for each in cluster["latencies"]
        if each["trials"] in ("drain-delete", "all")
    }
    assert shown["sigterm_ns"]["observed"] == 2
    assert shown["sigterm_ns"]["least_ns"] == 20 * NS_PER_MS
    assert shown["connect_ns"]["observed"] == 1  # of the trial with a recording
    figure = next(
        each for each in cluster["arms"][0]["figures"] if each["metric"] == "trigger_to_sigterm_ms"
    )
    assert figure["inside"] is True
    assert figure["measured"]["observed"] == 2


def test_markdown_goes_to_a_file(run: Path, tmp_path: Path, capsys: Output) -> None:
    target = tmp_path / "fidelity.md"
    assert main(["fidelity", str(run), "--markdown", str(target)]) == 0
    assert "HOLDS" in capsys.readouterr().out
    said = target.read_text(encoding="utf-8")
    assert said.startswith("**HOLDS: 24 of 24")
    assert "| `sigterm_ns` | drain-delete |" in said
    assert "the simulator's default" in said  # a kill, which neither of them shows
    rows = [line for line in said.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {9, 6}


def test_markdown_that_cannot_be_written_is_said(run: Path, capsys: Output) -> None:
    assert main(["fidelity", str(run), "--markdown", str(run)]) == 3
    told = capsys.readouterr()
    assert f"{run}: cannot write it: [Errno 21] Is a directory" in told.err
    assert told.out == ""


def test_a_folder_for_markdown_is_made(run: Path) -> None:
    target = run / "not" / "there" / "fidelity.md"
    assert main(["fidelity", str(run), "--markdown", str(target)]) == 0
    assert "HOLDS" in target.read_text(encoding="utf-8")


def test_a_trial_that_is_given_twice_counts_once(run: Path, capsys: Output) -> None:
    assert main(["fidelity", str(run), str(run / "drain-delete"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["clusters"][0]["trials"] == 4


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda run: put(run / "x" / "r00", simulator.simulate_trial(DRAINS)), "is simulated"),
        (lambda run: shutil.rmtree(run / "drain-delete" / "r01"), "the only trial of drain-delete"),
        (lambda run: (run / "drain-delete/r00/report.json").write_text("{"), "r00/report.json"),
        (lambda run: (run / "drain-delete/r00/report.json").write_bytes(b"\xff\x00"), "r00"),
        (lambda run: (run / "drain-delete/r00/report.json").write_text(""), "r00/report.json"),
        (lambda run: (run / "drain-delete/r00/recording.jsonl").write_text("no\n"), "header"),
        (lambda run: (run / "drain-delete/r00/recording.jsonl").write_bytes(b"\xff"), "r00"),
        (lambda run: shutil.rmtree(run), "no such folder|No such file"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_its_name(
    spoil: Callable[[Path], object], said: str, run: Path, capsys: Output
) -> None:
    spoil(run)
    assert main(["fidelity", str(run)]) == 3
    told = capsys.readouterr()
    assert told.out == ""
    assert any(each in told.err for each in said.split("|")), told.err


def test_a_void_trial_has_no_report_to_compare(run: Path, capsys: Output) -> None:
    void = run / "void"
    void.mkdir()
    (void / "recording.jsonl").write_text("")
    assert main(["fidelity", str(void)]) == 3
    assert "no report.json in this folder; was the trial void?" in capsys.readouterr().err
    # Beside others it is not asked about.
    assert main(["fidelity", str(run)]) == 0


def test_without_results_it_says_how_it_is_used(capsys: Output) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["fidelity"])
    assert ended.value.code == 2
    assert "RESULTS" in capsys.readouterr().err
