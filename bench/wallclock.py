"""Brings CLOCK_REALTIME stamps onto CLOCK_MONOTONIC, with bounds (FACTS K15).

Pairs of both clocks, read around each other all the time, bound their difference. It
drifts while the wall clock is being slewed, so a stamp takes the bounds of the two
pairs around it. A clock that was stepped in between can't be followed.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from pytest_drainwatch.core.interval import NS_PER_MS, Interval

EVERY_S = 0.05
TRIES = 5
# Slewing moves the clock by 500 ppm at most: 25 us between two pairs.
STEP_NS = 1 * NS_PER_MS


class ClockStepped(ValueError):
    """The wall clock jumped during the capture: its stamps mean nothing."""


@dataclass(frozen=True, slots=True)
class Pair:
    """At wall time ``real_ns`` the difference REALTIME minus MONOTONIC lay in ``offset``."""

    real_ns: int
    offset: Interval


def read_pair() -> Pair:
    """The tightest of a few attempts."""
    found = []
    for _ in range(TRIES):
        before = time.monotonic_ns()
        real = time.time_ns()
        after = time.monotonic_ns()
        found.append(Pair(real, Interval(real - after, real - before)))
    return min(found, key=lambda pair: pair.offset.width)


class WallClock:
    """Samples pairs from its making until :meth:`close`."""

    def __init__(self) -> None:
        self._pairs = [read_pair()]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wall-clock", daemon=True)
        self._thread.start()

    def close(self) -> tuple[Pair, ...]:
        """End the sampling; every pair read."""
        self._stop.set()
        self._thread.join()
        self._pairs.append(read_pair())
        return tuple(self._pairs)

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            self._pairs.append(read_pair())


class Translation:
    """From REALTIME to MONOTONIC. Raises :class:`ClockStepped` if no such thing exists."""

    def __init__(self, pairs: tuple[Pair, ...]) -> None:
        for one, other in pairwise(pairs):
            apart = max(other.offset.lo - one.offset.hi, one.offset.lo - other.offset.hi)
            if apart > STEP_NS or other.real_ns < one.real_ns:
                raise ClockStepped(
                    f"the wall clock was stepped by {apart / 1e6:.3f} ms during the capture; "
                    "expected it to be slewed at most. Look at: timedatectl; run again"
                )
        self._pairs = pairs
        self._reals = [pair.real_ns for pair in pairs]

    def __call__(self, real_ns: int) -> Interval:
        """When it was ``real_ns`` on the wall."""
        place = bisect_right(self._reals, real_ns)
        around = self._pairs[max(0, place - 1) : place + 1]
        lo = min(pair.offset.lo for pair in around)
        hi = max(pair.offset.hi for pair in around)
        return Interval(real_ns - hi, real_ns - lo)
