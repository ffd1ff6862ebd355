"""Intervals: arithmetic that never loses the truth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import Interval, Order

NS = st.integers(-(10**12), 10**12)
INTERVALS = st.tuples(NS, NS).map(lambda pair: Interval(min(pair), max(pair)))


def within(interval: Interval) -> st.SearchStrategy[int]:
    return st.integers(interval.lo, interval.hi)


@given(st.data(), INTERVALS, INTERVALS)
def test_a_difference_holds_every_possible_difference(
    data: st.DataObject, a: Interval, b: Interval
) -> None:
    x, y = data.draw(within(a)), data.draw(within(b))
    assert (a - b).lo <= x - y <= (a - b).hi
    assert (a + b).lo <= x + y <= (a + b).hi


@given(st.data(), INTERVALS, INTERVALS)
def test_an_order_is_said_only_where_it_is_sure(
    data: st.DataObject, a: Interval, b: Interval
) -> None:
    x, y = data.draw(within(a)), data.draw(within(b))
    if a.order(b) is Order.BEFORE:
        assert x < y
    elif a.order(b) is Order.AFTER:
        assert x > y
    else:
        assert a.intersect(b) is not None


def test_overlap_is_indeterminate() -> None:
    assert Interval(1, 5).order(Interval(5, 9)) is Order.INDETERMINATE
    assert Interval(1, 4).order(Interval(5, 9)) is Order.BEFORE


def test_bounds_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(ValueError, match="lo <= hi"):
        Interval(2, 1)
