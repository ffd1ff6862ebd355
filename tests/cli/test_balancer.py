"""``drainwatch balancer``: streams as a person, a file and a program in a pipe write them."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.cli import main
from pytest_drainwatch.core.balancer.grammar import LATEST, LONGEST_NAME, Verb
from pytest_drainwatch.core.balancer.machine import Balancer
from pytest_drainwatch.output import CANNOT, DONE, USAGE
from tests.core.balancer.played import play

Captured = pytest.CaptureFixture[str]
DRAINWATCH = (sys.executable, "-m", "pytest_drainwatch", "balancer")
BUSY = "POOL a b; PICK; DRAIN a 30"


def ran(tmp_path: Path, capsys: Captured, text: str | bytes) -> tuple[int, list[str], list[str]]:
    """The exit code, the answers and what was said of errors, for a file of commands."""
    file = tmp_path / "commands"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    code = main(["balancer", str(file)])
    out, err = capsys.readouterr()
    return code, out.splitlines(), err.splitlines()


def test_the_rotation_of_the_lesson(tmp_path: Path, capsys: Captured) -> None:
    text = "POOL a b c\nPICK\nPICK\nDRAIN a\nPICK\nPICK\n"
    assert ran(tmp_path, capsys, text) == (DONE, ["a", "b", "b", "c"], [])


def test_every_command_and_its_answer(tmp_path: Path, capsys: Captured) -> None:
    text = """
        # a deploy
        POOL a b c       # says nothing
        NOW 100
        PICK
        PICK
        DRAIN a 30
        drain b
        done b
        STATUS
        REMOVABLE
        NOW 130
        REMOVABLE
        REMOVE a
        UNDRAIN b
        PICK
        STATUS
    """
    answers = [
        *("a", "b"),
        *("a DRAIN 1 since 100 deadline 130", "b DRAIN 0 since 100", "c ACTIVE 0"),
        *("b", "a! b", "killed 1", "b"),
        *("b ACTIVE 1", "c ACTIVE 0"),
    ]
    assert ran(tmp_path, capsys, text) == (DONE, answers, [])


@pytest.mark.parametrize("silent", ["POOL x", "NOW 5", "DONE a", "DRAIN b", "UNDRAIN a", "", " #"])
def test_a_command_with_nothing_to_say_prints_nothing(silent: str) -> None:
    before = play("POOL a b; PICK" if "POOL" not in silent else "").balancer
    played = play(silent, before)
    assert (played.answers, played.errors) == ([], [])
    assert play("POOL a; REMOVABLE").answers == []  # nobody is
    assert play("STATUS; REMOVABLE").answers == []  # of an empty pool


def test_an_error_names_its_line_and_the_rest_is_carried_out(
    tmp_path: Path, capsys: Captured
) -> None:
    text = "POOL a b\nDONE a\nPICK\nFROB a\nPICK\n"
    code, answers, errors = ran(tmp_path, capsys, text)
    assert code == USAGE
    assert answers == ["a", "b"]
    assert errors[0] == (
        "line 2: 'DONE a': a holds no request, expected one that a PICK sent there"
    )
    assert errors[1].startswith("line 4: 'FROB a': no command 'FROB', expected one of: POOL NOW")
    assert errors[2:] == ["drainwatch: 2 of 5 lines could not be carried out, named above"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("FROB", "no command 'FROB', expected one of: POOL NOW PICK"),
        ("POOL", "words after POOL: 0, expected: POOL NAME…"),
        ("POOL c c d", "c is named twice, expected each backend once"),
        ("POOL c d", "the present pool holds requests (1 on a), expected none"),
        ("POOL ok naïve", "'naïve' is no name, expected at most 253 of: letters"),
        ("POOL a!", "'a!' is no name"),
        (f"POOL {'x' * (LONGEST_NAME + 1)}", "is no name"),
        ("NOW", "words after NOW: 0, expected: NOW TIME"),
        ("NOW 1 2", "words after NOW: 2, expected: NOW TIME"),
        ("NOW 9", "it is 10 already, expected no earlier time"),
        ("NOW -1", "the time is '-1', expected a whole number from 0 to 9223372036854775807"),
        ("NOW 11.5", "the time is '11.5', expected a whole number"),
        ("NOW 1e3", "the time is '1e3'"),
        ("NOW 1_000", "the time is '1_000'"),
        ("NOW nan", "the time is 'nan'"),
        ("NOW ١٢", "the time is '١٢'"),
        (f"NOW {LATEST + 1}", "expected a whole number from 0 to"),
        (f"NOW {'9' * 10_000}", "expected a whole number from 0 to"),
        ("PICK a", "words after PICK: 1, expected: PICK"),
        ("DONE", "words after DONE: 0, expected: DONE NAME"),
        ("DONE b", "b holds no request, expected one that a PICK sent there"),
        ("DONE z", "no z in the pool, expected one of: a b"),
        ("DRAIN", "words after DRAIN: 0, expected: DRAIN NAME [TIMEOUT]"),
        ("DRAIN b 1 2", "words after DRAIN: 3, expected: DRAIN NAME [TIMEOUT]"),
        ("DRAIN b -5", "the timeout is '-5', expected a whole number"),
        ("DRAIN b 0.5", "the timeout is '0.5', expected a whole number"),
        ("DRAIN b 5s", "the timeout is '5s', expected a whole number"),
        ("DRAIN z", "no z in the pool"),
        ("UNDRAIN z", "no z in the pool"),
        ("REMOVABLE a", "words after REMOVABLE: 1, expected: REMOVABLE"),
        ("REMOVE b", "b is ACTIVE, expected one that drains: DRAIN it first"),
        ("REMOVE a", "a holds 1 in flight until 30 and it is 10, expected them DONE"),
        ("REMOVE z", "no z in the pool"),
        ("STATUS a", "words after STATUS: 1, expected: STATUS"),
    ],
)
def test_an_error_says_what_was_expected_and_changes_nothing(line: str, said: str) -> None:
    before = play(f"{BUSY}; NOW 10").balancer
    played = play(line, before)
    assert played.answers == []
    assert said in played.errors[0]
    assert played.balancer == before


def test_a_busy_backend_without_a_deadline_is_not_removed() -> None:
    busy = play("POOL a; PICK; DRAIN a").balancer
    played = play("REMOVE a", busy)
    assert played.balancer == busy
    assert "holds 1 in flight and has no deadline, expected them DONE" in played.errors[0]


@pytest.mark.parametrize("empty", ["", "POOL a; DRAIN a", "POOL a; DRAIN a; REMOVE a"])
def test_nobody_can_be_picked_where_nobody_is_active(empty: str) -> None:
    before = play(empty).balancer
    played = play("PICK", before)
    assert "no backend is ACTIVE, expected one" in played.errors[0]
    assert played.balancer == before  # the counter too


def test_an_empty_pool_says_what_comes_first() -> None:
    assert "expected POOL with its backends first" in play("DRAIN a").errors[0]


def test_a_drain_told_again_never_postpones() -> None:
    told = "POOL a; PICK; NOW 10; DRAIN a 30; NOW 20"
    assert play(f"{told}; DRAIN a; STATUS").answers[1:] == ["a DRAIN 1 since 10 deadline 40"]
    assert play(f"{told}; DRAIN a 90; STATUS").answers[1:] == ["a DRAIN 1 since 10 deadline 40"]
    assert play(f"{told}; DRAIN a 5; STATUS").answers[1:] == ["a DRAIN 1 since 10 deadline 25"]


def test_undrain_of_an_active_one_changes_nothing() -> None:
    before = play("POOL a b; PICK").balancer
    assert play("UNDRAIN a", before) == play("", before)


def test_a_new_pool_takes_the_place_of_one_that_holds_nothing() -> None:
    assert play("POOL a b; PICK; DONE a; DRAIN a; POOL a c; PICK; STATUS").answers == [
        *("a", "c", "a ACTIVE 0", "c ACTIVE 1")
    ]


def test_the_greatest_numbers_count_exactly() -> None:
    script = f"POOL a; PICK; NOW {LATEST}; DRAIN a {LATEST}; STATUS; NOW {LATEST}"
    assert play(script).answers[-1] == f"a DRAIN 1 since {LATEST} deadline {2 * LATEST}"
    assert play("NOW 000000000000000000000000000007").balancer.now == 7


@pytest.mark.parametrize(
    "text",
    [
        b"POOL a b\r\nPICK\r\n",
        b"\xef\xbb\xbfPOOL a b\nPICK\n",
        b"pool a b\n\n   \n# a comment\n\tpick\t# another\n",
        b"POOL a b\nPICK",
    ],
    ids=["CRLF", "BOM", "comments and lower case", "no newline at the end"],
)
def test_files_as_editors_write_them(tmp_path: Path, capsys: Captured, text: bytes) -> None:
    assert ran(tmp_path, capsys, text) == (DONE, ["a"], [])


def test_an_empty_file_says_nothing(tmp_path: Path, capsys: Captured) -> None:
    assert ran(tmp_path, capsys, "") == (DONE, [], [])


@pytest.mark.parametrize(
    "text",
    [b"\x00\xff\xfe\x01PICK\n", b"\xff\xfeP\x00O\x00O\x00L\x00\n", bytes(range(256))],
)
def test_binary_is_refused_line_by_line(tmp_path: Path, capsys: Captured, text: bytes) -> None:
    code, answers, errors = ran(tmp_path, capsys, text + b"\nPOOL a\nPICK\n")
    assert code == USAGE
    assert answers == ["a"]
    assert all(line.isprintable() for line in errors)


def test_a_carriage_return_is_no_blank(tmp_path: Path, capsys: Captured) -> None:
    """A file with CR line ends must not become one POOL with backends PICK and STATUS."""
    code, answers, errors = ran(tmp_path, capsys, b"POOL a b\rPICK\rSTATUS\r")
    assert (code, answers) == (USAGE, [])
    assert "expected lines that end with LF or CR LF" in errors[0]


def test_an_endless_line_is_refused_once(tmp_path: Path, capsys: Captured) -> None:
    endless = b"POOL " + b"x " * (2 << 20)
    code, answers, errors = ran(tmp_path, capsys, endless + b"\nPOOL a\nPICK\n")
    assert (code, answers, len(errors)) == (USAGE, ["a"], 2)
    assert errors[0].startswith("line 1: 'POOL x x")
    assert errors[0].endswith("over 1048576 bytes, expected a shorter line")


def test_what_cannot_be_read_is_told(tmp_path: Path, capsys: Captured) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        assert main(["balancer", str(path)]) == CANNOT
        assert f"drainwatch: {path}: " in capsys.readouterr().err


@given(st.lists(st.sampled_from([*Verb, "a", "b", "!", "#", "7", "-7", ";", "\x00", "é"])))
def test_no_line_does_anything_but_answer_or_be_refused(words: list[str]) -> None:
    before = play("POOL a b; PICK; PICK; DRAIN a 5").balancer
    played = play(" ".join(words), before)
    assert isinstance(played.balancer, Balancer)
    assert all("expected" in error for error in played.errors)


@contextmanager
def talking() -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own, at the other end of two pipes."""
    with subprocess.Popen(
        DRAINWATCH,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_program_can_talk_with_it() -> None:
    """Each answer comes while the stream stays open; so does an error."""
    with talking() as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr

        def say(text: str) -> None:
            assert process.stdin
            process.stdin.write(text)
            process.stdin.flush()

        say("POOL a b\nPICK\n")
        assert process.stdout.readline() == "a\n"
        say("PICK\n")
        assert process.stdout.readline() == "b\n"
        say("REMOVE a\n")
        assert process.stderr.readline().startswith("line 4: 'REMOVE a': a is ACTIVE")
        say("DRAIN a 0\nREMOVABLE\nREMOVE a\n")
        assert [process.stdout.readline() for _ in range(2)] == ["a!\n", "killed 1\n"]
        process.stdin.close()
        assert process.wait(timeout=30) == USAGE


def test_ctrl_c_ends_it_without_a_traceback() -> None:
    with talking() as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write("POOL a\nPICK\n")
        process.stdin.flush()
        assert process.stdout.readline() == "a\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert process.stderr.read() == "drainwatch: interrupted\n"


def test_on_a_terminal_it_says_what_it_waits_for() -> None:
    ours, its = pty.openpty()
    os.write(ours, b"POOL a\nPICK\n\x04")
    try:
        done = subprocess.run(
            DRAINWATCH, stdin=its, capture_output=True, text=True, check=False, timeout=30
        )
    finally:
        os.close(ours)
        os.close(its)
    assert (done.returncode, done.stdout) == (DONE, "a\n")
    assert done.stderr == "commands, one a line (STATUS, say); Ctrl-D ends\n"


def test_without_standard_input_it_says_so() -> None:
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *DRAINWATCH],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert closed.returncode == CANNOT
    assert "standard input is closed" in closed.stderr
