"""Writing to standard output: terminals that lack letters, readers that leave, full disks."""

from __future__ import annotations

import codecs
import io
import os
import select
import signal
import sys
from pathlib import Path
from typing import Any

# Exit codes: done, a judged promise is broken, usage, could not measure, read or write.
DONE, BROKEN, USAGE, CANNOT = 0, 1, 2, 3
# What a shell shows for a tool that SIGPIPE ended. Not 0: that would be a verdict that
# nobody read to its end; not 1: that would be a broken promise.
CUT_OFF = 128 + signal.SIGPIPE
# Our own signs where they cannot be shown; any other letter becomes "?".
PLAIN = {"✓": "ok", "✗": "NO", "…": "...", "→": "->", "–": "-", "·": "-"}


class OutputError(Exception):
    """Standard output takes no more (a full disk, say)."""


def write_what_can_be_shown() -> None:
    """From here on no text is too rich for standard output; stderr escapes by itself."""
    if sys.stderr is None:  # closed by the shell (2>&-): print would take standard output for it
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    codecs.register_error("drainwatch", _plainly)
    _reconfigure(errors="drainwatch")


def write(text: str) -> None:
    """Print it, all of it. Raises :class:`OutputError`, or BrokenPipeError without a reader."""
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.strerror) from error


def fail(code: int, text: str) -> int:
    """Say on standard error why a command ends with ``code``, and return that."""
    try:
        print(f"drainwatch: {text}", file=sys.stderr)
    except BrokenPipeError:
        raise
    except OSError:  # a full disk: the code still tells; 1, a crash's, would be a broken promise
        discard(sys.stderr)
    return code


def write_json(text: str) -> None:
    """Print JSON: UTF-8, whatever the terminal speaks (RFC 8259, 8.1).

    A "?" in it would be other data.
    """
    _reconfigure(encoding="utf-8")
    write(text)


def discard_where_nobody_reads() -> bool:
    """Whether a reader of ours is gone; nothing more is sent there then.

    What is still in a buffer would else fail again at exit.
    """
    gone = [stream for stream in (sys.stdout, sys.stderr) if _reader_left(stream)]
    for stream in gone:
        discard(stream)
    return bool(gone)


def discard(stream: Any) -> None:
    """Let everything that is written to ``stream`` go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _reader_left(stream: Any) -> bool:
    """Whether ``stream`` is a pipe or a socket that nobody reads any more."""
    try:
        poll = select.poll()
        poll.register(stream.fileno(), 0)
        return bool(poll.poll(0))  # unasked it only tells of errors and hang-ups
    except (OSError, ValueError, AttributeError):
        return False


def _reconfigure(**how: Any) -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(**how)


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unknown = error.object[error.start : error.end]
    return "".join(PLAIN.get(letter, "?") for letter in unknown), error.end
