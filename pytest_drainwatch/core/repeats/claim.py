"""What two samples say whatever the truth is, their values being known within bounds.

A claim that b is higher is tested against the truth that suits it worst: a at its upper
bounds, b at its lower ones. The shift is spanned by both extremes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.repeats.rank import (
    as_high_untied,
    rank_sum,
    shift_rank,
    smallest_p,
    smallest_p_among,
)
from pytest_drainwatch.core.repeats.stats import bounded_statistics

# A value of a repeat; None was not measured, so it may be anything.
Value = Interval | None
# Truths of a figure that are tried one by one.
FEW = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """By how much b lies higher: the median of all differences b - a, within its bounds, and
    an interval that holds the shift with probability ``coverage`` (exact, at least).
    """

    median: Interval
    within: Interval
    coverage: Fraction


def higher(a: Sequence[Value], b: Sequence[Value], least: int = 0) -> Fraction:
    """The one-sided p of the claim that b is higher by more than ``least``.

    It does not depend on what the truth is. Where few truths are possible (counts that
    are known, but for one or two) it is the greatest p of them all, with their ties. Else
    each tie and each pair in doubt counts against the claim: however they really lie, b is
    higher in at least so many pairs, and of values without ties those are distributed
    as is known.
    """
    if not least and (truths := _few_truths([*a, *b])) is not None:
        return max(rank_sum(truth[: len(a)], truth[len(a) :]).as_high for truth in truths)
    pairs = sum(surely_higher(x, y, least) for x in a for y in b)
    return as_high_untied(len(a), len(b), pairs)


def attainable(a: Sequence[Value], b: Sequence[Value], least: int = 0) -> Fraction:
    """The smallest two-sided p that these trials could have had, shared out otherwise.

    It does not depend on which trial is on which side, so whoever leaves out figures for
    its sake does not look at the result: 1 where no trial surely differs from another.
    """
    pooled = [*a, *b]
    if not any(surely_higher(x, y, least) for x in pooled for y in pooled):
        return Fraction(1)
    points = [value.lo for value in pooled if value is not None and not value.width]
    if not least and len(points) == len(pooled):
        return smallest_p_among(points, len(b))
    return smallest_p(len(a), len(b))


def shift(a: Sequence[Interval], b: Sequence[Interval]) -> Shift:
    """The shift from a to b. Raises ValueError if a sample is empty."""
    found = shift_rank(len(a), len(b))
    apart = [y - x for x in a for y in b]
    return Shift(
        median=bounded_statistics(apart).median,
        within=Interval(
            sorted(difference.lo for difference in apart)[found.rank - 1],
            sorted(difference.hi for difference in apart)[-found.rank],
        ),
        coverage=found.coverage,
    )


def surely_higher(a: Value, b: Value, least: int) -> bool:
    """Whether b lies above a by more than ``least``, whatever the truth."""
    return a is not None and b is not None and b.lo - a.hi > least


def at_best(a: Sequence[Value], b: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    """The truth that suits "b is higher" best, of what was measured at all."""
    return (
        [Interval.point(value.lo) for value in a if value is not None],
        [Interval.point(value.hi) for value in b if value is not None],
    )


def _few_truths(values: Sequence[Value]) -> Iterator[tuple[int, ...]] | None:
    """Every way in which whole numbers can lie within their bounds; None if these are many."""
    known = [value for value in values if value is not None]
    if len(known) < len(values) or prod(value.width + 1 for value in known) > FEW:
        return None
    return product(*(range(value.lo, value.hi + 1) for value in known))
