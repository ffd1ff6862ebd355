"""A program on a terminal of its own, and what a person would see there."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyte

# What moves a cursor or colours; none of it takes a column.
CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[78D])")
SIZE = struct.Struct("HHHH")


class Terminal:
    """A pseudo terminal, its emulator, and every text that was written to it."""

    def __init__(self, columns: int = 100, rows: int = 30) -> None:
        self.ours, self.theirs = os.openpty()
        self.screen = pyte.HistoryScreen(columns, rows, history=1000)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.seen: list[str] = []
        self._set_size(columns, rows)

    def resize(self, columns: int, rows: int) -> None:
        """As a person does with the window."""
        self._set_size(columns, rows)
        self.screen.resize(rows, columns)

    def hold(self) -> None:
        """As Ctrl-S does: nothing that is written is taken any more."""
        termios.tcflow(self.theirs, termios.TCOOFF)

    def release(self) -> None:
        """As Ctrl-Q does."""
        termios.tcflow(self.theirs, termios.TCOON)

    def read(self, timeout_s: float = 0.05) -> bool:
        """Show what was written meanwhile; False at its end."""
        if not select.select([self.ours], [], [], timeout_s)[0]:
            return True
        part = b""
        with suppress(OSError):  # the other end was closed
            part = os.read(self.ours, 65536)
        if not part:
            return False
        self.raw += part
        self._stream.feed(part)
        if not self.seen or self.seen[-1] != self.shown:
            self.seen.append(self.shown)
        return True

    @property
    def shown(self) -> str:
        """What is on it now."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    @property
    def all(self) -> str:
        """With what has gone out at the top."""
        past = [
            "".join(row[n].data for n in range(self.screen.columns)).rstrip()
            for row in self.screen.history.top
        ]
        return "\n".join([*past, self.shown]).strip("\n")

    @property
    def written(self) -> list[str]:
        """Every line as it was written, without what takes no column."""
        text = CONTROL.sub("", self.raw.decode("utf-8"))
        return [line for line in re.split("[\r\n]+", text) if line]

    def close(self) -> None:
        os.close(self.ours)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, SIZE.pack(rows, columns, 0, 0))


def run(
    command: Sequence[str],
    terminal: Terminal,
    *,
    cwd: Path,
    env: Mapping[str, str | None] | None = None,
    while_it_runs: Callable[[subprocess.Popen[bytes]], None] = lambda _: None,
    timeout_s: float = 60,
) -> int:
    """Run a command on the terminal to its end, as a person would who looks all the time."""
    environ = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", **(env or {})}
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "PY_COLORS", "LC_ALL", "LC_CTYPE"):
        if name not in (env or {}):
            environ.pop(name, None)
    process = subprocess.Popen(
        command,
        cwd=cwd,
        stdin=terminal.theirs,
        stdout=terminal.theirs,
        stderr=terminal.theirs,
        env={name: value for name, value in environ.items() if value is not None},
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + timeout_s
        while process.poll() is None:
            assert time.monotonic() < deadline, terminal.shown
            terminal.read()
            while_it_runs(process)
    finally:
        process.kill()
        process.wait()
        os.close(terminal.theirs)
    while terminal.read(0):
        pass
    terminal.close()
    return process.returncode
