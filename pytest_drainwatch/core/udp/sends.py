"""When a one-way flow's datagrams were sent, from runs of even cadence: with bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.jsonvalue import integer
from pytest_drainwatch.core.observation import Event, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    first_seq: int
    last_seq: int
    first_ns: int
    last_ns: int
    period_ns: int
    early_ns: int
    late_ns: int

    def sent(self, seq: int) -> Interval:
        """When ``seq``, one of the run, was sent."""
        if seq in (self.first_seq, self.last_seq):
            return Interval.point(self.first_ns if seq == self.first_seq else self.last_ns)
        slot_ns = self.first_ns + (seq - self.first_seq) * self.period_ns
        lo = min(max(self.first_ns, slot_ns + self.early_ns), self.last_ns)
        return Interval(lo, max(lo, min(self.last_ns, slot_ns + self.late_ns)))


class Sends:
    """All sends of one flow. ``last_seq`` is 0 if there were none."""

    def __init__(self, runs: Iterable[_Run]) -> None:
        self._runs = tuple(runs)
        self.last_seq = self._runs[-1].last_seq if self._runs else 0

    @classmethod
    def of(cls, history: Iterable[Observation]) -> Sends:
        """From a flow's ``flow_sent`` lines."""
        return cls(
            _Run(
                first_seq=integer(o.data.get("first_seq")),
                last_seq=integer(o.data.get("last_seq")),
                first_ns=integer(o.data.get("first_sent_ns"), o.at.lo),
                last_ns=integer(o.data.get("last_sent_ns"), o.at.hi),
                period_ns=integer(o.data.get("period_ns")),
                early_ns=integer(o.data.get("early_ns"), -o.at.width),
                late_ns=integer(o.data.get("late_ns"), o.at.width),
            )
            for o in history
            if o.event is Event.FLOW_SENT
        )

    def sent(self, seq: int) -> Interval:
        """When ``seq`` was sent."""
        run = next((run for run in self._runs if seq <= run.last_seq), self._runs[-1])
        return run.sent(min(max(seq, run.first_seq), run.last_seq))

    def first_after(self, at_ns: int) -> int:
        """The first that was surely sent after ``at_ns``; past the last one if none was."""
        for run in self._runs:
            if run.last_ns <= at_ns:
                continue
            low, high = run.first_seq, run.last_seq
            while low < high:
                middle = (low + high) // 2
                if run.sent(middle).lo > at_ns:
                    high = middle
                else:
                    low = middle + 1
            return low
        return self.last_seq + 1
