"""Quantiles of lateness from a histogram."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.flows.lateness import Book, Lateness

VALUES = st.lists(st.integers(0, 10**10), min_size=1, max_size=200)


def lateness(values: list[int]) -> Lateness:
    found = Lateness()
    for value in values:
        found.add(value)
    return found


@given(VALUES)
def test_quantiles_are_within_a_bucket_and_never_too_small(values: list[int]) -> None:
    found = lateness(values)
    assert found.max_ns == max(values)
    for q in (0.5, 0.99, 1.0):
        exact = sorted(values)[max(0, -(-int(q * len(values) * 100) // 100) - 1)]
        shown = found.quantile_ns(q)
        assert shown is not None
        assert shown >= exact
    assert found.quantile_ns(1.0) == max(values)


@given(VALUES, VALUES)
def test_two_merged_are_as_one(some: list[int], more: list[int]) -> None:
    both, whole = lateness(some), lateness(some + more)
    both.merge(lateness(more))
    assert both.count == whole.count
    assert [both.quantile_ns(q) for q in (0.1, 0.5, 0.99, 1)] == [
        whole.quantile_ns(q) for q in (0.1, 0.5, 0.99, 1)
    ]


def test_no_sends_no_quantile() -> None:
    assert Lateness().quantile_ns(0.5) is None
    assert Book().told()["late_max_ns"] is None
