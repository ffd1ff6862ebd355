"""``drainwatch …``: commands, exit codes, and errors without a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_drainwatch import report
from pytest_drainwatch.cli import main
from pytest_drainwatch.cluster.embedded import machine
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.recording import dumps
from pytest_drainwatch.core.scenario import Scenario
from tests.core.trials import recording_of

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def trial_folder(tmp_path: Path) -> Path:
    """What a trial leaves."""
    recording = recording_of(Scenario())
    (tmp_path / "recording.jsonl").write_text(dumps(recording))
    (tmp_path / "report.json").write_text(report.dumps(derive(recording)))
    return tmp_path


def test_derive_reproduces_the_report_byte_for_byte(trial_folder: Path) -> None:
    again = trial_folder / "again.json"
    assert main(["derive", str(trial_folder / "recording.jsonl"), "-o", str(again)]) == 0
    assert again.read_bytes() == (trial_folder / "report.json").read_bytes()


def test_derive_prints_without_an_output(trial_folder: Path, capsys: Captured) -> None:
    assert main(["derive", str(trial_folder / "recording.jsonl")]) == 0
    assert capsys.readouterr().out == (trial_folder / "report.json").read_text()


@pytest.mark.parametrize("given", ["report.json", "."])
def test_show_takes_a_file_or_a_folder(trial_folder: Path, given: str, capsys: Captured) -> None:
    assert main(["show", str(trial_folder / given)]) == 0
    assert "FLOWS" in capsys.readouterr().out


@pytest.mark.parametrize("which", ["report", "recording"])
def test_schemas_are_json_schemas(which: str, capsys: Captured) -> None:
    assert main(["schema", which]) == 0
    assert json.loads(capsys.readouterr().out)["$schema"].startswith("https://json-schema.org/")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "{}/missing"], "No such file"),
        (["show", "{}/empty"], "no report.json in this folder"),
        (["show", "{}/binary"], "binary"),
        (["show", "{}/other.json"], "not a pytest-drainwatch report"),
        (["derive", "{}/missing"], "No such file"),
        (["derive", "{}/binary"], "binary"),
        (["derive", "{}/other.json"], "line 1"),
        (["show", "{}/deep.json"], "deep.json: not valid JSON: its values are nested too deeply"),
        (["derive", "{}/deep.json"], "deep.json: line 1 is not a recording's header: "),
        (["derive", "{}/odd.jsonl"], "odd.jsonl: line 2 is not an observation: "),
    ],
)
def test_what_cannot_be_read_is_exit_code_3(
    tmp_path: Path, arguments: list[str], said: str, capsys: Captured
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "deep.json").write_text("[" * 100_000 + "\n")
    header = dumps(recording_of(Scenario())).partition("\n")[0]
    (tmp_path / "odd.jsonl").write_text(f"{header}\n{'[' * 100_000}\n")
    (tmp_path / "other.json").write_text('{"some": "thing"}\n')
    assert main([word.format(tmp_path) for word in arguments]) == 3
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--grace-period", "soon"], "--grace-period=soon"),
        (["run", "--tcp-flows", "0", "--udp-flows", "0"], "at least one flow"),
        (["run", "--cluster", "kind", "--kubeconfig", "x"], "--kubeconfig/--context cannot apply"),
        (["run", "--min-sync-period", "0"], "expected 1ms or more"),
        (["run", "--proxy-mode", "userspace"], "expected one of: iptables, nftables, ipvs"),
        (["run", "--replicas", "2", "--targets", "3"], "there are not so many pods"),
        (["run", "--trigger", "rollout", "--targets", "2", "--replicas", "2"], "'rollout'"),
    ],
)
def test_a_bad_value_is_exit_code_2(arguments: list[str], said: str, capsys: Captured) -> None:
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["run", "--drain-behavior", "explode"], ["frobnicate"], ["schema", "x"], []]
)
def test_usage_errors_are_argparses_own(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: drainwatch" in capsys.readouterr().err


@pytest.mark.skipif(machine.lacks_ipvs() is None, reason="the kernel has ip_vs")
def test_ipvs_where_the_kernel_lacks_it_is_exit_code_3(tmp_path: Path, capsys: Captured) -> None:
    words = ["--cluster", "embedded", "--proxy-mode", "ipvs", "--out", str(tmp_path)]
    assert main(["run", *words]) == 3
    error = capsys.readouterr().err
    assert "void: kube-proxy cannot run in ipvs mode" in error
    assert "removed in 1.43" in error


def test_derive_blames_the_output_that_it_cannot_write(
    trial_folder: Path, capsys: Captured
) -> None:
    output = trial_folder / "report.json" / "again.json"
    assert main(["derive", str(trial_folder / "recording.jsonl"), "-o", str(output)]) == 3
    error = capsys.readouterr().err
    assert error.startswith(f"drainwatch: {output}: cannot write it: ")


def test_an_unwritable_results_folder_is_exit_code_3(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").write_text("")
    assert main(["run", "--out", str(tmp_path / "file")]) == 3
    assert "cannot use" in capsys.readouterr().err
