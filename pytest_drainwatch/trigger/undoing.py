"""What a trigger changed beside the pods, put back at the end, whatever happens meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pytest_drainwatch import interrupts
from pytest_drainwatch.api import explain

ATTEMPTS, PAUSE_S = 3, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """``left`` is what stays if ``send`` fails, and ``command`` what a person would type then."""

    left: str
    command: str
    send: Callable[[], None]


def undo(changes: list[Undo], before: Callable[[], None] = lambda: None) -> list[str]:
    """Put back the last change first; returns what could not be, each with its command.

    ``before`` is called first. Signals wait until everything was tried.
    """
    failed: list[str] = []
    with interrupts.held_back():
        before()
        while changes:
            change = changes.pop()
            why = _insist(change.send)
            if why is not None:
                failed.append(f"{change.left}: {why}. Type: {change.command}")
    return failed


def _insist(send: Callable[[], None]) -> str | None:
    """Try a few times; returns why it failed, if it did."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            send()
        except Exception as error:  # whatever it is: the next change is still to be undone
            why = explain(error)
        else:
            return None
        if attempt < ATTEMPTS:
            time.sleep(PAUSE_S)
    return why
