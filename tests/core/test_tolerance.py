"""Upper tolerance limits: against published tables, and against what they promise."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.repeats.tolerance import confidence, needed, upper_limit

Q95, Q99, Q90 = Fraction(95, 100), Fraction(99, 100), Fraction(9, 10)


@pytest.mark.parametrize(
    ("quantile", "wanted", "expected"),
    # NIST/SEMATECH e-Handbook 7.2.6.4 and Hahn & Meeker, Statistical Intervals, table A.17
    [
        (Q90, Q90, 22),
        (Q90, Q95, 29),
        (Q95, Q90, 45),
        (Q95, Q95, 59),
        (Q99, Q95, 299),
        (Q99, Q99, 459),
    ],
)
def test_so_many_are_needed_as_the_tables_say(
    quantile: Fraction, wanted: Fraction, expected: int
) -> None:
    assert needed(quantile, wanted) == expected
    assert upper_limit(range(expected), quantile, wanted).value == expected - 1
    assert upper_limit(range(expected - 1), quantile, wanted).value is None


@pytest.mark.parametrize(
    # How many may be left out at the top for 95 % of the population with 95 % confidence:
    # the second greatest from 93 on, the third from 124, the fourth from 153 (the same tables).
    ("count", "rank"),
    [(59, 1), (92, 1), (93, 2), (123, 2), (124, 3), (152, 3), (153, 4)],
)
def test_with_more_values_the_greatest_are_left_out(count: int, rank: int) -> None:
    found = upper_limit(range(count), Q95, Q95)
    assert (found.rank, found.value) == (rank, count - rank)


def test_five_repeats_say_little_and_that_is_said() -> None:
    found = upper_limit([3, 9, 4, 5, 7], Q95, Q95)
    assert (found.value, found.rank, found.needed) == (None, None, 59)
    # the greatest of five is above the 95th percentile in 22.6 % of all fives
    assert found.confidence == 1 - Q95**5


def test_no_values_have_no_limit() -> None:
    found = upper_limit([], Q95, Q95)
    assert (found.value, found.confidence, found.count) == (None, Fraction(0), 0)


@pytest.mark.parametrize(
    "wrong", [Fraction(0), Fraction(1), Fraction(-1, 2), Fraction(99_999, 100_000)]
)
def test_a_certainty_is_not_to_be_had(wrong: Fraction) -> None:
    with pytest.raises(ValueError, match="quantile is"):
        upper_limit([1], wrong, Q95)
    with pytest.raises(ValueError, match="confidence is"):
        upper_limit([1], Q95, wrong)


@given(st.integers(1, 9), st.integers(1, 5), st.integers(2, 6))
def test_the_confidence_is_that_of_all_outcomes_counted_one_by_one(
    below: int, count: int, tenths: int
) -> None:
    """Each value falls below the quantile, or not: all the ways, each with its chance."""
    quantile = Fraction(below, below + tenths)
    for rank in range(1, count + 1):
        chance = Fraction(0)
        for each in product((True, False), repeat=count):
            if each.count(False) >= rank:
                chance += quantile ** each.count(True) * (1 - quantile) ** each.count(False)
        assert confidence(count, rank, quantile) == chance


@given(
    st.lists(st.integers(0, 10**12), min_size=1, max_size=120),
    st.sampled_from([Fraction(1, 2), Q90, Q95]),
    st.sampled_from([Fraction(1, 2), Q90, Q95]),
)
def test_it_is_the_least_value_that_is_sure_enough(
    values: list[int], quantile: Fraction, wanted: Fraction
) -> None:
    found = upper_limit(values, quantile, wanted)
    assert (found.value is None) == (len(values) < found.needed)
    if found.rank is not None:
        assert found.value == sorted(values, reverse=True)[found.rank - 1]
        assert found.confidence >= wanted
        if found.rank < len(values):
            assert confidence(len(values), found.rank + 1, quantile) < wanted
