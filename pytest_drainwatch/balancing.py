"""`drainwatch balancer`: a load balancer's drain played from commands, a file's or a pipe's."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, BinaryIO

from pytest_drainwatch.once import INTERRUPTED
from pytest_drainwatch.output import CANNOT, DONE, USAGE, fail, write

STDIN = Path("-")
# A line longer than that is no command, and must not fill the memory.
LONGEST_LINE = 1 << 20

WORDS = """\
What a load balancer does when backends are drained: a model, and no proxy. One command a line:
POOL NAME…, NOW TIME, PICK, DONE NAME, DRAIN NAME [TIMEOUT], UNDRAIN NAME, REMOVABLE, REMOVE NAME,
STATUS; docs/balancer.md says what each does. Each answer is written before the next line is read.
A command that cannot be carried out is named on standard error and changes nothing; those after it
are carried out, and the exit code is then 2.
"""


def register(commands: Any) -> None:
    """Add the command to ``drainwatch``."""
    parser = commands.add_parser(
        "balancer", help="play a load balancer's drain, command by command", description=WORDS
    )
    parser.add_argument(
        "commands",
        nargs="?",
        type=Path,
        default=STDIN,
        metavar="FILE",
        help="commands, one a line; - is standard input",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Carry out what the file says; returns the exit code."""
    path: Path = arguments.commands
    if path == STDIN and sys.stdin is None:
        return fail(CANNOT, "standard input is closed, expected commands there or a FILE")
    try:
        if path == STDIN:
            if sys.stdin.isatty():
                print("commands, one a line (STATUS, say); Ctrl-D ends", file=sys.stderr)
            return play(sys.stdin.buffer)
        with path.open("rb") as opened:
            return play(opened)
    except BrokenPipeError:
        raise  # it is about our reader, not about the file
    except OSError as error:
        return fail(CANNOT, f"{path}: {error.strerror or error}, expected a file of commands")
    except KeyboardInterrupt:
        return fail(INTERRUPTED, "interrupted")


def play(stream: BinaryIO) -> int:
    """The same with an open stream, line by line, however long it stays open."""
    from pytest_drainwatch.core.balancer.grammar import carry_out, shown, words_of
    from pytest_drainwatch.core.balancer.machine import Balancer, Refused

    balancer, number, wrong = Balancer(), 0, 0
    while raw := stream.readline(LONGEST_LINE + 1):
        number += 1
        line = text_of(raw, first=number == 1)
        try:
            if len(raw) > LONGEST_LINE:
                skip_rest(stream, raw)
                raise Refused(f"over {LONGEST_LINE} bytes, expected a shorter line")
            balancer, answer = carry_out(balancer, line)
        except Refused as error:
            wrong += 1
            print(f"line {number}: {shown(' '.join(words_of(line)))}: {error}", file=sys.stderr)
            continue
        if answer:
            write("".join(f"{each}\n" for each in answer))
    if wrong:
        return fail(USAGE, f"{wrong} of {number} lines could not be carried out, named above")
    return DONE


def text_of(raw: bytes, *, first: bool) -> str:
    """A line's text; bytes that are no text stay visible, so that an error can show them."""
    if first:
        raw = raw.removeprefix(b"\xef\xbb\xbf")  # what Windows puts before UTF-8
    return raw.decode("utf-8", errors="backslashreplace")


def skip_rest(stream: BinaryIO, raw: bytes) -> None:
    """Read on to the end of a line of which ``raw`` is the beginning."""
    while raw and not raw.endswith(b"\n"):
        raw = stream.readline(LONGEST_LINE)
