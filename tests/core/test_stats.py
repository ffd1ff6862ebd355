"""Statistics over few repeats: exact, and with bounds that hold the truth."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.repeats.stats import (
    MedianBounds,
    Statistics,
    bounded_statistics,
    coverage,
    median,
    median_bounds,
    median_rank,
    statistics,
)


@pytest.mark.parametrize(
    ("values", "middle"),
    [
        ([7], 7),
        ([68, 96, 34, 41, 30], 41),
        ([1, 4], 2),
        ([-1, -4], -2),  # toward zero, not down
        ([-3, 2], 0),
        ([9, 1, 4, 2], 3),
    ],
)
def test_the_median_is_the_ancestors(values: list[int], middle: int) -> None:
    assert median(values) == middle


def test_a_large_median_is_exact() -> None:
    big = 10**18 + 1
    assert median([big, big]) == big


def test_what_was_not_measured_is_counted_and_is_no_zero() -> None:
    found = statistics([5, None, 7, None, 6])
    assert found == Statistics(observed=3, not_measured=2, minimum=5, median=6, maximum=7)
    assert statistics([0, 5, 7]).minimum == 0


def test_nothing_measured_has_no_statistics() -> None:
    found = statistics([None, None])
    assert found == Statistics(observed=0, not_measured=2, minimum=None, median=None, maximum=None)


def test_bounds_of_statistics_come_from_the_bounds_of_values() -> None:
    found = bounded_statistics([Interval(0, 10), Interval(5, 6), Interval(4, 20)])
    assert found.minimum == Interval(0, 6)
    assert found.median == Interval(4, 10)
    assert found.maximum == Interval(5, 20)


def test_a_mean_of_two_middles_is_rounded_outward() -> None:
    found = bounded_statistics([Interval(0, 0), Interval(1, 1)])
    assert found.median == Interval(0, 1)
    assert bounded_statistics([Interval(-1, -1), Interval(0, 0)]).median == Interval(-1, 0)


_VALUES = st.lists(
    st.tuples(
        st.integers(-1000, 1000), st.integers(0, 500), st.integers(0, 1000).map(lambda n: n / 1000)
    ),
    min_size=1,
    max_size=12,
)


@given(_VALUES)
def test_whatever_the_truth_is_its_statistics_lie_within(
    parts: list[tuple[int, int, float]],
) -> None:
    """Any truth inside the intervals: the bounds hold, and the ends of them are reached."""
    within = [Interval(lo, lo + width) for lo, width, _ in parts]
    truth = [lo + round(width * share) for lo, width, share in parts]
    found = bounded_statistics(within)
    assert found.minimum.lo <= min(truth) <= found.minimum.hi
    assert found.median.lo <= median(truth) <= found.median.hi
    assert found.maximum.lo <= max(truth) <= found.maximum.hi
    assert min(at.lo for at in within) == found.minimum.lo
    assert max(at.hi for at in within) == found.maximum.hi


def test_least_to_greatest_of_five_is_no_95_percent() -> None:
    assert coverage(5, 1) == Fraction(9375, 10_000)
    found = median_bounds([68, 96, 34, 41, 30])
    assert found == MedianBounds(lo=30, hi=96, rank=1, coverage=Fraction(15, 16))


@pytest.mark.parametrize("count", range(1, 11))
def test_the_coverage_is_counted_out(count: int) -> None:
    """Every pattern of "below the median or not" is equally likely; count those that miss."""
    patterns = [sum(pattern) for pattern in product((0, 1), repeat=count)]
    for rank in range(1, (count + 1) // 2 + 1):
        held = sum(rank <= below <= count - rank for below in patterns)
        assert coverage(count, rank) == Fraction(held, 2**count)


@pytest.mark.parametrize(("count", "rank"), [(1, 1), (5, 1), (6, 1), (8, 1), (9, 2), (20, 6)])
def test_the_narrowest_pair_that_covers_95_percent(count: int, rank: int) -> None:
    assert median_rank(count) == rank
    if count > 5:
        assert coverage(count, rank) >= Fraction(95, 100)
    if rank < (count + 1) // 2:
        assert coverage(count, rank + 1) < Fraction(95, 100)


def test_one_repeat_covers_nothing() -> None:
    assert median_bounds([7]).coverage == 0


def test_bounds_of_the_median_reach_to_the_outer_bounds_of_values() -> None:
    values = [Interval(n, n + 4) for n in range(9)]
    found = median_bounds(values)
    assert (found.rank, found.lo, found.hi) == (2, 1, 7 + 4)


def test_no_values_have_no_median() -> None:
    for ask in (median, bounded_statistics, median_bounds):
        with pytest.raises(ValueError, match="no values"):
            ask([])


@pytest.mark.parametrize("rank", [0, 4])
def test_a_rank_that_is_not_there_is_refused(rank: int) -> None:
    with pytest.raises(ValueError, match=r"expected 1\.\.3 for 5 values"):
        coverage(5, rank)
