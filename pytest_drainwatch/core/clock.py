"""Bringing stamps of other clocks onto the harness's, with bounds.

A clock is identified by boot id and time namespace: two processes that name the
same one read the same CLOCK_MONOTONIC. For any other clock each exchange bounds
the offset: a request is received after it was sent, and a reply is sent before it
is received. Clocks drift, so a bound widens with its distance from the exchange.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.jsonvalue import integer_or_none
from pytest_drainwatch.core.observation import Event, Observation

# What two undisciplined crystals may differ by; NTP slews by up to 500 ppm, but on
# CLOCK_MONOTONIC of a synchronised host far less.
DRIFT_PPM = 100


class ClockError(ValueError):
    """Stamps that no offset can explain: an effect before its cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """``harness = other + bound`` held when the other clock read ``at_ns``."""

    at_ns: int
    bound: Interval
    seen: Observation

    def bound_at(self, at_ns: int) -> Interval:
        """The bound at another reading of that clock, wider by the drift in between."""
        drift = -(-abs(at_ns - self.at_ns) * DRIFT_PPM // 1_000_000)
        return Interval(self.bound.lo - drift, self.bound.hi + drift)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """One clock that the recording names, and what bounds its offset."""

    name: str
    same: bool
    exchanges: tuple[Exchange, ...] = ()

    def offset_at(self, at_ns: int) -> Interval | None:
        """The offset when this clock read ``at_ns``; None while nothing bounds it.

        Raises :class:`ClockError` with both exchanges if two of them exclude each other.
        """
        if self.same:
            return Interval.point(0)
        found: Interval | None = None
        last: Exchange | None = None
        for exchange in self.exchanges:
            bound = exchange.bound_at(at_ns)
            if found is None:
                found, last = bound, exchange
                continue
            both = found.intersect(bound)
            if both is None and last is not None:
                raise ClockError(
                    f"clock {self.name}: the exchanges {dict(last.seen.data)} and "
                    f"{dict(exchange.seen.data)} exclude each other within {DRIFT_PPM} ppm of "
                    "drift; was the workload's clock stepped?"
                )
            found, last = both, exchange
        return found


def clocks(harness_clock: str, seen: Iterable[Observation]) -> Mapping[str, Clock]:
    """Every clock that the observations name, with its exchanges.

    Raises :class:`ClockError` for an exchange that shows an effect before its cause.
    """
    exchanges: dict[str, list[Exchange]] = {}
    for observation in seen:
        if observation.event is Event.CLOCK_EXCHANGE:
            name = str(observation.data.get("clock", ""))
            exchange = _exchange(name, name == harness_clock, observation)
            exchanges.setdefault(name, []).append(exchange)
        elif observation.clock:
            exchanges.setdefault(observation.clock, [])
    return {
        name: Clock(name=name, same=name == harness_clock, exchanges=tuple(found))
        for name, found in exchanges.items()
    }


def to_harness(seen: Observation, known: Mapping[str, Clock]) -> Interval | None:
    """When it happened on the harness's clock, or None if nothing bounds that."""
    if not seen.clock:
        return seen.at
    if seen.clock not in known:
        return None
    offset = known[seen.clock].offset_at(seen.at.lo)
    return None if offset is None else seen.at + offset


def _exchange(name: str, same: bool, seen: Observation) -> Exchange:
    t1, t2, t3, t4 = (_stamp(seen, stamp) for stamp in ("t1", "t2", "t3", "t4"))
    lo, hi = t1 - t2, t4 - t3
    # On one clock the offset 0 must be allowed; on another one some offset must be.
    if t3 < t2 or lo > hi or (same and not lo <= 0 <= hi):
        raise ClockError(
            f"clock {name}: the exchange {dict(seen.data)} shows an effect before its cause; "
            "expected t1 <= t2 <= t3 <= t4 on one time scale. Is the workload's clock stepped "
            "or virtual?"
        )
    return Exchange(at_ns=t2, bound=Interval(lo, hi), seen=seen)


def _stamp(seen: Observation, name: str) -> int:
    value = integer_or_none(seen.data.get(name))
    if value is None:
        raise ClockError(f"a clock exchange needs the integer {name!r}, got {dict(seen.data)}")
    return value
