"""A simulated trial says so wherever it is shown, and is never taken for a measured one."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_drainwatch import report
from pytest_drainwatch.cli import main
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.recording import RecordingError, dumps, loads
from pytest_drainwatch.core.repeats.aggregate import PoolError, pool
from pytest_drainwatch.core.repeats.repeat import repeat
from pytest_drainwatch.core.scenario import App, Flows, Scenario
from pytest_drainwatch.core.simulation.trial import simulate_trial
from pytest_drainwatch.render import terminal
from pytest_drainwatch.repeats.comparison import ComparisonError, check_baseline
from tests.cli.folders import write
from tests.core.trials import recording_of

Captured = pytest.CaptureFixture[str]
ASKED = Scenario(
    app=App(drain_ns=2 * NS_PER_S, grace_period_s=5),
    flows=Flows(tcp=2, udp=2, probe_interval_ns=50 * NS_PER_MS),
    settle_ns=1 * NS_PER_S,
    name="asked",
)
RECORDING = simulate_trial(ASKED)
SIMULATED = derive(RECORDING)
MEASURED = replace(SIMULATED, simulated=False)


def run(folder: Path, *repeats: Report) -> Path:
    """A run with these repeats of one scenario."""
    for number, told in enumerate(repeats):
        write(folder / "asked" / f"r{number:02d}", told)
    return folder


@pytest.fixture
def simulated(tmp_path: Path) -> Path:
    return run(tmp_path / "simulated", SIMULATED, SIMULATED)


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    return run(tmp_path / "measured", MEASURED, MEASURED)


# --- recording and report ------------------------------------------------------------------------


def test_the_recording_says_so_and_a_measured_one_says_nothing() -> None:
    assert json.loads(dumps(RECORDING).partition("\n")[0])["simulated"] is True
    measured = dumps(recording_of(Scenario()))
    assert "simulated" not in measured.partition("\n")[0]
    assert loads(measured).header.simulated is False


@pytest.mark.parametrize("said", ['"true"', "1", "null", "[]"])
def test_a_header_that_says_something_else_is_refused(said: str) -> None:
    text = dumps(RECORDING).replace('"simulated":true', f'"simulated":{said}', 1)
    with pytest.raises(RecordingError, match="'simulated' is true or false"):
        loads(text)


def test_judging_a_recording_again_keeps_the_word(tmp_path: Path) -> None:
    (tmp_path / "recording.jsonl").write_text(dumps(RECORDING), encoding="utf-8")
    out = tmp_path / "report.json"
    assert main(["derive", str(tmp_path / "recording.jsonl"), "-o", str(out)]) == 0
    assert report.loads(out.read_text(encoding="utf-8")) == SIMULATED


def test_an_older_report_was_measured() -> None:
    plain = json.loads(report.dumps(MEASURED))
    assert plain["simulated"] is False
    del plain["simulated"]
    assert report.loads(json.dumps(plain)) == MEASURED
    assert report.loads(report.dumps(SIMULATED)).simulated


@pytest.mark.parametrize("said", ["false", "true", "no", 0, 1, None, [], {}])
def test_a_report_that_says_something_else_is_refused(said: object) -> None:
    plain = {**json.loads(report.dumps(MEASURED)), "simulated": said}
    with pytest.raises(report.ReportError, match=r"simulated: .*expected true or false"):
        report.loads(json.dumps(plain))


# --- where a trial is shown ----------------------------------------------------------------------


def test_the_terminal_shows_it_before_anything_else(capsys: Captured, simulated: Path) -> None:
    assert main(["show", str(simulated / "asked" / "r00")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("  ! SIMULATED: a model predicted this")
    assert "SIMULATED" not in terminal.show(MEASURED)


@pytest.mark.parametrize("what", ["", "asked/r00"], ids=["run", "trial"])
def test_the_page_has_it_in_its_title_and_at_the_trial(
    simulated: Path, measured: Path, what: str
) -> None:
    for folder, times in ((simulated, 1), (measured, 0)):
        page = folder / "page.html"
        assert main(["show", "--html", "-o", str(page), str(folder / what)]) == 0
        text = page.read_text(encoding="utf-8")
        assert text.count("<title>SIMULATED: ") == times
        assert text.count("<h1>SIMULATED: ") == times
        assert ("<h2>SIMULATED: " in text) == bool(times)


def test_a_page_of_both_counts_the_simulated_ones(tmp_path: Path) -> None:
    both = run(tmp_path, SIMULATED, MEASURED, MEASURED)
    assert main(["show", "--html", "-o", str(tmp_path / "page.html"), str(both)]) == 0
    assert "(1 of 3 trials SIMULATED)</title>" in (tmp_path / "page.html").read_text("utf-8")


def test_the_trace_names_its_process_so(simulated: Path, measured: Path) -> None:
    for folder, marked in ((simulated, True), (measured, False)):
        out = folder / "trace.json"
        assert main(["show", "--trace", "-o", str(out), str(folder / "asked" / "r00")]) == 0
        events = json.loads(out.read_text(encoding="utf-8"))["traceEvents"]
        (name,) = [e["args"]["name"] for e in events if e["name"] == "process_name"]
        assert name.startswith("SIMULATED ") == marked
        (label,) = [e["args"]["labels"] for e in events if e["name"] == "process_labels"]
        assert label.startswith("simulated ") == ("no cluster" in label) == marked


def test_no_version_of_a_cluster_is_made_up(
    capsys: Captured, simulated: Path, measured: Path
) -> None:
    assert SIMULATED.environment.kubernetes_version is None
    for folder, marked in ((simulated, True), (measured, False)):
        for command in ("show", "aggregate"):
            assert main([command, str(folder)]) == 0
            out = capsys.readouterr().out
            assert ("no cluster, as if kube-proxy iptables" in out) == marked
            assert ("Kubernetes None" in out) == (not marked)


# --- where trials are taken together -------------------------------------------------------------


def test_it_is_not_pooled_with_measured_ones_and_the_field_is_named(
    capsys: Captured, tmp_path: Path
) -> None:
    with pytest.raises(PoolError, match=r"simulated is True in a and False in b"):
        pool("asked", [repeat(SIMULATED, "a"), repeat(MEASURED, "b")])
    assert main(["aggregate", str(run(tmp_path, MEASURED, SIMULATED))]) != 0
    assert "simulated is False in" in capsys.readouterr().err


def test_an_aggregate_of_simulated_trials_says_what_they_are(
    capsys: Captured, simulated: Path, measured: Path
) -> None:
    assert main(["aggregate", str(simulated)]) == 0
    assert "SCENARIO asked (SIMULATED)" in (text := capsys.readouterr().out)
    assert "SIMULATED: a model predicted these trials" in text
    assert main(["aggregate", str(simulated), "--markdown"]) == 0
    assert "SIMULATED" in capsys.readouterr().out
    assert main(["aggregate", str(measured)]) == 0
    assert "SIMULATED" not in capsys.readouterr().out


def test_a_simulated_run_is_no_baseline_and_no_run(
    capsys: Captured, simulated: Path, measured: Path
) -> None:
    for sides in ((simulated, measured), (measured, simulated)):
        assert main(["compare", *map(str, sides), "--across", "simulated"]) != 0
        assert f"{simulated} holds simulated trials" in capsys.readouterr().err
    with pytest.raises(ComparisonError, match="simulated is True in asked"):
        check_baseline(simulated)
    assert check_baseline(measured) == measured.resolve()


def test_a_run_with_one_simulated_trial_among_measured_ones_is_no_baseline(tmp_path: Path) -> None:
    """Its scenario cannot be pooled, so nothing of it can be compared."""
    with pytest.raises(ComparisonError):
        check_baseline(run(tmp_path, MEASURED, SIMULATED))


def test_the_tables_have_a_column(simulated: Path, measured: Path, tmp_path: Path) -> None:
    for folder, said in ((simulated, "true"), (measured, "false")):
        out = tmp_path / f"tables-{said}"
        assert main(["aggregate", str(folder), "--csv", str(out)]) == 0
        for name in ("trials.csv", "flows.csv"):
            with (out / name).open(encoding="utf-8", newline="") as file:
                assert {row["simulated"] for row in csv.DictReader(file)} == {said}
