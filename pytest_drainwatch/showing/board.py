"""What the controller of xdist shows while its workers measure.

Written from the loop in which xdist writes its own lines, never beside it, so that no line
is torn: messages wait in xdist's queue of events until it comes to them.
"""

from __future__ import annotations

import time
from contextlib import suppress
from queue import Empty, Queue
from typing import Any

import pytest

from pytest_drainwatch.showing import screen
from pytest_drainwatch.showing.relay import Kind, Message, Receiver

EVENT = "drainwatch_told"  # what xdist calls worker_EVENT() for
DRAWN_EVERY_S = 0.1


class Board:
    """Lines as they come; on a terminal, below them, a line a worker that says what it does."""

    def __init__(self, config: pytest.Config) -> None:
        self._terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._screen = screen.of_pytest(config)
        self.live = self._screen.live
        self._doing: dict[str, str] = {}
        self._drawn_at = 0.0
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
        if message.kind is Kind.LINE:
            self._screen.line(f"drainwatch: {message.worker} {message.text}")
            self._drawn_at = 0.0  # the line took the place of the others
        elif message.text:
            self._doing[message.worker] = message.text
        else:
            self.over(message.worker)
        now = time.monotonic()
        if now - self._drawn_at >= DRAWN_EVERY_S:
            self._drawn_at = now
            self._screen.show_lines(
                [f"{name} {text}" for name, text in sorted(self._doing.items())]
            )

    def over(self, worker: str) -> None:
        """A worker's phase or test is over, or the worker is gone."""
        self._doing.pop(worker, None)

    def hide(self) -> None:
        """Somebody else is going to write."""
        self._screen.hide()
        self._drawn_at = 0.0
