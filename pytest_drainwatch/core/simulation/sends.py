"""When a held flow sends: the flow agent's own open-loop plan, in arithmetic.

Slot ``n`` of flow ``i`` lies at ``epoch + phase(i) + n * period`` on the grid of its stretch,
phases by the golden ratio (flows/schedule.py says why).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pytest_drainwatch.core.interval import NS_PER_S, Interval

GOLDEN_64 = 0x9E3779B97F4A7C15  # 2**64 / golden ratio


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time ``[lo, hi)`` of one density."""

    lo_ns: int
    hi_ns: int
    dense: bool


def stretches(dense: Sequence[Interval], lo_ns: int, hi_ns: int) -> tuple[Stretch, ...]:
    """The whole time, cut where the density changes; ``dense`` is in order and apart."""
    found: list[Stretch] = []
    at_ns = lo_ns
    for part in dense:
        first, end = max(at_ns, part.lo), min(hi_ns, part.hi)
        if first >= end:
            continue
        if at_ns < first:
            found.append(Stretch(at_ns, first, dense=False))
        found.append(Stretch(first, end, dense=True))
        at_ns = end
    if at_ns < hi_ns:
        found.append(Stretch(at_ns, hi_ns, dense=False))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Sends:
    """The slots of one flow, in order; its requests are numbered from 1 on."""

    runs: tuple[tuple[int, int, int], ...]  # first slot, how many, period
    before: tuple[int, ...] = field(default=())  # how many lie before each run

    @classmethod
    def of(cls, index: int, over: Sequence[Stretch], rates_hz: tuple[int, int]) -> Sends:
        """Those of flow ``index``; ``rates_hz`` are the dense one and the sparse one."""
        runs: list[tuple[int, int, int]] = []
        epoch_ns = over[0].lo_ns
        for one in over:
            period_ns = NS_PER_S // rates_hz[0 if one.dense else 1]
            phase_ns = (index * GOLDEN_64 % 2**64) * period_ns >> 64
            first_ns = epoch_ns + phase_ns
            first_ns += max(0, -(-(one.lo_ns - first_ns) // period_ns)) * period_ns
            if first_ns < one.hi_ns:
                runs.append((first_ns, -(-(one.hi_ns - first_ns) // period_ns), period_ns))
        before, total = [], 0
        for _, count, _ in runs:
            before.append(total)
            total += count
        return cls(tuple(runs), tuple(before))

    def number_before(self, at_ns: int) -> int:
        """How many slots lie before that time: the number of the last one."""
        run = bisect_left(self.runs, at_ns, key=lambda each: each[0]) - 1
        if run < 0:
            return 0
        first_ns, count, period_ns = self.runs[run]
        return self.before[run] + min(count, -(-(at_ns - first_ns) // period_ns))

    def slot(self, number: int) -> int:
        """When request ``number`` is sent. Raises IndexError if there is none."""
        if number < 1:
            raise IndexError(number)
        run = bisect_left(self.before, number) - 1
        first_ns, count, period_ns = self.runs[run]
        nth = number - 1 - self.before[run]
        if nth >= count:
            raise IndexError(number)
        return first_ns + nth * period_ns

    def between(self, lo_ns: int, hi_ns: int) -> Iterator[tuple[int, int]]:
        """The requests sent in ``[lo, hi)``: number and time."""
        for number in range(self.number_before(lo_ns) + 1, self.number_before(hi_ns) + 1):
            yield number, self.slot(number)
