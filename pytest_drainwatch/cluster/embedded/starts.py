"""Starts of clusters take turns on a machine, and say so to whoever measures on it.

A start wants every core for seconds. Side by side they slow each other down, and the
trials beside them. So each start draws a ticket: a file of the state directory, held by a
file lock, named by when it was drawn. Those in front go first, and one whose holder died
counts no more. A start waits for starts, and never for a trial, so nobody waits in a circle.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

from pytest_drainwatch.cluster import Log
from pytest_drainwatch.cluster.embedded.directories import state_dir
from pytest_drainwatch.cluster.embedded.locks import locked, try_lock

# Longer than a few starts that all fail by their own timeout: who stands in front hangs.
PATIENCE_S = 300.0
QUIET_PATIENCE_S = 90.0
_POLL_S = 0.05

_numbers = itertools.count()


def at_once() -> int:
    """How many starts this machine carries side by side.

    One for each core. Measured on two cores, 8 clusters: 34 s one at a time, since a start
    waits for timers too; 19 s two at a time; 21 s all at once, and then nobody has one sooner.
    """
    return len(os.sched_getaffinity(0))


@contextlib.contextmanager
def turn(log: Log, *, patience_s: float = PATIENCE_S) -> Iterator[int]:
    """One start: wait for those that came before; how many of them are still under way.

    A hanging one in front is passed by after *patience_s*, with a line that says so.
    """
    ticket, lock = _draw()
    try:
        yield _wait(ticket, log, patience_s)
    finally:
        ticket.unlink(missing_ok=True)
        os.close(lock)


def wait_quiet(log: Log, *, patience_s: float = QUIET_PATIENCE_S) -> bool:
    """Wait until no cluster starts on this machine; whether that came within *patience_s*."""
    deadline = time.monotonic() + patience_s
    told = False
    while starts := tickets():
        if time.monotonic() > deadline:
            log(
                f"going on beside {len(starts)} cluster start(s) that did not end within"
                f" {patience_s:.0f} s: they may show as stalls of this trial"
            )
            return False
        if not told:
            told = True
            log(f"waiting for {len(starts)} cluster start(s) on this machine to end")
        time.sleep(_POLL_S)
    return True


def tickets() -> list[str]:
    """The starts that are under way or wait, the first to come first; clears dead ones up."""
    try:
        names = sorted(path.name for path in _folder().iterdir() if not path.suffix)
    except FileNotFoundError:
        return []
    return [name for name in names if _is_held(_folder() / name)]


def _folder() -> Path:
    return state_dir() / "starts"


def _draw() -> tuple[Path, int]:
    # One at a time: else a ticket could be seen before one that was drawn earlier, and both
    # would be the first.
    with locked(state_dir() / "starts.lock", on_wait=lambda: None):
        folder = _folder()
        folder.mkdir(exist_ok=True, mode=0o700)
        ticket = folder / f"{time.monotonic_ns():020d}-{os.getpid()}-{next(_numbers)}"
        unready = ticket.with_suffix(".new")
        lock = try_lock(unready)
        assert lock is not None  # nobody else has this name
        # Locked before it can be seen: a ticket without a holder is a dead one's.
        unready.rename(ticket)
        return ticket, lock


def _wait(ticket: Path, log: Log, patience_s: float) -> int:
    deadline = time.monotonic() + patience_s
    told = False
    while True:
        before = [name for name in tickets() if name < ticket.name]
        if len(before) < at_once():
            return len(before)
        if time.monotonic() > deadline:
            log(
                f"starting beside {len(before)} cluster start(s) that did not end within"
                f" {patience_s:.0f} s (processes {_holders(before)})"
            )
            return len(before)
        if not told:
            told = True
            log(
                f"waiting for {len(before)} cluster start(s) of this machine that came before"
                f" (processes {_holders(before)})"
            )
        time.sleep(_POLL_S)


def _holders(names: list[str]) -> str:
    return ", ".join(name.split("-")[1] for name in names)


def _is_held(ticket: Path) -> bool:
    try:
        descriptor = os.open(ticket, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Shared: who only looks must not look like a holder to others.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    ticket.unlink(missing_ok=True)
    return False
