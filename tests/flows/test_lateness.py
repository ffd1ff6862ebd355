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


@given(
    period=st.integers(1, 10**9),
    count=st.integers(1, 500),
    rest=st.integers(0, 10**9),
    taken=st.lists(st.integers(0, 10**9), max_size=5),
)
def test_missed_slots_are_late_and_no_sends(
    period: int, count: int, rest: int, taken: list[int]
) -> None:
    """Each by how long ago it was, at least: what is booked together counts as the oldest."""
    book = Book()
    for late in taken:
        book.lateness.add(late)
    book.miss(rest + count * period, period, count)
    assert (book.sends, book.missed) == (len(taken), count)
    exact = sorted([*taken, *(rest + n * period for n in range(1, count + 1))])
    assert book.lateness.max_ns == exact[-1]
    for number, late in enumerate(exact, 1):
        shown = book.lateness.quantile_ns(number / len(exact))
        assert shown is not None
        assert shown >= late
    whole = Book()
    whole.add(book)
    assert whole.told() == book.told()


def test_no_sends_no_quantile() -> None:
    assert Lateness().quantile_ns(0.5) is None
    assert Book().told()["late_max_ns"] is None
