"""Rows in which processes of this machine wait for their turn at what is heavy.

Whoever comes draws a ticket: a file of the state directory, held by a file lock, named by
when it was drawn. Those in front go first, one whose holder died counts no more, and every
process can see who is there.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_drainwatch.cluster import Log
from pytest_drainwatch.cluster.embedded.directories import state_dir, writing_to_state
from pytest_drainwatch.cluster.embedded.locks import is_held, locked, try_lock

# Longer than a few that all fail by their own timeout: who stands in front hangs.
PATIENCE_S = 300.0
POLL_S = 0.05

_numbers = itertools.count()


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(slots=True, kw_only=True)
class Row:
    """One row.

    Attributes:
        name: of its folder in the state directory.
        what: they wait for, in words.
        at_once: how many have their turn side by side.
    """

    name: str
    what: str
    at_once: Callable[[], int]

    @contextlib.contextmanager
    def turn(
        self, log: Log, *, patience_s: float = PATIENCE_S, told_after_s: float = 0.0
    ) -> Iterator[int]:
        """Wait for those that came before; how many of them are still at it.

        A wait of *told_after_s* is told in a line. A hanging one in front is passed by after
        *patience_s*, with a line that says so.

        Raises:
            ClusterError: the row's folder can't be read or written.
        """
        with writing_to_state():
            ticket, lock = self._draw()
        try:
            with writing_to_state():
                beside = self._wait(ticket, log, patience_s, told_after_s)
            yield beside
        finally:
            with contextlib.suppress(OSError):  # without a holder it counts no more
                ticket.unlink()
            os.close(lock)

    def tickets(self) -> list[str]:
        """Those who have their turn or wait, the first to come first; clears dead ones up."""
        try:
            names = sorted(path.name for path in self._folder.iterdir() if not path.suffix)
        except FileNotFoundError:
            return []
        return [name for name in names if _counts(self._folder / name)]

    @property
    def _folder(self) -> Path:
        return state_dir() / self.name

    def _draw(self) -> tuple[Path, int]:
        # One at a time: else a ticket could be seen before one that was drawn earlier, and
        # both would be the first.
        with locked(state_dir() / f"{self.name}.lock", on_wait=lambda: None):
            self._folder.mkdir(exist_ok=True, mode=0o700)
            for abandoned in self._folder.glob("*.new"):  # by one that died right here
                abandoned.unlink()
            ticket = self._folder / f"{time.monotonic_ns():020d}-{os.getpid()}-{next(_numbers)}"
            unready = ticket.with_suffix(".new")
            lock = try_lock(unready)
            assert lock is not None  # nobody else has this name
            # Locked before it can be seen: a ticket without a holder is a dead one's.
            unready.rename(ticket)
            return ticket, lock

    def _wait(self, ticket: Path, log: Log, patience_s: float, told_after_s: float) -> int:
        began = time.monotonic()
        deadline = began + patience_s
        told = False
        while True:
            before = [name for name in self.tickets() if name < ticket.name]
            if len(before) < self.at_once():
                return len(before)
            those = f"{len(before)} {self.what}"
            processes = ", ".join(name.split("-")[1] for name in before)
            if time.monotonic() > deadline:
                log(
                    f"going on beside {those} that did not end within {patience_s:.0f} s"
                    f" (processes {processes})"
                )
                return len(before)
            if not told and time.monotonic() - began >= told_after_s:
                told = True
                log(f"waiting for {those} of this machine that came before (processes {processes})")
            time.sleep(POLL_S)


def _counts(ticket: Path) -> bool:
    if is_held(ticket):
        return True
    ticket.unlink(missing_ok=True)
    return False
