"""A trial on a screen while it lasts: looked at and shown by a thread of its own.

The conductor neither waits for it nor notices if it fails.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from pytest_drainwatch.showing.happening import Happened, Happenings
from pytest_drainwatch.showing.picture import Scene

if TYPE_CHECKING:
    from pytest_drainwatch.core.observation import Observation
    from pytest_drainwatch.core.recording import Header
    from pytest_drainwatch.flows.process import AgentStatus

log = logging.getLogger("pytest_drainwatch.showing")

EVERY_S = 0.2


class Agent(Protocol):
    """What is looked at of the flow agent."""

    def status(self) -> AgentStatus: ...


class Recorder(Protocol):
    """What is looked at of the recorder."""

    @property
    def header(self) -> Header: ...
    def observations(self) -> Sequence[Observation]: ...


class Trial(Protocol):
    """What is looked at of a trial: its stage has it."""

    @property
    def agent(self) -> Agent | None: ...
    @property
    def recorder(self) -> Recorder: ...


class Live:
    """Shows scenes while a phase lasts: at its begin, then several times a second."""

    def __init__(self, show: Callable[[Scene], None], trial: str = "") -> None:
        self._show = show
        self._name = trial
        self._lock = threading.Lock()
        self._trial: Trial | None = None
        self._happenings: Happenings | None = None
        self._phase: tuple[str, int | None, int] | None = None  # with when it began
        self._note = ""
        self._told = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def follow(self, trial: Trial) -> None:
        """A trial can be looked at from now on."""
        with self._lock:
            self._trial, self._happenings = trial, Happenings(trial.recorder.header.clock)
            self._told = 0

    def phase(self, name: str, expected_ns: int | None) -> None:
        """A phase begins, and may last so long."""
        with self._lock:
            self._phase, self._note = (name, expected_ns, time.monotonic_ns()), ""
        self.draw()
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, name="drainwatch-live", daemon=True)
            self._thread.start()

    def note(self, text: str) -> None:
        """What the phase is at, in words."""
        with self._lock:
            self._note = text

    def rest(self) -> None:
        """No phase is under way: nothing is shown any more when this returns."""
        with self._lock:
            self._phase = None
        if self._thread is not None:
            self._stop.set()
            self._thread.join(timeout=1)
            self._thread = None

    def draw(self) -> None:
        """Show how things stand. Whatever goes wrong is no failure of the trial."""
        with self._lock:
            try:
                scene = self._scene()
                if scene is not None:
                    self._show(scene)
            except Exception:
                log.debug("a trial is not shown", exc_info=True)
                self._stop.set()

    def news(self) -> tuple[Happened, ...]:
        """What has happened and was not told by this before."""
        with self._lock:
            happened = self._happenings.all() if self._happenings is not None else ()
            new, self._told = happened[self._told :], len(happened)
        return tuple(sorted(new, key=lambda each: each.at_ns))

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            self.draw()

    def _scene(self) -> Scene | None:
        if self._phase is None:
            return None
        name, expected_ns, began_ns = self._phase
        now_ns = time.monotonic_ns()
        status, events, since_ns = None, tuple[Happened, ...](), None
        if self._trial is not None and self._happenings is not None:
            agent = self._trial.agent
            status = agent.status() if agent is not None else None
            self._happenings.look(self._trial.recorder.observations(), status, now_ns)
            events = self._happenings.all()
            if self._happenings.triggered_ns is not None:
                since_ns = now_ns - self._happenings.triggered_ns
        return Scene(
            trial=self._name,
            phase=name,
            elapsed_ns=now_ns - began_ns,
            expected_ns=expected_ns,
            note=self._note,
            status=status,
            since_trigger_ns=since_ns,
            events=events,
        )
