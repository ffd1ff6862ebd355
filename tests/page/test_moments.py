"""Instants: rounded outward as data, and as text with the precision they have."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.render.page.moments import at, moment

NS = st.integers(-20 * NS_PER_S, 100 * NS_PER_S)
BOUNDS = st.tuples(NS, st.integers(0, 40 * NS_PER_S)).map(lambda pair: (pair[0], sum(pair)))
UNITS = {"s": NS_PER_S, "ms": NS_PER_MS}


@given(BOUNDS)
def test_microseconds_hold_what_nanoseconds_say(bounds: tuple[int, int]) -> None:
    lo, hi = at(bounds)
    assert lo * 1000 <= bounds[0]
    assert bounds[1] <= hi * 1000
    assert bounds[0] - lo * 1000 < 1000
    assert hi * 1000 - bounds[1] < 1000


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ((0, 0), "+0.0 ms"),
        ((46_430_296, 46_430_296), "+46.4 ms"),
        ((25_047_792_517, 25_048_334_063), "+25.048 s"),
        ((2_352_431_757, 2_393_194_042), "+2.352–2.394 s"),
        ((0, 42_549_483), "+0–43 ms"),
        ((-9_434_762, 265_244_648), "-10 to +266 ms"),
        ((4_200_000_000, 8_700_000_000), "+4.2–8.7 s"),
        ((-27_568_282, -27_568_282), "-27.6 ms"),
    ],
)
def test_an_instant_has_the_digits_that_are_known(bounds: tuple[int, int], text: str) -> None:
    assert moment(bounds) == text


@given(BOUNDS)
def test_what_is_shown_holds_what_is_known(bounds: tuple[int, int]) -> None:
    text = moment(bounds)
    unit = UNITS[text.rpartition(" ")[2]]
    numbers = [float(number) * unit for number in re.findall(r"-?\d+\.?\d*", text)]
    digits = len((re.findall(r"\.(\d+)", text) or [""])[0])
    # A single number stands for an interval that is narrower than its last digit.
    slack = unit / 10**digits if len(numbers) == 1 else 1
    assert numbers[0] - slack <= bounds[0]
    assert bounds[1] <= numbers[-1] + slack
