"""A terminal that is written to without ever waiting for it.

What moves is drawn below the cursor, which goes back to where it was: whoever else writes, as
pytest does its dots, finds the line as it was left, and nothing of theirs is ever erased.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

# What is asked of a terminal; all since the VT100 know these, and multiplexers as well.
ERASE_BELOW = "\x1b[J"
DOWN = "\x1bD"  # in the same column; at the bottom all lines move up
UP = "\x1b[{}A"
SAVE, RESTORE = "\x1b7", "\x1b8"
NO_WRAP, WRAP = "\x1b[?7l", "\x1b[?7h"  # it may become narrower while we draw

FALLBACK = (80, 24)  # columns and rows of a terminal that does not say
# In less there is no room for a word, or none beside pytest's own line.
LEAST_COLUMNS, LEAST_ROWS = 12, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """What a terminal can show: colours, and letters beyond ASCII."""

    color: bool = False
    letters: bool = False


class Tty:
    """One terminal, by a descriptor of its own that must be closed. One thread at a time."""

    def __init__(self, fd: int) -> None:
        """``fd`` must not block, and is this object's from now on."""
        self._fd = fd
        self._pending = b""
        self._drawn = False

    @classmethod
    def of(cls, stream: Any) -> Tty | None:
        """The terminal that ``stream`` writes to; None if it is none, or too simple a one."""
        if os.environ.get("TERM", "dumb") == "dumb":
            return None
        try:
            fd = stream.fileno()
            if not os.isatty(fd):
                return None
            # Opened anew: that we do not wait must not become true of everybody's writes.
            name = f"/proc/self/fd/{fd}" if sys.platform == "linux" else os.ttyname(fd)
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            return cls(os.open(name, flags))
        except (OSError, ValueError, AttributeError):
            return None

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows, now; no more columns than the environment says."""
        columns, rows = 0, 0
        with suppress(OSError):
            columns, rows = os.get_terminal_size(self._fd)
        told = _number(os.environ.get("COLUMNS"))
        if told:
            columns = min(columns or told, told)
        return columns or FALLBACK[0], rows or _number(os.environ.get("LINES")) or FALLBACK[1]

    @property
    def takes_more(self) -> bool:
        """Whether it takes what is written, and whoever writes need not wait."""
        if not self._flushed():
            return False
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        return any(events & select.POLLOUT for _, events in poll.poll(0))

    def draw(self, lines: Sequence[str]) -> None:
        """Show these below the cursor, in the place of what was there; they must fit."""
        columns, rows = self.size
        lines = lines[: rows - 2]
        if not lines or columns < LEAST_COLUMNS or rows < LEAST_ROWS or not self._in_front:
            self.erase()
            return
        room = DOWN * len(lines) + UP.format(len(lines))
        shown = "".join(f"\r\n{line}" for line in lines)
        if self._write(f"{ERASE_BELOW}{room}{SAVE}{NO_WRAP}{shown}{WRAP}{RESTORE}"):
            self._drawn = True

    def erase(self) -> None:
        """Take away what was drawn: somebody else is going to write."""
        if self._drawn and self._write(ERASE_BELOW):
            self._drawn = False

    def close(self) -> None:
        """Draw no more."""
        self.erase()
        self._forget()

    @property
    def _in_front(self) -> bool:
        """Whether we are in the foreground: a job that was sent behind draws nothing."""
        try:
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:  # it is nobody's controlling terminal
            return True

    def _write(self, text: str) -> bool:
        """Whether it is on its way: in the end all of it, or else nothing of it."""
        if not self._flushed():
            return False
        whole = self._pending = text.encode("utf-8", "replace")
        self._flushed()
        if self._pending == whole:  # nothing was taken: the next picture is a better one
            self._pending = b""
            return False
        return self._fd >= 0

    def _flushed(self) -> bool:
        """Send what is left; whether nothing is. Half a picture leaves the cursor astray."""
        if self._fd < 0:
            return False
        try:
            while self._pending:
                self._pending = self._pending[os.write(self._fd, self._pending) :]
        except BlockingIOError:
            return False
        except OSError:  # the terminal was closed
            self._forget()
            return False
        return True

    def _forget(self) -> None:
        if self._fd >= 0:
            with suppress(OSError):
                os.close(self._fd)
        self._fd, self._pending, self._drawn = -1, b"", False


def style_of(stream: Any, *, color: bool | None = None) -> Style:
    """What can be shown where ``stream`` writes to. ``color``: somebody has decided that."""
    if color is None:
        color = not os.environ.get("NO_COLOR")
    encoding = str(getattr(stream, "encoding", None) or "ascii")
    return Style(color=color, letters=_has_letters(encoding, os.environ))


def _has_letters(encoding: str, environ: Mapping[str, str]) -> bool:
    """In the locale C Python speaks UTF-8 all the same, and the terminal need not."""
    try:
        "█▌─…·".encode(encoding)
    except (UnicodeError, LookupError):
        return False
    everything, letters, default = (environ.get(k) for k in ("LC_ALL", "LC_CTYPE", "LANG"))
    if letters == "C.UTF-8" and default:
        letters = None  # Python's own word, where LANG is C (PEP 538)
    return (everything or letters or default) not in ("C", "POSIX")


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else 0
