"""Showing how far a trial is, without disturbing captured output."""

from __future__ import annotations

import logging
import time
from typing import Any, TextIO

import pytest

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.showing import screen
from pytest_drainwatch.showing.live import Live, Trial
from pytest_drainwatch.showing.picture import Scene, in_a_line, when
from pytest_drainwatch.showing.relay import Kind, Sender

log = logging.getLogger("pytest_drainwatch.trial")
NOTE_EVERY_S = 1.0
SENDER = pytest.StashKey[Sender]()


class PytestProgress:
    """On a terminal a picture, and with ``-v`` phases and events as lines that stay; elsewhere
    phases with ``-v``. In ``-q`` nothing. All phases go to the log.

    ``trial`` names the trial.
    """

    def __init__(self, config: pytest.Config, trial: str = "") -> None:
        self._quiet = config.get_verbosity() < 0
        self._verbose = config.get_verbosity() > 0
        self._out: _Far | _Near = _Far(config, trial) if _is_far(config) else _Near(config, trial)

    def line(self, text: str) -> None:
        """Something that a person must know, such as what was kept; silent in ``-q``."""
        log.info(text)
        if not self._quiet:
            self._out.line(text)
            self._out.live.draw()

    def follow(self, trial: Trial) -> None:
        """A trial can be looked at from now on."""
        self._out.live.follow(trial)

    def phase(self, name: str, expected_ns: int | None = None) -> None:
        """A phase begins."""
        log.info("phase %s", name)
        if self._verbose:
            self._out.line(f"{name}{_about(expected_ns)}")
        if self._out.shows:
            self._out.live.phase(name, expected_ns)

    def status(self, text: str) -> None:
        """What the phase is at, in words; for a terminal."""
        self._out.live.note(text)

    def rest(self) -> None:
        """The phase is over, and who comes next may write."""
        self._out.live.rest()
        self._out.rest()
        if self._verbose and self._out.shows and (news := self._out.live.news()):
            self._out.line(*(f"{when(each):>12}  {each.text}" for each in news))


def _is_far(config: pytest.Config) -> bool:
    return "dw_relay" in getattr(config, "workerinput", {})


class _Near:
    """This process's own terminal, if it has one."""

    def __init__(self, config: pytest.Config, trial: str) -> None:
        self._screen = screen.of_pytest(config)
        self.shows = self._screen.live
        self.live = Live(self._screen.show, trial)

    def line(self, *texts: str) -> None:
        self._screen.line(*(f"drainwatch: {text}" for text in texts))

    def rest(self) -> None:
        self._screen.rest()


class _Far:
    """The terminal of the controller whose worker this is."""

    def __init__(self, config: pytest.Config, trial: str) -> None:
        told: Any = getattr(config, "workerinput", {})
        if SENDER not in config.stash:  # one for the whole worker
            config.stash[SENDER] = Sender(told["dw_relay"], told["workerid"])
            config.add_cleanup(config.stash[SENDER].close)
        self._send = config.stash[SENDER]
        self._trial = f"{trial}: " if trial else ""
        self.shows = bool(told.get("dw_isatty"))
        self.live = Live(self._show, trial)

    def line(self, *texts: str) -> None:
        for text in texts:
            self._send(Kind.LINE, self._trial + text)

    def rest(self) -> None:
        self._send(Kind.STATUS, "")

    def _show(self, scene: Scene) -> None:
        self._send(Kind.STATUS, in_a_line(scene))


class PlainProgress:
    """The same for the shell, on standard error: a picture, or one line a phase."""

    def __init__(self, stream: TextIO | None = None, trial: str = "") -> None:
        self._screen = screen.of_shell(stream)
        self._live = Live(self._screen.show, trial)
        self._phase = ""
        self._note = ""
        self._note_at = 0.0

    def line(self, text: str) -> None:
        """Something worth a line."""
        self._screen.line(f"drainwatch: {text}")
        self._live.draw()

    def follow(self, trial: Trial) -> None:
        """A trial can be looked at from now on."""
        self._live.follow(trial)

    def phase(self, name: str, expected_ns: int | None = None) -> None:
        """A phase begins."""
        self._phase = name
        if self._screen.live:
            self._live.phase(name, expected_ns)
        else:
            self.line(f"{name}{_about(expected_ns)}")

    def status(self, text: str) -> None:
        """What the phase is at, in words: when that changes, at most once a second."""
        self._live.note(text)
        now = time.monotonic()
        if self._screen.live or text == self._note or now - self._note_at < NOTE_EVERY_S:
            return
        self._note, self._note_at = text, now
        self.line(f"{self._phase}: {text}")

    def rest(self) -> None:
        """The phase is over, and who comes next may write."""
        self._live.rest()
        self._screen.rest()


def _about(expected_ns: int | None) -> str:
    return "" if not expected_ns else f", about {expected_ns / NS_PER_S:.0f} s"
