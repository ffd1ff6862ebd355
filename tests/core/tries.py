"""Writing what a prober of new connections met, attempt by attempt, as it would record it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.result import Result
from tests.core import story as s

PERIOD_MS = 5
TCP_NEW = "tcp-new"


@dataclass(frozen=True, slots=True)
class Try:
    """An attempt: its slot, when it was begun (ms from t = 0), what it took, and its result."""

    slot: int
    ms: float
    result: Result = Result.ANSWERED
    who: str | None = s.OLD
    took_ms: float = 0.5
    errno: str | None = None
    every: int = 1

    @property
    def way(self) -> tuple[Result, str | None, str | None, int]:
        return self.result, self.who, self.errno, self.every


def tries(
    first_ms: float,
    count: int,
    result: Result = Result.ANSWERED,
    who: str | None = None,
    took_ms: float | None = None,
    period_ms: float = PERIOD_MS,
    every: int = 1,
) -> list[Try]:
    """``count`` attempts, one in every ``every`` periods; slot 0 is at -10 s."""
    if result is Result.ANSWERED and who is None:
        who = s.OLD
    took = took_ms if took_ms is not None else (1000 if result is Result.TIMEOUT else 0.5)
    first = round((first_ms + 10_000) / period_ms)
    slots = range(0, count * every, every)
    return [Try(first + n, first_ms + n * period_ms, result, who, took, every=every) for n in slots]


def recorded(attempts: Iterable[Try], *, subject: str = TCP_NEW) -> list[Observation]:
    """The runs in the order of slots."""
    ordered = sorted(attempts, key=lambda one: one.slot)
    return [_run(list(same), subject) for _, same in groupby(ordered, key=lambda one: one.way)]


def prober(
    *parts: Sequence[Try],
    subject: str = TCP_NEW,
    missed: int = 0,
    period_ms: float = PERIOD_MS,
    end_ms: float = 59_990,
    stretches: Sequence[tuple[float, float, int, int]] | None = None,
    node: str | None = None,
) -> list[Observation]:
    """The runs and the summary; of ``stretches`` each is from, to (ms), every, missed."""
    attempts = [one for part in parts for one in part]
    due = [(one.slot * period_ms - 10_000, one.ms) for one in attempts]
    late_max_ns = round(max((ms - slot_ms for slot_ms, ms in due), default=0) * NS_PER_MS)
    summary = s.client(
        Event.PROBER_SUMMARY,
        subject,
        s.at(-10_000, end_ms),
        proto=subject[:3],
        period_ns=round(period_ms * NS_PER_MS),
        epoch_ns=s.ns(-10_000),
        patience_ns=1000 * NS_PER_MS,
        source="192.0.2.9",
        node=node,
        attempts=len(attempts),
        missed_slots=missed,
        unfinished=sum(one.result is Result.UNFINISHED for one in attempts),
        late_p50_ns=50_000,
        late_p99_ns=late_max_ns,
        late_max_ns=late_max_ns,
        stretches=None
        if stretches is None
        else [
            {"at": [s.ns(lo), s.ns(hi)], "every": every, "missed_slots": lost}
            for lo, hi, every, lost in stretches
        ],
    )
    return [*recorded(attempts, subject=subject), summary]


def _run(same: Sequence[Try], subject: str) -> Observation:
    first, last = same[0], same[-1]
    took = [round(one.took_ms * NS_PER_MS) for one in same]
    return s.client(
        Event.NEW_CONNECTIONS,
        subject,
        s.at(first.ms, max(one.ms + one.took_ms for one in same)),
        proto=subject[:3],
        result=str(first.result),
        responder=f"{first.who}/n" if first.who else None,
        errno=first.errno,
        every=first.every,
        first_slot=first.slot,
        last_slot=last.slot,
        count=len(same),
        first_ns=s.ns(first.ms),
        last_ns=s.ns(last.ms),
        first_took_ns=took[0],
        last_took_ns=took[-1],
        took_min_ns=min(took),
        took_max_ns=max(took),
    )
