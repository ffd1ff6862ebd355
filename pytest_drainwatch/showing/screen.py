"""The terminal of the process that shows the run: lines that stay, and a picture below them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, TextIO

import pytest

from pytest_drainwatch.showing.picture import Scene, fitted, lines
from pytest_drainwatch.showing.stash import SCREEN
from pytest_drainwatch.showing.tty import Style, Tty, style_of

# So much of a terminal is the picture's, at most.
MOST_ROWS = 10


class Screen:
    """Lines and a picture on one terminal, from several threads.

    ``write`` writes lines that stay, and may wait for the terminal. Without ``tty`` there
    is no picture.
    """

    def __init__(
        self, write: Callable[[Sequence[str]], None], tty: Tty | None, style: Style
    ) -> None:
        self._write = write
        self._tty = tty
        self._style = style
        self._lock = threading.Lock()
        self._waiting: list[str] = []

    @property
    def live(self) -> bool:
        """Whether pictures can be seen here."""
        return self._tty is not None

    def line(self, *texts: str) -> None:
        """Lines that stay; held back for as long as the terminal takes nothing."""
        with self._lock:
            self._waiting += texts
            self._write_if_taken()

    def show(self, scene: Scene) -> None:
        """A picture, in the place of the last one."""
        with self._lock:
            if self._tty is not None:
                columns, rows = self._tty.size
                rows = min(MOST_ROWS, max(1, rows // 2))
                self._tty.draw(lines(scene, columns, rows, self._style))

    def show_lines(self, texts: Sequence[str]) -> None:
        """The same of plain lines, as many as there is room for."""
        with self._lock:
            if self._tty is not None:
                columns, rows = self._tty.size
                most = max(1, rows // 2)
                if len(texts) > most:
                    texts = [*texts[: most - 1], f"… and {len(texts) - most + 1} more"]
                self._tty.draw([fitted(text, columns, self._style) for text in texts])

    def rest(self) -> None:
        """No picture until the next one."""
        with self._lock:
            if self._tty is not None:
                self._tty.erase()
            self._write_if_taken()

    def hide(self) -> None:
        """Somebody else is going to write, and wait for it: nothing of ours is left."""
        with self._lock:
            self._write_all()

    def close(self) -> None:
        """The last word."""
        self.hide()
        with self._lock:
            if self._tty is not None:
                self._tty.close()
                self._tty = None

    def _write_if_taken(self) -> None:
        if self._tty is None or self._tty.takes_more:
            self._write_all()

    def _write_all(self) -> None:
        if self._tty is not None:
            self._tty.erase()
        if self._waiting:
            said, self._waiting = self._waiting, []
            self._write(said)


def of_pytest(config: pytest.Config) -> Screen:
    """The run's own terminal; in a process that has none it is dark."""
    if SCREEN not in config.stash:
        terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
        uncaptured = _uncaptured(config)

        def write(texts: Sequence[str]) -> None:
            if terminal is None:
                return
            with uncaptured():
                terminal.ensure_newline()
                for text in texts:
                    terminal.write_line(text)

        tty, style = None, Style()
        if terminal is not None and config.get_verbosity() >= 0 and not _logs_live(config):
            with uncaptured():  # what is captured leads to no terminal
                tty = Tty.of(sys.stdout) if terminal.isatty() else None
                style = style_of(sys.stdout, color=terminal.hasmarkup)
        config.stash[SCREEN] = screen = Screen(write, tty, style)
        config.add_cleanup(screen.close)
    return config.stash[SCREEN]


def of_shell(stream: TextIO | None = None) -> Screen:
    """Standard error, or the stream given."""
    stream = sys.stderr if stream is None else stream

    def write(texts: Sequence[str]) -> None:
        # Nobody reads it any more: no reason to break a measurement off.
        with suppress(BrokenPipeError):
            for text in texts:
                print(text, file=stream, flush=True)

    return Screen(write, Tty.of(stream), style_of(stream))


def _uncaptured(config: pytest.Config) -> Callable[[], AbstractContextManager[None]]:
    @contextmanager
    def uncaptured() -> Iterator[None]:
        capture: Any = config.pluginmanager.get_plugin("capturemanager")
        if capture is None:
            yield
            return
        with capture.global_and_fixture_disabled():
            yield

    return uncaptured


def _logs_live(config: pytest.Config) -> bool:
    """Whether pytest writes logs to the terminal as they come, between our pictures."""
    if not config.pluginmanager.hasplugin("logging"):
        return False
    return config.getoption("log_cli_level") is not None or bool(config.getini("log_cli"))
