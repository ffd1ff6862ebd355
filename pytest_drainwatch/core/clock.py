"""Bringing stamps of other clocks onto the harness's, with bounds.

A clock is identified by boot id and time namespace: two processes that name the
same one read the same CLOCK_MONOTONIC. For any other clock each exchange bounds
the offset: a request is received after it was sent, and a reply is sent before it
is received.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation


class ClockError(ValueError):
    """Stamps that no offset can explain: an effect before its cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """``harness = other + offset``; None while nothing bounds it."""

    clock: str
    same_clock: bool
    offset: Interval | None
    exchanges: int


def offsets(harness_clock: str, seen: Iterable[Observation]) -> Mapping[str, Offset]:
    """The offset of every clock that the observations name.

    Raises :class:`ClockError` showing both exchanges if they contradict each
    other, or the one that shows an effect before its cause.
    """
    found: dict[str, Offset] = {}
    decisive: dict[str, Observation] = {}
    for observation in seen:
        clock = observation.clock
        if observation.event is Event.CLOCK_EXCHANGE:
            clock = str(observation.data.get("clock", ""))
        if not clock:
            continue
        known = found.get(clock) or _unbounded(clock, harness_clock)
        if observation.event is Event.CLOCK_EXCHANGE:
            known = _narrow(known, observation, decisive.get(clock))
            decisive[clock] = observation
        found[clock] = known
    return found


def to_harness(seen: Observation, known: Mapping[str, Offset]) -> Interval | None:
    """When it happened on the harness's clock, or None if nothing bounds that."""
    if not seen.clock:
        return seen.at
    offset = known[seen.clock].offset if seen.clock in known else None
    return None if offset is None else seen.at + offset


def _unbounded(clock: str, harness_clock: str) -> Offset:
    same = clock == harness_clock
    return Offset(
        clock=clock, same_clock=same, offset=Interval.point(0) if same else None, exchanges=0
    )


def _narrow(known: Offset, seen: Observation, before: Observation | None) -> Offset:
    t1, t2, t3, t4 = (_stamp(seen, name) for name in ("t1", "t2", "t3", "t4"))
    lo, hi = t1 - t2, t4 - t3
    bound = Interval(lo, hi) if lo <= hi else None
    if bound is not None and known.offset is not None:
        bound = known.offset.intersect(bound)
    if bound is None or t3 < t2:
        raise ClockError(
            f"clock {known.clock}: the exchange {dict(seen.data)} shows an effect before its "
            f"cause{f', given {dict(before.data)}' if before else ''}; expected "
            "t1 <= t2 <= t3 <= t4 on one time scale. Is the workload's clock stepped or virtual?"
        )
    return Offset(
        clock=known.clock,
        same_clock=known.same_clock,
        offset=known.offset if known.same_clock else bound,
        exchanges=known.exchanges + 1,
    )


def _stamp(seen: Observation, name: str) -> int:
    value = seen.data.get(name)
    if type(value) is not int:
        raise ClockError(f"a clock exchange needs the integer {name!r}, got {dict(seen.data)}")
    return value
