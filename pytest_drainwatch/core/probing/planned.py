"""Which slots the plan of a prober had, tried or missed: what an attempt stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.jsonvalue import integer_or_none, objects


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Time ``[lo, hi)`` in which each ``every``-th slot was to be tried; so many were missed."""

    at: Interval
    every: int
    missed: int | None

    @classmethod
    def read(cls, told: Mapping[str, object]) -> Self | None:
        """What a summary tells of one; None if it cannot be one."""
        at, every = told.get("at"), integer_or_none(told.get("every"))
        ends = [integer_or_none(end) for end in at] if isinstance(at, list) else []
        if len(ends) != 2 or every is None or every < 1:
            return None
        lo, hi = ends
        if lo is None or hi is None or hi < lo:
            return None
        missed = integer_or_none(told.get("missed_slots"))
        return cls(at=Interval(lo, hi), every=every, missed=missed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All stretches of a prober; slot ``n`` lies at ``epoch_ns + n * period_ns``."""

    epoch_ns: int
    period_ns: int
    stretches: tuple[Stretch, ...]

    @classmethod
    def read(cls, told: object, *, epoch_ns: int, period_ns: int) -> Self | None:
        """The plan that a summary tells of; None if it tells of none, or not of all."""
        raw = objects(told)
        stretches = tuple(one for each in raw if (one := Stretch.read(each)) is not None)
        if not stretches or len(stretches) < len(raw):
            return None
        return cls(epoch_ns=epoch_ns, period_ns=period_ns, stretches=stretches)

    def slots(self, parts: Iterable[Interval]) -> Mapping[int, int]:
        """How many slots lie in these parts of time (apart), by how many apart; in order."""
        found = dict.fromkeys(sorted({one.every for one in self.stretches}), 0)
        for part in parts:
            for one in self.stretches:
                lo, hi = max(part.lo, one.at.lo), min(part.hi, one.at.hi)
                if lo < hi:
                    found[one.every] += self._before(hi, one.every) - self._before(lo, one.every)
        return {every: number for every, number in found.items() if number}

    def since(self, at_ns: int) -> Mapping[int, int]:
        """How many slots lie at ``at_ns`` or later."""
        end_ns = max(one.at.hi for one in self.stretches)
        return self.slots([Interval(at_ns, end_ns)] if at_ns < end_ns else [])

    def missed(self) -> Mapping[int, int | None]:
        """How many were missed in all, by how many apart; None: it is not told of all."""
        found: dict[int, int | None] = {}
        for one in self.stretches:
            so_far = found.get(one.every, 0)
            known = so_far is not None and one.missed is not None
            found[one.every] = (so_far or 0) + (one.missed or 0) if known else None
        return found

    @property
    def sparsest(self) -> int:
        """The largest distance of two slots that were to be tried."""
        return max(one.every for one in self.stretches)

    def _before(self, at_ns: int, every: int) -> int:
        """How many of each ``every``-th slot lie before that time."""
        return max(0, -(-(at_ns - self.epoch_ns) // (self.period_ns * every)))
