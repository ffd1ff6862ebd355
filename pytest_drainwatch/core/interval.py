"""Time that is known only within bounds.

An instrument that polls never sees a point in time, so none is stored: every
instant is an :class:`Interval` of integer nanoseconds and every difference of
two instants is an interval again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


def whole_seconds(ns: int) -> int:
    """Seconds, rounded up: what a manifest must say to cover ``ns``."""
    return -(-ns // NS_PER_S)


# An interval as report.json holds it: (lo, hi) in nanoseconds.
Bounds = tuple[int, int]


class Order(StrEnum):
    """What can be said about which of two instants came first."""

    BEFORE = "before"
    AFTER = "after"
    INDETERMINATE = "indeterminate"


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval ``[lo, hi]`` in nanoseconds that holds the truth."""

    lo: int
    hi: int

    def __post_init__(self) -> None:
        if self.lo > self.hi:
            raise ValueError(f"an interval needs lo <= hi, got [{self.lo}, {self.hi}]")

    @classmethod
    def point(cls, at_ns: int) -> Interval:
        """An instant that is known exactly (by definition, as t = 0 is)."""
        return cls(at_ns, at_ns)

    @property
    def width(self) -> int:
        """``hi - lo`` in nanoseconds."""
        return self.hi - self.lo

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.lo + other.lo, self.hi + other.hi)

    def __sub__(self, other: Interval) -> Interval:
        """Every difference that the two intervals allow; never clamped at zero."""
        return Interval(self.lo - other.hi, self.hi - other.lo)

    def since(self, origin_ns: int) -> Interval:
        """The same interval counted from ``origin_ns``."""
        return Interval(self.lo - origin_ns, self.hi - origin_ns)

    def order(self, other: Interval) -> Order:
        """Which came first; overlapping intervals are never guessed at."""
        if self.hi < other.lo:
            return Order.BEFORE
        if self.lo > other.hi:
            return Order.AFTER
        return Order.INDETERMINATE

    def intersect(self, other: Interval) -> Interval | None:
        """What both allow, or None if they contradict each other."""
        lo, hi = max(self.lo, other.lo), min(self.hi, other.hi)
        return Interval(lo, hi) if lo <= hi else None


def bounds(at: Interval | None) -> Bounds | None:
    """An interval as report.json holds it."""
    return None if at is None else (at.lo, at.hi)


def merged(stretches: Iterable[Interval]) -> tuple[Interval, ...]:
    """The same stretches in order; those that touch are one."""
    apart: list[Interval] = []
    for stretch in sorted(stretches, key=lambda at: at.lo):
        if apart and stretch.lo <= apart[-1].hi:
            apart[-1] = Interval(apart[-1].lo, max(apart[-1].hi, stretch.hi))
        else:
            apart.append(stretch)
    return tuple(apart)
