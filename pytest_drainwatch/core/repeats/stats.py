"""Statistics over few repeats: integers in, integers out, bounds carried along.

A trial is repeated five times, not five thousand. So nothing here assumes a
distribution: order statistics, and for the median an interval whose coverage is
computed, not approximated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

from pytest_drainwatch.core.interval import Interval

WANTED_COVERAGE = Fraction(95, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Least, median and greatest of the values that were observed.

    They are None when none was. A value that was not measured is counted and
    nothing else: it is never a zero.
    """

    observed: int
    not_measured: int
    minimum: int | None
    median: int | None
    maximum: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedStatistics:
    """The same for values known within bounds: each statistic has bounds of its own."""

    minimum: Interval
    median: Interval
    maximum: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianBounds:
    """``[lo, hi]`` holds the median of all such trials with probability ``coverage``.

    That is exact for independent repeats of a continuous quantity; ties between
    values only raise it. ``lo`` is the ``rank``-th value from below, ``hi`` the
    ``rank``-th from above.
    """

    lo: int
    hi: int
    rank: int
    coverage: Fraction


def statistics(values: Iterable[int | None]) -> Statistics:
    """Statistics of repeats; None is a repeat that did not measure it."""
    values = list(values)
    seen = [value for value in values if value is not None]
    return Statistics(
        observed=len(seen),
        not_measured=len(values) - len(seen),
        minimum=min(seen, default=None),
        median=median(seen) if seen else None,
        maximum=max(seen, default=None),
    )


def median(values: Sequence[int]) -> int:
    """The middle value; of an even count the integer mean of both, truncated toward zero.

    Truncated because the ancestor does so, and its figures must come out again.
    """
    low, high = _middle(values)
    total = low + high
    return total // 2 if total >= 0 else -(-total // 2)


def bounded_statistics(values: Sequence[Interval]) -> BoundedStatistics:
    """Bounds of the statistics over values that are known within bounds.

    Least, median and greatest never fall when a value rises, so the statistic of the
    lower bounds is its lower bound, and likewise above: nothing tighter is true, and
    nothing is lost. A mean of two middles is rounded outward.
    """
    los, his = [value.lo for value in values], [value.hi for value in values]
    low, high = sum(_middle(los)), sum(_middle(his))
    return BoundedStatistics(
        minimum=Interval(min(los), min(his)),
        median=Interval(low // 2, -(-high // 2)),
        maximum=Interval(max(los), max(his)),
    )


def coverage(count: int, rank: int) -> Fraction:
    """How often the ``rank``-th of ``count`` values from below and above enclose the median.

    Each value falls below the median with probability one half, so the number of
    those that do is binomial: the two miss it when fewer than ``rank`` lie on one side.
    """
    if not 1 <= rank <= (count + 1) // 2:
        raise ValueError(f"rank is {rank}, expected 1..{(count + 1) // 2} for {count} values")
    missed = sum(comb(count, below) for below in range(rank))
    return 1 - Fraction(2 * missed, 2**count)


def median_rank(count: int, wanted: Fraction = WANTED_COVERAGE) -> int:
    """The rank of the narrowest pair that covers ``wanted``.

    1, the widest there is, when the values are too few for that.
    """
    enough = (r for r in range((count + 1) // 2, 0, -1) if coverage(count, r) >= wanted)
    return next(enough, 1)


def median_bounds(
    values: Sequence[int | Interval], wanted: Fraction = WANTED_COVERAGE
) -> MedianBounds:
    """Where the median of all such trials lies, judged by these repeats.

    With five repeats that is least to greatest, which covers it in 93.75 % and not
    in 95 %: the coverage says so. Of values within bounds the outer ones count, so the
    coverage is kept at least. Raises ValueError without values.
    """
    if not values:
        raise ValueError("the median of no values has no bounds; expected at least one")
    rank = median_rank(len(values), wanted)
    return MedianBounds(
        lo=sorted(_each(values, lambda at: at.lo))[rank - 1],
        hi=sorted(_each(values, lambda at: at.hi))[-rank],
        rank=rank,
        coverage=coverage(len(values), rank),
    )


def _each(values: Sequence[int | Interval], side: Callable[[Interval], int]) -> list[int]:
    return [side(value) if isinstance(value, Interval) else value for value in values]


def _middle(values: Sequence[int]) -> tuple[int, int]:
    """The two middle values; of an odd count the same one twice."""
    if not values:
        raise ValueError("no values have no median; expected at least one")
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
