"""SIGINT and SIGTERM end a run as Ctrl-C does: in order, with nothing left behind.

The signal raises KeyboardInterrupt wherever the main thread happens to be, and code
that is not ours may turn that into an error of its own (a validator in Rust does).
So the signal is remembered as well: whoever catches an error can ask what it was.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_received: list[str] = []


@contextmanager
def raised() -> Iterator[None]:
    """While this lasts both signals raise KeyboardInterrupt, with the signal's name."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return

    def interrupt(number: int, _: object) -> None:
        _received.append(signal.Signals(number).name)
        raise KeyboardInterrupt(_received[-1])

    _received.clear()
    before = [signal.signal(number, interrupt) for number in SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)
        _received.clear()


def received() -> str | None:
    """The signal that interrupted this run; None if none did."""
    return _received[0] if _received else None


@contextmanager
def held_back() -> Iterator[None]:
    """While this lasts both signals wait, and what they would have done is done at its end.

    For what must not be left half undone. Only the main thread gets signals, so in any other
    nothing has to be held back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    before = [signal.signal(number, lambda number, _: waiting.append(number)) for number in SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)
        if waiting:
            signal.raise_signal(waiting[0])
