"""Exact bounds of a failure rate, against known values, the binomial itself, and simulation."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.probing.binomial import MISSED, rate_bounds


@st.composite
def counts(draw: st.DrawFn, most: int = 3000) -> tuple[int, int]:
    tried = draw(st.integers(1, most))
    return draw(st.integers(0, tried)), tried


@pytest.mark.parametrize(
    ("failed", "tried", "low", "high"),
    [
        # 0 of n: 1 - 0.05 ** (1 / n), "the rule of three".
        (0, 1600, 0.0, 0.00187059),
        (0, 1, 0.0, 0.95),
        (1, 1, 0.05, 1.0),
        # Public tables of Clopper-Pearson intervals.
        (5, 10, 0.187086, 0.812914),
        (1, 20, 0.00126509, 0.248733),
        # Case C18.
        (105, 456_000, 0.000188336, 0.000278741),
        (500_000, 1_000_000, 0.499019, 0.500981),
    ],
)
def test_known_values(failed: int, tried: int, low: float, high: float) -> None:
    found = rate_bounds(failed, tried)
    assert found[0] == pytest.approx(low, rel=1e-5)
    assert found[1] == pytest.approx(high, rel=1e-5)


@given(counts())
def test_what_was_observed_is_inside_and_so_is_never_nothing(found: tuple[int, int]) -> None:
    failed, tried = found
    low, high = rate_bounds(failed, tried)
    assert 0 <= low <= failed / tried <= high <= 1
    assert high > 0, "never 0 %"
    assert low < 1, "never 100 %"


@given(counts(most=400), st.integers(0, 50))
def test_more_failures_move_both_bounds_up(found: tuple[int, int], more: int) -> None:
    failed, tried = found
    before, after = rate_bounds(failed, tried + more), rate_bounds(failed + more, tried + more)
    assert before[0] <= after[0]
    assert before[1] <= after[1]


@given(counts(most=400), st.integers(1, 400))
def test_more_attempts_that_did_not_fail_move_both_down(found: tuple[int, int], more: int) -> None:
    failed, tried = found
    before, after = rate_bounds(failed, tried), rate_bounds(failed, tried + more)
    # All failed has its 5 % on one side: one more that did not fail moves half of them over.
    assert after[0] <= before[0]
    assert after[1] <= before[1] or failed == tried


@given(counts(most=400), st.integers(0, 60), st.data())
def test_attempts_that_are_not_known_may_be_either(
    found: tuple[int, int], unknown: int, data: st.DataObject
) -> None:
    failed, tried = found
    low, high = rate_bounds(failed, tried, unknown=unknown)
    truly = failed + data.draw(st.integers(0, unknown))
    sure = rate_bounds(truly, tried + unknown)
    assert low <= sure[0]
    assert sure[1] <= high


@given(counts(most=60), st.integers(1, 99))
@settings(max_examples=150)
def test_outside_of_the_bounds_such_a_count_is_rare(found: tuple[int, int], percent: int) -> None:
    """The definition, with exact fractions: a rate outside has a tail of under 5 % (2.5 %)."""
    failed, tried = found
    low, high = rate_bounds(failed, tried)
    rate = Fraction(percent, 100)
    share = [comb(tried, k) * rate**k * (1 - rate) ** (tried - k) for k in range(tried + 1)]
    one_sided = failed in (0, tried)
    tail = Fraction(MISSED).limit_denominator(100) / (1 if one_sided else 2)
    if rate < Fraction(low) - Fraction(1, 10**6):
        assert sum(share[failed:]) < tail
    if rate > Fraction(high) + Fraction(1, 10**6):
        assert sum(share[: failed + 1]) < tail
    if low + 1e-6 < rate < high - 1e-6:
        assert min(sum(share[failed:]), sum(share[: failed + 1])) > tail


@pytest.mark.parametrize("counts", [(-1, 3, 0), (4, 3, 0), (0, 0, 0), (0, 3, -1)])
def test_counts_that_cannot_be_are_refused(counts: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="expected 0 <= failed"):
        rate_bounds(counts[0], counts[1], unknown=counts[2])
