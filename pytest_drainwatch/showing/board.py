"""What the controller of xdist shows while its workers measure.

Written from the loop in which xdist writes its own lines, never beside it, so that no line
is torn: messages wait in xdist's queue of events until it comes to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from queue import Empty, Queue
from typing import Any

import pytest

from pytest_drainwatch.showing.relay import Kind, Message, Receiver

EVENT = "drainwatch_told"  # what xdist calls worker_EVENT() for


class Board:
    """Lines as they come; on a terminal with ``-v`` a last line that says what all do."""

    def __init__(self, config: pytest.Config) -> None:
        self._terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
        self.live = bool(config.get_verbosity() > 0 and self._terminal and self._terminal.isatty)
        self._doing: dict[str, str] = {}
        self._showing = False
        session = config.pluginmanager.get_plugin("dsession")
        self._queue: Queue[tuple[str, dict[str, Any]]] | None = getattr(session, "queue", None)
        self._receiver: Receiver | None = None
        if self._queue is not None and self._terminal is not None:
            setattr(session, f"worker_{EVENT}", self.show)
            with suppress(OSError):
                self._receiver = Receiver(self._come)

    @property
    def name(self) -> str | None:
        """Where workers send to; None if there is no such place."""
        return None if self._receiver is None else self._receiver.name

    def close(self) -> None:
        """The run is over: what has been sent and not been shown yet is shown now."""
        if self._receiver is None or self._queue is None:
            return
        self._receiver.close()
        self._receiver = None
        with suppress(Empty):
            while True:
                event, told = self._queue.get_nowait()
                if event == EVENT and told["message"].kind is Kind.LINE:
                    self.show(told["message"])
        self.hide()

    def _come(self, message: Message) -> None:
        if self._queue is not None:
            self._queue.put((EVENT, {"message": message}))

    def show(self, message: Message) -> None:
        """A worker said something."""
        if message.kind is Kind.STATUS:
            self._doing[message.worker] = message.text
        else:
            self.hide()
            self._terminal.ensure_newline()
            self._terminal.write_line(f"drainwatch: {message.worker} {message.text}")
        self._draw()

    def over(self, worker: str) -> None:
        """A worker's test is over, or the worker is gone."""
        self._doing.pop(worker, None)

    def hide(self) -> None:
        """Somebody else is going to write."""
        if self._showing:
            self._terminal.rewrite("", erase=True)
            self._terminal.write("\r")
            self._terminal.currentfspath = None  # the line is empty: no new one is needed
            self._showing = False

    def _draw(self) -> None:
        if not self.live or not self._doing:
            return
        if not self._showing:
            self._terminal.ensure_newline()
        self._terminal.rewrite(in_one_line(self._doing, self._terminal._tw.fullwidth), erase=True)
        self._terminal.currentfspath = -2  # pytest's own sign: the line is not at its start
        self._showing = True


def in_one_line(doing: Mapping[str, str], width: int) -> str:
    """What all workers do, in as many words as there is room for; never wider than ``width``.

    A status is "TRIAL: PHASE: COUNTS". Counts go first, then names of trials.
    """
    full = sorted(doing.items())
    shorter = [(worker, text.rpartition(": ")[0] or text) for worker, text in full]
    shortest = [(worker, text.rpartition(": ")[2]) for worker, text in shorter]
    for words in (full, shorter, shortest):
        line = "drainwatch: " + " · ".join(f"{worker} {text}" for worker, text in words)
        if len(line) < width:
            return line
    return line[: width - 2] + "…"
