"""What the commands write, and to whom: readers that leave, terminals that speak little.

Each in a process of its own: these are about real pipes, real encodings, real exit codes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_drainwatch import report
from pytest_drainwatch.cli import main
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.recording import dumps
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.output import CUT_OFF, PLAIN
from tests.core.trials import recording_of

DRAINWATCH = (sys.executable, "-m", "pytest_drainwatch")
# As a shell has it: what is left in a buffer fails as late as at exit.
BUFFERED = {**os.environ, "PYTHONUNBUFFERED": ""}
SCENARIO = "Žluťoučký"  # neither ASCII nor Latin-1


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of one trial, named in letters that not every terminal has."""
    folder = tmp_path / "run" / "drain" / "r00"
    folder.mkdir(parents=True)
    recording = recording_of(Scenario())
    header = replace(recording.header, scenario={**recording.header.scenario, "id": SCENARIO})
    recording = replace(recording, header=header)
    (folder / "recording.jsonl").write_text(dumps(recording), encoding="utf-8")
    (folder / "report.json").write_text(report.dumps(derive(recording)), encoding="utf-8")
    return tmp_path / "run"


def drainwatch(*arguments: str, encoding: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*DRAINWATCH, *arguments],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )


def with_a_reader_that_left(arguments: Sequence[str], *, errors_too: bool) -> tuple[int, str]:
    """The exit code and what was said besides, when nobody reads the output."""
    reads, writes = os.pipe()
    os.close(reads)
    try:
        found = subprocess.run(
            [*DRAINWATCH, *arguments],
            stdout=writes,
            stderr=writes if errors_too else subprocess.PIPE,
            text=True,
            check=False,
            env=BUFFERED,
        )
    finally:
        os.close(writes)
    return found.returncode, found.stderr or ""


@pytest.mark.parametrize("errors_too", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "{run}"],
        ["aggregate", "{run}"],
        ["aggregate", "{run}", "--json"],
        ["derive", "{run}/drain/r00/recording.jsonl"],
        ["schema", "report"],
        ["--help"],
        ["cluster", "list"],
        ["doctor"],
    ],
    ids=lambda arguments: "-".join(word for word in arguments if "{" not in word),
)
def test_a_reader_that_leaves_is_nobodys_fault(
    run: Path, arguments: list[str], errors_too: bool
) -> None:
    """As SIGPIPE ends other tools: neither a verdict nor a broken promise, and no complaint."""
    words = [word.format(run=run) for word in arguments]
    assert with_a_reader_that_left(words, errors_too=errors_too) == (CUT_OFF, "")


def test_an_error_that_nobody_reads_is_cut_off_too(tmp_path: Path) -> None:
    missing = ["show", str(tmp_path / "missing")]
    assert with_a_reader_that_left(missing, errors_too=True) == (CUT_OFF, "")
    code, said = with_a_reader_that_left(missing, errors_too=False)
    assert (code, "No such file" in said) == (3, True)


def test_another_broken_pipe_is_not_taken_for_the_readers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flow agent that died, say: that is trouble, and must be seen."""

    def broken(which: str) -> None:
        raise BrokenPipeError(32, "the agent's pipe")

    monkeypatch.setattr(report, "schema", broken)
    assert main(["schema", "report"]) == 3
    assert "the agent's pipe" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["show {}", "aggregate {}", "--help", "cluster list", "doctor"])
def test_a_full_disk_is_not_the_reports_fault(run: Path, command: str) -> None:
    with Path("/dev/full").open("w") as full:
        found = subprocess.run(
            [*DRAINWATCH, *command.format(run).split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=BUFFERED,
        )
    assert found.returncode == 3
    assert found.stderr == "drainwatch: cannot write the output: No space left on device\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("command", "code"), [("show missing", 3), ("simulate --nodes 0", 2), ("balancer missing", 3)]
)
def test_errors_that_nobody_can_be_told_of_keep_their_code(command: str, code: int) -> None:
    with Path("/dev/full").open("w") as full:
        found = subprocess.run(
            [*DRAINWATCH, *command.split()],
            stdout=subprocess.PIPE,
            stderr=full,
            check=False,
            env=BUFFERED,
        )
    assert (found.returncode, found.stdout) == (code, b"")


@pytest.mark.parametrize(
    ("command", "code"), [("show missing", 3), ("show", 2), ("show x --baseline y", 2)]
)
def test_errors_are_no_output_where_stderr_is_closed(
    tmp_path: Path, command: str, code: int
) -> None:
    shell = f'"$@" 2>&-; echo $? >"{tmp_path}/code"'
    found = subprocess.run(
        ["sh", "-c", shell, "sh", *DRAINWATCH, *command.split()],
        stdout=subprocess.PIPE,
        check=True,
        env=BUFFERED,
    )
    assert ((tmp_path / "code").read_text(), found.stdout) == (f"{code}\n", b"")


def test_without_an_output_at_all_nothing_breaks(run: Path) -> None:
    shell = f'"$@" >&-; echo $? >"{run}/code"'
    subprocess.run(["sh", "-c", shell, "sh", *DRAINWATCH, "show", str(run)], check=True)
    assert (run / "code").read_text() == "0\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
@pytest.mark.parametrize("command", ["show", "aggregate"])
def test_a_terminal_that_lacks_letters_gets_plainer_ones(
    run: Path, command: str, encoding: str
) -> None:
    whole = drainwatch(command, str(run), encoding="utf-8").stdout.decode()
    assert not whole.isascii()
    found = drainwatch(command, str(run), encoding=encoding)
    assert (found.returncode, found.stderr) == (0, b"")
    for sign, words in PLAIN.items():
        if not can_write(sign, encoding):
            whole = whole.replace(sign, words)
    assert found.stdout == whole.encode(encoding, errors="replace")


def can_write(sign: str, encoding: str) -> bool:
    try:
        sign.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def test_what_is_good_and_what_is_not_stays_told_apart() -> None:
    """``doctor`` says it by a sign alone."""
    program = "from pytest_drainwatch import output as o; o.write_what_can_be_shown(); "
    found = subprocess.run(
        [sys.executable, "-c", program + r"o.write('\u2713 ip\n\u2717 nft\n\u017d')"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert found.stdout == b"ok ip\nNO nft\n?"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_error_reaches_a_terminal_that_lacks_its_letters(tmp_path: Path, encoding: str) -> None:
    found = drainwatch("show", str(tmp_path / SCENARIO), encoding=encoding)
    assert found.returncode == 3
    assert b"No such file" in found.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_utf_8_whatever_the_terminal_speaks(run: Path, encoding: str) -> None:
    """A question mark in it would be another scenario."""
    again = drainwatch("derive", str(run / "drain/r00/recording.jsonl"), encoding=encoding)
    assert again.returncode == 0
    assert again.stdout == (run / "drain/r00/report.json").read_bytes()
    pooled = drainwatch("aggregate", str(run), "--json", encoding=encoding)
    assert json.loads(pooled.stdout.decode("utf-8"))["scenarios"][0]["id"] == SCENARIO


def test_a_crash_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python would leave with 1, which says that a promise is broken."""

    def crash(which: str) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(report, "schema", crash)
    assert main(["schema", "report"]) == 3
    assert "RuntimeError: a bug" in capsys.readouterr().err
