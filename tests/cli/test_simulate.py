"""``drainwatch simulate``: as a person reads it, as a program does, as a page, as a recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch.cli import main
from pytest_drainwatch.core.simulation.command import FLAGS, command
from pytest_drainwatch.core.simulation.inputs import Inputs
from pytest_drainwatch.core.simulation.presets import PRESETS
from pytest_drainwatch.output import CANNOT, DONE, USAGE
from pytest_drainwatch.render.simulation import MARKED
from pytest_drainwatch.simulating import MEANINGS

Captured = pytest.CaptureFixture[str]


def told(capsys: Captured, *arguments: str) -> str:
    """What was printed; it ends well and says nothing of errors."""
    assert main(["simulate", *arguments]) == DONE
    out, err = capsys.readouterr()
    assert err == ""
    return out


def as_json(capsys: Captured, *arguments: str) -> Any:
    return json.loads(told(capsys, *arguments, "--json"))


def requests(capsys: Captured, *arguments: str) -> dict[str, int]:
    found: dict[str, int] = as_json(capsys, *arguments)["requests"]
    return found


def test_the_defaults_succeed(capsys: Captured) -> None:
    counts = requests(capsys)
    assert counts["total"] == counts["succeeded"] > 0
    assert not any(counts[name] for name in ("failed", "refused", "reset", "killed", "retried"))


@pytest.mark.parametrize(
    ("arguments", "fate"),
    [
        (["--pre-stop", "0"], "refused"),
        (["--pre-stop", "5"], "refused"),
        (["--grace", "20"], "killed"),
        (["--on-sigterm", "exit-now"], "killed"),
        (["--keep-idle-open"], "reset"),
        (["--load-balancer", "30s"], "refused"),
    ],
)
def test_each_flag_does_what_it_says(capsys: Captured, arguments: list[str], fate: str) -> None:
    counts = requests(capsys, *arguments)
    assert counts[fate] > 0
    assert counts["succeeded"] + counts["failed"] == counts["total"]


def test_failed_requests_are_no_failure_of_the_command(capsys: Captured) -> None:
    assert "17 of 36 requests fail." in told(capsys, "--pre-stop", "0")


def test_it_is_marked_simulated_wherever_it_is_seen(capsys: Captured) -> None:
    assert told(capsys).startswith(MARKED)
    assert as_json(capsys)["simulated"] is True
    assert "nothing of it was measured" in told(capsys, "--html", "-o", "-")


def test_the_text_says_what_happened_in_which_order(capsys: Captured) -> None:
    text = told(capsys, "--preset", "pre-stop-5")
    assert "drainwatch simulate --pre-stop 5s\n" in text
    refused = "refused: the listener closed at 5 s, and node 3 sent new connections for another 3 s"
    assert refused in text
    trace = text.partition("TRACE")[2]
    order = ["The pod is deleted", "node 1 stops", "SIGTERM", "is refused", "node 3 stops", "exits"]
    assert [trace.index(words) for words in order] == sorted(trace.index(words) for words in order)


def test_no_number_is_parted_from_its_unit(capsys: Captured) -> None:
    """Whatever the lengths of the sentences."""
    for seconds in range(10, 40):
        text = told(capsys, "--load-balancer", str(seconds), "--pre-stop", "0", "--grace", "10")
        assert not [line for line in text.splitlines() if line.strip().startswith(("s ", "s."))]
        assert all(len(line) <= 102 for line in text.partition("REQUESTS")[0].splitlines())


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_preset_is_its_command(capsys: Captured, preset: Any) -> None:
    _, _, *arguments = command(preset.inputs).split()
    assert as_json(capsys, *arguments) == as_json(capsys, "--preset", preset.name)


def test_a_flag_beside_a_preset_changes_it(capsys: Captured) -> None:
    given = as_json(capsys, "--preset", "load-balancer", "--pre-stop", "31", "--grace", "1m")
    assert given["inputs"]["load_balancer_ns"] == 30_000_000_000
    assert given["inputs"]["pre_stop_ns"] == 31_000_000_000
    assert given["requests"]["failed"] == 0


def test_every_input_has_its_flag_and_its_meaning() -> None:
    assert list(FLAGS) == list(MEANINGS)
    assert set(FLAGS) == set(Inputs.__dataclass_fields__)


def test_every_request_is_there_with_its_outcome(capsys: Captured) -> None:
    given = as_json(capsys, "--grace", "20")
    assert len(given["sent"]) == given["requests"]["total"]
    killed = [one for one in given["sent"] if one["outcome"] == "killed"]
    assert len(killed) == given["requests"]["killed"] > 0
    assert given["steps"][0]["at_ns"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--pre-stop", "ten"], "argument --pre-stop: 'ten': expected a duration such as 25"),
        (["--pre-stop", "-1"], "expected"),
        (["--pre-stop", "nan"], "argument --pre-stop: 'nan': expected a duration"),
        (["--pre-stop", "9" * 400], "expected at most 1440m, a day"),
        (["--drain", "1441m"], "argument --drain: '1441m': expected at most 1440m, a day"),
        (["--grace", "1.5"], "argument --grace: '1.5': expected whole seconds"),
        (["--longest", "0"], "argument --longest: '0': expected 1ms or more"),
        (["--nodes", "three"], "argument --nodes: 'three': expected a whole number"),
        # More digits than Python prints.
        (["--nodes", "9" * 5000], "expected a whole number of 0 or more"),
        (["--grace", "9" * 5000], "expected a duration such as 25"),
        (["--drain", "0." + "9" * 5000], "expected a duration such as 25"),
        (["--on-sigterm", "panic"], "invalid choice: 'panic'"),
        (["--preset", "best"], "invalid choice: 'best'"),
        (["--json", "--html"], "not allowed with argument --json"),
    ],
)
def test_what_cannot_be_read_is_usage(capsys: Captured, arguments: list[str], said: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(["simulate", *arguments])
    assert left.value.code == USAGE
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nodes", "0"], "--nodes is 0, expected a whole number 1..100"),
        (["--nodes", "9" * 30], "expected a whole number 1..100"),
        (["--grace", "9" * 900], "expected a whole number 0..86400"),
        (["--grace", "86401"], "--grace is 86401, expected a whole number 0..86400"),
        (["--retries", "11"], "--retries is 11, expected a whole number 0..10"),
        (["--propagation", "240m", "--nodes", "100"], "20000 at most"),
        (
            ["--grace", "7200", "--recording", "x"],
            "--grace is 7200, expected a whole number 0..3600",
        ),
        (
            ["--drain", "3601", "--recording", "x"],
            "--recording makes a trial of it, which takes less: --drain is 3601s, expected "
            "0s..3600s",
        ),
        (["--recording", "-"], "--recording is -, expected a file"),
        (["--json", "-o", "x", "--recording", "./x"], "x is named twice, expected one file"),
        (["--html", "--recording", "simulation.html"], "simulation.html is named twice"),
    ],
)
def test_what_means_nothing_is_usage(
    capsys: Captured,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", *arguments]) == USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert not list(tmp_path.iterdir())


def test_a_page_with_these_inputs(
    capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told(capsys, "--html", "--pre-stop", "7") == "simulation.html\n"
    assert '"pre_stop_ns":7000000000' in Path("simulation.html").read_text().replace(": ", ":")


def test_what_is_written_is_what_is_printed(capsys: Captured, tmp_path: Path) -> None:
    for kind in ("--json", "--html"):
        file = tmp_path / kind
        assert told(capsys, kind, "-o", str(file)) == f"{file}\n"
        assert file.read_text(encoding="utf-8") == told(capsys, kind, "-o", "-")


def test_a_recording_is_judged_as_a_trials_is(capsys: Captured, tmp_path: Path) -> None:
    recording = tmp_path / "recording.jsonl"
    counts = requests(capsys, "--preset", "exit-now", "--recording", str(recording))
    assert main(["derive", str(recording)]) == DONE
    report = json.loads(capsys.readouterr().out)
    assert report["simulated"] is True
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report))
    assert main(["show", str(path)]) == DONE
    shown = capsys.readouterr().out
    assert "SIMULATED" in shown
    assert "\n  no cluster\n" in shown  # and not Kubernetes None
    failed = sum(kind["failed"] for kind in report["trial"]["requests"]["kinds"])
    assert failed == counts["failed"] > 0


def test_where_nothing_can_be_written(capsys: Captured, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for flag in ("-o", "--recording"):
        for place in (str(tmp_path / "file" / "below"), "", ".", "/"):
            assert main(["simulate", flag, place]) == CANNOT
            err = capsys.readouterr().err
            assert err.startswith("drainwatch: cannot write it: ")
