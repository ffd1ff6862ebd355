"""Recorded runs of attempts at new connections, and the probers that made them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from pytest_drainwatch.core.coded import CodedRun, Schedule
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.jsonvalue import integer, integer_or_none, text
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.planned import Plan
from pytest_drainwatch.core.probing.result import Result

_RESULTS = {str(result): result for result in Result}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(CodedRun):
    """``count`` attempts in the order of their slots that went the same way.

    Their slots are at least ``every`` apart; more where some were missed.
    """

    result: Result
    responder: str  # the pod's uid; empty if nobody answered
    errno: str | None
    first_took_ns: int
    last_took_ns: int
    took_max_ns: int

    @classmethod
    def read(cls, seen: Observation, schedule: Schedule | None) -> Self | None:
        """The run that was recorded; None if it cannot be one.

        One attempt alone has neither a count nor times of its own: it was begun at
        ``at.lo`` and its result was known at ``at.hi``.
        """
        data = seen.data
        result = _RESULTS.get(text(data.get("result")))
        alone = "count" not in data and "last_slot" not in data
        count = 1 if alone else integer_or_none(data.get("count"))
        if result is None or count is None or count < 1:
            return None
        first_ns = integer(data.get("first_ns"), seen.at.lo)
        first_slot = integer(data.get("first_slot"), first_ns)
        every = max(1, integer(data.get("every"), 1))
        known_ns = max(0, seen.at.hi - first_ns)
        took_max_ns = integer(data.get("took_max_ns"), known_ns)
        run = cls(
            result=result,
            responder=text(data.get("responder")).partition("/")[0],
            errno=text(data.get("errno")) or None,
            every=every,
            first_slot=first_slot,
            last_slot=integer(data.get("last_slot"), first_slot + (count - 1) * every),
            count=count,
            first_ns=first_ns,
            last_ns=integer(data.get("last_ns"), first_ns if count == 1 else seen.at.hi),
            first_took_ns=integer(data.get("first_took_ns"), took_max_ns),
            last_took_ns=integer(data.get("last_took_ns"), took_max_ns),
            took_max_ns=took_max_ns,
            schedule=schedule,
        )
        if run.last_slot - run.first_slot < (count - 1) * every:
            return None
        took = (run.first_took_ns, run.last_took_ns)
        return (
            run if first_ns <= run.last_ns and 0 <= min(took) <= max(took) <= took_max_ns else None
        )

    def over_hi(self, k: int) -> int:
        """The result of attempt ``k`` was known by then; never falls with ``k``."""
        return self.begun_hi(k) + (self.first_took_ns if k == 0 else self.took_max_ns)

    def hull(self, first: int, end: int) -> Interval:
        """A stretch that holds the attempts from ``first`` up to ``end``, without that one."""
        lo = self.begun_lo(first)
        return Interval(lo, max(lo, self.over_hi(end - 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prober:
    """One prober's recorded runs, in the order of their slots, and what it told of itself.

    ``lost`` attempts were made and are in no run that can be read; None: not known. An
    attempt lasts no longer than ``patience_ns``, and all were made within ``started_ns`` and
    ``stopped_ns``.
    """

    name: str
    proto: Proto
    interval_ns: int | None
    source: str | None
    address: str | None
    node: str | None
    runs: tuple[Run, ...]
    lost: int | None
    patience_ns: int | None
    ports_round_ns: int | None
    started_ns: int
    stopped_ns: int
    missed_slots: int | None
    late_p99_ns: int | None
    late_max_ns: int | None
    plan: Plan | None  # None: its summary tells of none

    @property
    def sparsest(self) -> int:
        """So many slots may lie between two attempts at most, as far as it is told."""
        tried = max((run.every for run in self.runs), default=1)
        return max(tried, self.plan.sparsest) if self.plan else tried

    def begun_ns(self, over_ns: int) -> int:
        """An attempt that was over at ``over_ns``, or later, was not begun before this."""
        if self.patience_ns is None or self.late_max_ns is None:
            return self.started_ns
        return max(self.started_ns, over_ns - self.patience_ns - self.late_max_ns)


def probers(seen: Iterable[Observation]) -> Iterator[Prober]:
    """Every prober that the recording tells of, by name."""
    runs: dict[str, list[Observation]] = {}
    summaries: dict[str, Observation] = {}
    for o in seen:
        if o.event is Event.NEW_CONNECTIONS:
            runs.setdefault(o.subject, []).append(o)
        elif o.event is Event.PROBER_SUMMARY:
            summaries[o.subject] = o
    for name in sorted(runs.keys() | summaries.keys()):
        yield _prober(name, runs.get(name, []), summaries.get(name))


def _prober(name: str, recorded: list[Observation], summary: Observation | None) -> Prober:
    told = summary.data if summary else {}
    period_ns = integer_or_none(told.get("period_ns"))
    period_ns = period_ns if period_ns and period_ns > 0 else None
    epoch_ns = integer_or_none(told.get("epoch_ns"))
    late_max_ns = integer_or_none(told.get("late_max_ns"))
    schedule = plan = None
    if period_ns is not None and epoch_ns is not None:
        plan = Plan.read(told.get("stretches"), epoch_ns=epoch_ns, period_ns=period_ns)
    if period_ns is not None and epoch_ns is not None and late_max_ns is not None:
        schedule = Schedule(epoch_ns=epoch_ns, period_ns=period_ns, late_ns=max(0, late_max_ns))
    found = {run.first_slot: run for o in recorded if (run := Run.read(o, schedule)) is not None}
    runs = tuple(found[slot] for slot in sorted(found))
    made = integer_or_none(told.get("attempts"))
    return Prober(
        name=name,
        proto=Proto.UDP if name.startswith(Proto.UDP) else Proto.TCP,
        interval_ns=period_ns,
        source=text(told.get("source")) or None,
        address=text(told.get("address")) or None,
        node=text(told.get("node")) or None,
        runs=runs,
        lost=None if made is None else max(0, made - sum(run.count for run in runs)),
        patience_ns=integer_or_none(told.get("patience_ns")),
        ports_round_ns=integer_or_none(told.get("ports_round_ns")),
        started_ns=min(o.at.lo for o in (*recorded, *([summary] if summary else []))),
        stopped_ns=max(o.at.hi for o in (*recorded, *([summary] if summary else []))),
        missed_slots=integer_or_none(told.get("missed_slots")),
        late_p99_ns=integer_or_none(told.get("late_p99_ns")),
        late_max_ns=late_max_ns,
        plan=plan,
    )
