"""Showing how far a trial is, without disturbing captured output."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import pytest

from pytest_drainwatch.core.interval import NS_PER_S

log = logging.getLogger("pytest_drainwatch.trial")
STATUS_EVERY_S = 1.0


class PytestProgress:
    """Phases with ``-v``, flow counts on a terminal with ``-v``; all phases to the log."""

    def __init__(self, config: pytest.Config) -> None:
        self._terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._capture: Any = config.pluginmanager.get_plugin("capturemanager")
        self._quiet = config.get_verbosity() < 0
        self._verbose = config.get_verbosity() > 0
        self._live = self._verbose and bool(self._terminal and self._terminal.isatty)
        self._status_at = 0.0
        self._showing = False
        self._phase = ""

    def line(self, text: str) -> None:
        """Something that a person must know, such as what was kept; silent in ``-q``."""
        log.info(text)
        if not self._quiet:
            self._write(f"drainwatch: {text}")

    def phase(self, name: str, expected_ns: int | None = None) -> None:
        """A phase begins: shown with ``-v``."""
        self._phase = name
        self._status_at = 0.0
        log.info("phase %s", name)
        if self._verbose:
            self._write(f"drainwatch: {name}{_about(expected_ns)}")

    def status(self, text: str) -> None:
        """Flow counts, rewritten in place on a terminal."""
        now = time.monotonic()
        if not self._live or now - self._status_at < STATUS_EVERY_S:
            return
        self._status_at = now
        with self._uncaptured():
            self._terminal.rewrite(f"drainwatch: {self._phase}: {text}", erase=True)
        self._showing = True

    def _write(self, text: str) -> None:
        if self._terminal is None:
            return
        with self._uncaptured():
            if self._showing:  # take the place of the status line
                self._terminal.rewrite(text, erase=True)
                self._terminal.write("\n")
                self._showing = False
            else:
                self._terminal.ensure_newline()
                self._terminal.write_line(text)

    @contextmanager
    def _uncaptured(self) -> Iterator[None]:
        if self._capture is None:
            yield
            return
        with self._capture.global_and_fixture_disabled():
            yield


class PlainProgress:
    """The same for the shell: one line a phase on standard error."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self._phase = ""
        self._shown = ""
        self._status_at = 0.0

    def line(self, text: str) -> None:
        """Something worth a line."""
        # Nobody reads it any more: no reason to break a measurement off.
        with suppress(BrokenPipeError):
            print(f"drainwatch: {text}", file=self._stream, flush=True)

    def phase(self, name: str, expected_ns: int | None = None) -> None:
        """A phase begins."""
        self._phase = name
        self.line(f"{name}{_about(expected_ns)}")

    def status(self, text: str) -> None:
        """Flow counts when they change, at most once a second."""
        now = time.monotonic()
        if text == self._shown or now - self._status_at < STATUS_EVERY_S:
            return
        self._shown, self._status_at = text, now
        self.line(f"{self._phase}: {text}")


def _about(expected_ns: int | None) -> str:
    return "" if not expected_ns else f", about {expected_ns / NS_PER_S:.0f} s"
