"""Whether the process that holds the watches gets to run at all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic_ns

from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.priority import run_soon

Record = Callable[[Observation], None]

PERIOD_NS = 20 * NS_PER_MS
LATE_NS = 100 * NS_PER_MS
# A machine that is overloaded for minutes fills no disk; the rest becomes one line.
MOST_RECORDS = 200


class Ticker:
    """A thread that wakes every 20 ms and records when it woke much too late."""

    def __init__(self, record: Record, most: int = MOST_RECORDS) -> None:
        self._record = record
        self._left = most
        self._stop = threading.Event()
        self._rest: tuple[Interval, int, int] | None = None  # when, the longest, how many
        self.thread = threading.Thread(target=self._run, daemon=True, name="ticker")

    def stop(self) -> None:
        """Ask the thread to end; :meth:`close` writes what is left."""
        self._stop.set()

    def close(self) -> None:
        """Record the stalls that were too many to record one by one."""
        rest, self._rest = self._rest, None
        if rest is not None:
            at, longest_ns, count = rest
            self._write(at, late_ns=longest_ns, count=count)

    def woke(self, slept_ns: int, now_ns: int) -> None:
        """The thread went to sleep and woke at these instants: record it if that is a stall."""
        late_ns = now_ns - slept_ns - PERIOD_NS
        if late_ns <= LATE_NS:
            return
        at = Interval(slept_ns, now_ns)  # it was last seen running when it went to sleep
        if self._left:
            self._left -= 1
            self._write(at, late_ns=late_ns)
            return
        first, longest_ns, count = self._rest or (at, 0, 0)
        self._rest = (Interval(first.lo, now_ns), max(longest_ns, late_ns), count + 1)

    def _run(self) -> None:
        run_soon()
        stopped = False
        while not stopped:
            slept_ns = monotonic_ns()
            stopped = self._stop.wait(PERIOD_NS / 1e9)
            self.woke(slept_ns, monotonic_ns())

    def _write(self, at: Interval, **data: int) -> None:
        with suppress(OSError):  # a full disk, which the recorder remembers
            self._record(
                Observation(source=Source.K8S, event=Event.WATCHER_STALLED, at=at, data=data)
            )
