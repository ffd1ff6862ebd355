"""Claims about values within bounds: they hold whatever the truth is."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.repeats.claim import FEW, Value, attainable, higher, shift
from pytest_drainwatch.core.repeats.rank import rank_sum, smallest_p

# A busy machine is no counterexample.
unhurried = settings(deadline=None)


@st.composite
def within(draw: st.DrawFn, widest: int = 2) -> Interval:
    lo = draw(st.integers(0, 6))
    return Interval(lo, lo + draw(st.integers(0, widest)))


bounded = st.lists(within(), min_size=1, max_size=4)
wide = st.lists(within(widest=90), min_size=1, max_size=4)


def points(*values: int) -> list[Value]:
    return [Interval.point(value) for value in values]


def truths(values: list[Interval]) -> list[tuple[int, ...]]:
    return list(product(*(range(value.lo, value.hi + 1) for value in values)))


@unhurried
@given(bounded, bounded)
def test_no_possible_truth_has_a_greater_p(a: list[Interval], b: list[Interval]) -> None:
    possible = truths([*a, *b])
    assume(len(possible) <= FEW)
    every = [rank_sum(truth[: len(a)], truth[len(a) :]).as_high for truth in possible]
    assert higher(a, b) == max(every)


@unhurried
@given(wide, wide, st.data())
def test_of_many_truths_none_without_ties_has_a_greater_p(
    a: list[Interval], b: list[Interval], data: st.DataObject
) -> None:
    assume(len(a) + len(b) > 2)
    # A truth for each value, strictly within its bounds, no two alike: bounds stretched by 1000.
    stretched = [Interval(1000 * v.lo, 1000 * v.hi + 1) for v in (*a, *b)]
    truth = [data.draw(st.integers(v.lo, v.hi)) for v in stretched]
    assume(len(set(truth)) == len(truth))
    assume(any(v.width > FEW for v in stretched))
    here, there = stretched[: len(a)], stretched[len(a) :]
    assert higher(here, there) >= rank_sum(truth[: len(a)], truth[len(a) :]).as_high


@unhurried
@given(wide, wide)
def test_what_is_claimed_is_claimed_of_one_direction(a: list[Interval], b: list[Interval]) -> None:
    assert higher(a, b) + higher(b, a) >= 1, "not both can be proven"


def test_a_truth_that_would_not_do_is_enough_to_doubt() -> None:
    apart = higher(points(0, 0, 0, 0, 0), points(1, 1, 1, 1, 1))
    assert apart == Fraction(1, 252)
    perhaps_one: list[Value] = [*points(0, 0, 0, 0), Interval(0, 1)]
    assert higher(perhaps_one, points(1, 1, 1, 1, 1)) == Fraction(6, 252)
    # Bounds that reach over the other side: nothing is proven.
    assert higher([Interval(0, 9)] * 5, points(5, 5, 5, 5, 5)) == 1


def test_what_was_not_measured_may_be_anything() -> None:
    nine: list[Value] = [None, *points(*[140] * 9)]
    assert higher(points(*[0] * 10), nine) < Fraction(1, 1000), "nine others say enough"
    assert higher(points(0, 0, 0, 0, 0), [None, *points(140, 140, 140, 140)]) > Fraction(1, 40)


def test_a_shift_below_the_least_effect_is_none() -> None:
    here, there = points(100, 101, 102, 103), points(103, 104, 105, 106)
    assert higher(here, there) == Fraction(2, 70), "one tie"
    assert higher(here, there, least=1) > higher(here, there)
    assert higher(here, there, least=20) == 1
    assert higher(here, points(124, 125, 126, 127), least=20) == Fraction(1, 70)


@unhurried
@given(bounded, bounded, st.sampled_from([0, 2]))
def test_no_sharing_out_reaches_less_than_is_attainable(
    a: list[Interval], b: list[Interval], least: int
) -> None:
    pooled = [*a, *b]
    found = attainable(a, b, least)
    for chosen in combinations(range(len(pooled)), len(b)):
        there = [pooled[at] for at in chosen]
        here = [value for at, value in enumerate(pooled) if at not in chosen]
        p = 2 * min(higher(here, there, least), higher(there, here, least))
        assert min(Fraction(1), p) >= found
        # It does not depend on who is on which side.
        assert attainable(here, there, least) == found


def test_figures_that_cannot_be_claimed() -> None:
    assert attainable(points(0, 0, 0, 0, 0), points(0, 0, 0, 0, 0)) == 1
    assert attainable(points(0, 0, 0, 0, 0), points(0, 0, 0, 0, 3)) == 1
    assert attainable(points(0, 1, 2, 3, 4), points(5, 6, 7, 8, 9)) == smallest_p(5, 5)
    assert attainable(points(0, 1, 2, 3, 4), points(5, 6, 7, 8, 9), least=20) == 1
    assert attainable([None] * 5, points(1, 2, 3, 4, 5)) < 1, "those five are not alike"


@unhurried
@given(bounded, bounded)
def test_the_shift_holds_every_true_one(a: list[Interval], b: list[Interval]) -> None:
    found = shift(a, b)
    assert found.within.lo <= found.median.lo <= found.median.hi <= found.within.hi
    corner = shift(
        [Interval.point(value.hi) for value in a], [Interval.point(value.lo) for value in b]
    )
    assert found.within.lo == corner.within.lo <= found.within.hi
    back = shift(b, a)
    assert (-back.within.hi, -back.within.lo) == (found.within.lo, found.within.hi)
    assert back.coverage == found.coverage


def test_a_shift_by_hand() -> None:
    found = shift(points(10, 20, 40), points(15, 35, 70))  # type: ignore[arg-type]
    # Differences: -25 -5 -5 5 15 25 30 50 60
    assert found.median == Interval.point(15)
    assert (found.within, found.coverage) == (Interval(-25, 60), Fraction(9, 10))
