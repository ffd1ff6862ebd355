"""Why the agent may not have run, beyond its own lateness: throttled, or suspended.

A CPU quota of a cgroup stops every process in it until the next period begins. While
the machine is suspended CLOCK_MONOTONIC stands still and CLOCK_BOOTTIME goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.flows.cpustat import CpuStat, cpu_stats

# Clocks are read one after the other; a suspension is never as short as that.
SHORTEST_SUSPENSION_NS = NS_PER_MS

ReadNs = Callable[[], int]


def boottime_ns() -> int:
    """CLOCK_BOOTTIME, which goes on while the machine is suspended."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Suspension:
    """By how much CLOCK_BOOTTIME has run ahead between two looks."""

    def __init__(
        self, monotonic: ReadNs = time.monotonic_ns, boottime: ReadNs = boottime_ns
    ) -> None:
        self._monotonic, self._boottime = monotonic, boottime
        self._since_ns, _, self._most_ahead_ns, _ = self._look()

    def check(self) -> tuple[Interval, int] | None:
        """Since the last look: between which instants the machine slept, and at least how long."""
        since_ns, most_ns = self._since_ns, self._most_ahead_ns
        self._since_ns, now_ns, self._most_ahead_ns, least_ns = self._look()
        slept_ns = least_ns - most_ns
        if slept_ns < SHORTEST_SUSPENSION_NS:
            return None
        return Interval(since_ns, now_ns), slept_ns

    def _look(self) -> tuple[int, int, int, int]:
        """Before, after, and by how much CLOCK_BOOTTIME is ahead at most and at least: this
        process may be interrupted between the two clocks.
        """
        before_ns = self._monotonic()
        boot_ns = self._boottime()
        after_ns = self._monotonic()
        return before_ns, after_ns, boot_ns - before_ns, boot_ns - after_ns


class Throttling:
    """What the quotas of this process's cgroup, and of those above it, took between two looks."""

    def __init__(
        self, stats: tuple[CpuStat, ...] | None = None, monotonic: ReadNs = time.monotonic_ns
    ) -> None:
        self._stats = cpu_stats() if stats is None else stats
        self._monotonic = monotonic
        self._since_ns = monotonic()
        self._before = [stat.read() for stat in self._stats]

    @property
    def version(self) -> str | None:
        """Which cgroup hierarchy is read: "v1", "v2", or None if there is none to read."""
        return self._stats[0].version if self._stats else None

    def check(self) -> Iterator[tuple[Interval, int, int]]:
        """Per cgroup that was throttled since the last look: when, for how long over all its
        CPUs, and in how many periods.
        """
        if not self._stats:
            return
        since_ns, self._since_ns = self._since_ns, self._monotonic()
        read = [stat.read() for stat in self._stats]
        now_ns = self._monotonic()
        for number, (old, new) in enumerate(zip(self._before, read, strict=True)):
            if old is not None and new is not None:
                taken_ns = new.throttled_ns - old.throttled_ns
                if taken_ns <= 0:
                    continue  # the kernel counts the period and the time at different moments
                yield Interval(since_ns, now_ns), taken_ns, new.periods - old.periods
            self._before[number] = new


class Health:
    """Both, as observations."""

    def __init__(self, record: Callable[[Observation], None]) -> None:
        self._record = record
        self._suspension = Suspension()
        self._throttling = Throttling()

    @property
    def cpu_stat(self) -> str | None:
        """Which kind of cpu.stat is read; None: throttling cannot be seen here."""
        return self._throttling.version

    def check(self) -> None:
        """Look, and record what was found since the last look."""
        slept = self._suspension.check()
        if slept is not None:
            at, slept_ns = slept
            self._write(Event.HOST_SUSPENDED, at, suspended_ns=slept_ns)
        for at, throttled_ns, periods in self._throttling.check():
            self._write(Event.AGENT_THROTTLED, at, throttled_ns=throttled_ns, periods=periods)

    def _write(self, event: Event, at: Interval, **data: object) -> None:
        self._record(Observation(source=Source.CLIENT, event=event, at=at, data=data))
