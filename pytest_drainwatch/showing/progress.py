"""Showing how far a trial is, without disturbing captured output."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TextIO

import pytest

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.showing.relay import Kind, Sender

log = logging.getLogger("pytest_drainwatch.trial")
STATUS_EVERY_S = 1.0
SENDER = pytest.StashKey[Sender]()


class Screen(Protocol):
    """Where progress is shown."""

    def line(self, text: str) -> None:
        """A line that stays."""

    def status(self, text: str) -> None:
        """What takes the place of the last status."""


class PytestProgress:
    """Phases with ``-v``, flow counts on a terminal with ``-v``; all phases to the log.

    ``trial`` names the trial where several are measured at once, by workers of xdist.
    """

    def __init__(self, config: pytest.Config, trial: str = "") -> None:
        self._quiet = config.get_verbosity() < 0
        self._verbose = config.get_verbosity() > 0
        self._screen, self._live = _screen(config, trial)
        self._status_at = 0.0
        self._phase = ""

    def line(self, text: str) -> None:
        """Something that a person must know, such as what was kept; silent in ``-q``."""
        log.info(text)
        if not self._quiet:
            self._screen.line(text)

    def phase(self, name: str, expected_ns: int | None = None) -> None:
        """A phase begins: shown with ``-v``."""
        self._phase = name
        self._status_at = 0.0
        log.info("phase %s", name)
        if self._verbose:
            self._screen.line(f"{name}{_about(expected_ns)}")

    def status(self, text: str) -> None:
        """Flow counts, rewritten in place on a terminal."""
        now = time.monotonic()
        if not self._verbose or not self._live or now - self._status_at < STATUS_EVERY_S:
            return
        self._status_at = now
        self._screen.status(f"{self._phase}: {text}")


def _screen(config: pytest.Config, trial: str) -> tuple[Screen, bool]:
    """Where this process shows progress, and whether that is a terminal."""
    told = getattr(config, "workerinput", {})
    if "dw_relay" in told:
        return _Far(_sender(config), trial), bool(told.get("dw_isatty"))
    terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
    return _Near(config, terminal), bool(terminal and terminal.isatty)


def _sender(config: pytest.Config) -> Sender:
    """One for the whole worker."""
    if SENDER not in config.stash:
        told: dict[str, str] = config.workerinput  # type: ignore[attr-defined]
        config.stash[SENDER] = Sender(told["dw_relay"], told["workerid"])
        config.add_cleanup(config.stash[SENDER].close)
    return config.stash[SENDER]


class _Near:
    """This process's own terminal, if it has one."""

    def __init__(self, config: pytest.Config, terminal: Any) -> None:
        self._terminal = terminal
        self._capture: Any = config.pluginmanager.get_plugin("capturemanager")
        self._showing = False

    def line(self, text: str) -> None:
        if self._terminal is None:
            return
        text = f"drainwatch: {text}"
        with self._uncaptured():
            if self._showing:  # take the place of the status line
                self._terminal.rewrite(text, erase=True)
                self._terminal.write("\n")
                self._showing = False
            else:
                self._terminal.ensure_newline()
                self._terminal.write_line(text)

    def status(self, text: str) -> None:
        with self._uncaptured():
            self._terminal.rewrite(f"drainwatch: {text}", erase=True)
        self._showing = True

    @contextmanager
    def _uncaptured(self) -> Iterator[None]:
        if self._capture is None:
            yield
            return
        with self._capture.global_and_fixture_disabled():
            yield


class _Far:
    """The terminal of the controller whose worker this is."""

    def __init__(self, send: Sender, trial: str) -> None:
        self._send = send
        self._trial = f"{trial}: " if trial else ""

    def line(self, text: str) -> None:
        self._send(Kind.LINE, self._trial + text)

    def status(self, text: str) -> None:
        self._send(Kind.STATUS, self._trial + text)


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
