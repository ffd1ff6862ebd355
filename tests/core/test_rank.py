"""The rank test against its tables, and against every way to share out the values."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.repeats.rank import (
    MOST_VALUES,
    as_high_together,
    as_high_untied,
    rank_sum,
    repeats_of_b,
    repeats_of_both,
    shift_rank,
    smallest_p,
    smallest_p_among,
    stratum,
    stratum_untied,
)

# A busy machine is no counterexample.
unhurried = settings(deadline=None)
few = st.lists(st.integers(0, 6), min_size=1, max_size=5)


def midrank_doubled(pooled: list[int], value: int) -> int:
    below = sum(other < value for other in pooled)
    equal = pooled.count(value)
    return 2 * below + equal + 1


def by_hand(a: list[int], b: list[int]) -> tuple[Fraction, Fraction]:
    """Both one-sided p by sharing the values out in every way."""
    pooled = [*a, *b]
    ranks = [midrank_doubled(pooled, value) for value in pooled]
    seen = sum(ranks[len(a) :])
    sums = [sum(ranks[at] for at in c) for c in combinations(range(len(pooled)), len(b))]
    every = len(sums)
    return (
        Fraction(sum(found >= seen for found in sums), every),
        Fraction(sum(found <= seen for found in sums), every),
    )


@unhurried
@given(few, few)
def test_it_is_what_sharing_out_in_every_way_gives(a: list[int], b: list[int]) -> None:
    found = rank_sum(a, b)
    assert (found.as_high, found.as_low) == by_hand(a, b)


@unhurried
@given(few, few)
def test_both_samples_see_the_same(a: list[int], b: list[int]) -> None:
    here, there = rank_sum(a, b), rank_sum(b, a)
    assert (here.as_high, here.as_low) == (there.as_low, there.as_high)
    assert here.two_sided == there.two_sided


@unhurried
@given(few, few, st.sampled_from([lambda x: 3 * x - 5, lambda x: x**3]))
def test_only_the_order_counts(a: list[int], b: list[int], growing: object) -> None:
    assert callable(growing)
    assert rank_sum(a, b) == rank_sum([growing(x) for x in a], [growing(x) for x in b])


@pytest.mark.parametrize(
    ("n_a", "n_b", "critical"),
    # Mann and Whitney's table for 0.05, two-sided: the greatest U that is significant.
    [
        (4, 4, 0),
        (5, 5, 2),
        (5, 3, 0),
        (6, 6, 5),
        (7, 5, 5),
        (8, 8, 13),
        (10, 10, 23),
        (20, 20, 127),
    ],
)
def test_the_published_critical_values(n_a: int, n_b: int, critical: int) -> None:
    def two_sided(u: int) -> Fraction:
        return 2 * as_high_untied(n_a, n_b, n_a * n_b - u)

    assert two_sided(critical) <= Fraction(5, 100) < two_sided(critical + 1)
    # and the interval of the shift begins at the next difference
    assert shift_rank(n_a, n_b).rank == critical + 1


def test_known_p_values() -> None:
    # Hollander and Wolfe, Nonparametric Statistical Methods, table 4.1: water transfer
    # through placental membranes; P(W >= 30 of 5 against 10) is 0.127 one-sided.
    term = [80, 83, 189, 104, 145, 138, 191, 164, 73, 146]
    early = [115, 88, 90, 74, 121]
    assert rank_sum(term, early).as_low == Fraction(382, 3003)
    assert float(rank_sum(term, early).two_sided) == pytest.approx(0.2544, abs=5e-5)


def test_ties_count_half() -> None:
    # Of the 20 ways to choose three, 9 hold two of the three ones, and 1 all of them.
    assert rank_sum([0, 0, 1], [0, 1, 1]).as_high == Fraction(10, 20)
    assert rank_sum([0, 0, 0], [1, 1, 1]).two_sided == Fraction(2, 20)
    assert rank_sum([7] * 9, [7] * 4).two_sided == 1


@pytest.mark.parametrize(("n_a", "n_b"), [(1, 1), (5, 1), (5, 5), (50, 50), (3, 40)])
def test_probabilities_are_exact_at_any_size(n_a: int, n_b: int) -> None:
    apart = rank_sum(range(n_a), range(n_a, n_a + n_b))
    assert apart.as_high == Fraction(1, comb(n_a + n_b, n_b))
    assert apart.as_low == 1
    assert apart.two_sided == smallest_p(n_a, n_b)
    half = rank_sum(range(0, 2 * n_a, 2), range(1, 2 * n_b, 2))
    total = comb(n_a + n_b, n_b)
    assert half.as_high + half.as_low > 1, "what was seen is in both"
    assert (half.as_high * total).denominator == 1


@unhurried
@given(st.lists(st.integers(0, 99), min_size=2, max_size=10, unique=True), st.data())
def test_without_ties_pairs_and_ranks_are_one(pooled: list[int], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(pooled) - 1))
    a, b = pooled[:cut], pooled[cut:]
    pairs = sum(y > x for x in a for y in b)
    assert as_high_untied(len(a), len(b), pairs) == rank_sum(a, b).as_high


@unhurried
@given(few, few)
def test_no_sharing_out_reaches_less_than_the_smallest(a: list[int], b: list[int]) -> None:
    pooled = [*a, *b]
    reached = [
        rank_sum([x for at, x in enumerate(pooled) if at not in c], [pooled[at] for at in c])
        for c in combinations(range(len(pooled)), len(b))
    ]
    assert smallest_p_among(pooled, len(b)) == min(found.two_sided for found in reached)
    assert smallest_p_among(pooled, len(b)) >= smallest_p(len(a), len(b))


@pytest.mark.parametrize(
    ("n_a", "level", "n_b"),
    [
        (5, Fraction(1, 20), 3),
        (1, Fraction(1, 20), 39),
        (4, Fraction(1, 20), 4),
        (3, Fraction(1, 20), 5),
    ],
)
def test_how_many_repeats_could_decide(n_a: int, level: Fraction, n_b: int) -> None:
    assert repeats_of_b(n_a, level) == n_b
    assert smallest_p(n_a, n_b) <= level < smallest_p(n_a, n_b - 1)


def test_how_many_of_both_could_decide() -> None:
    assert [repeats_of_both(Fraction(1, 20) / m) for m in (1, 6, 7, 23, 24)] == [4, 5, 6, 6, 7]


def test_the_coverage_of_the_shift() -> None:
    # 5 against 5: the third difference from below and above, 96.8 %; 3 against 3 cannot do 95 %.
    assert shift_rank(5, 5).coverage == 1 - Fraction(8, 252)
    assert (shift_rank(3, 3).rank, shift_rank(3, 3).coverage) == (1, Fraction(9, 10))
    assert shift_rank(5, 1).coverage == Fraction(4, 6)
    assert shift_rank(1, 1).coverage == 0, "one value of each says nothing"


@pytest.mark.parametrize(("n_a", "n_b"), [(2, 3), (3, 3), (4, 3)])
def test_the_coverage_is_that_of_all_orders(n_a: int, n_b: int) -> None:
    """Of all orders of samples that are shifted by 0, so many have 0 inside the interval."""
    found = shift_rank(n_a, n_b, Fraction(7, 10))
    inside, every = 0, 0
    for chosen in combinations(range(n_a + n_b), n_b):
        rest = [x for x in range(n_a + n_b) if x not in chosen]
        apart = sorted(y - x for x in rest for y in chosen)
        inside += apart[found.rank - 1] < 0 < apart[-found.rank]
        every += 1
    assert Fraction(inside, every) == found.coverage >= Fraction(7, 10)


def test_samples_whose_distribution_would_take_minutes_are_refused() -> None:
    half = MOST_VALUES // 2
    assert rank_sum(range(half), range(half, 2 * half)).as_high == Fraction(1, comb(2 * half, half))
    with pytest.raises(ValueError, match=f"samples of {MOST_VALUES + 1} values together"):
        rank_sum(range(half), range(half, 2 * half + 1))
    # How many would be needed can be told without it.
    assert repeats_of_b(1, Fraction(1, 5000)) == 9999


strata = st.lists(st.tuples(st.lists(st.integers(0, 4), min_size=1, max_size=3), few), max_size=3)


@unhurried
@given(strata, st.booleans())
def test_several_strata_are_what_sharing_out_each_gives(
    pairs: list[tuple[list[int], list[int]]], reverse: bool
) -> None:
    """Every way for each of them, and their rank sums added up."""
    if reverse:
        pairs = [(b, a) for a, b in pairs]
    sums, seen = [0], 0
    for a, b in pairs:
        pooled = [*a, *b]
        ranks = [midrank_doubled(pooled, value) for value in pooled]
        seen += sum(ranks[len(a) :])
        own = [sum(ranks[at] for at in c) for c in combinations(range(len(pooled)), len(b))]
        sums = [so_far + each for so_far in sums for each in own]
    expected = Fraction(sum(each >= seen for each in sums), len(sums))
    assert as_high_together([stratum(a, b) for a, b in pairs]) == expected


@unhurried
@given(few, few)
def test_one_stratum_is_the_test_itself(a: list[int], b: list[int]) -> None:
    assert as_high_together([stratum(a, b)]) == rank_sum(a, b).as_high


@unhurried
@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_strata_of_pairs_are_those_without_ties(n_a: int, n_b: int, data: st.DataObject) -> None:
    pairs = data.draw(st.integers(0, n_a * n_b))
    one = stratum_untied(n_a, n_b, pairs)
    assert as_high_together([one]) == as_high_untied(n_a, n_b, pairs)
    assert one.highest == one.lowest == Fraction(1, comb(n_a + n_b, n_b))
    mixed = [one, stratum([0, 0, 1], [0, 1])]
    assert as_high_together(mixed) == as_high_together(mixed[::-1])


def test_empty_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="samples of 0 and 1 values: expected at least one"):
        rank_sum([], [1])
    with pytest.raises(ValueError, match="expected more than 0"):
        repeats_of_b(5, Fraction(0))
