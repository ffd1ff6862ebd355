"""Instants and durations in sentences: never more than is known, no minus before a duration."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Bounds
from pytest_drainwatch.render.page import prose

INSTANTS = st.integers(-30 * NS_PER_S, 90 * NS_PER_S)
BOUNDS = st.tuples(INSTANTS, INSTANTS).map(lambda pair: (min(pair), max(pair)))
_UNITS = {"ms": NS_PER_MS, "s": NS_PER_S}


def ms(lo: float, hi: float) -> Bounds:
    return round(lo * NS_PER_MS), round(hi * NS_PER_MS)


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        (ms(-0.1, 35), "within the first 35 ms"),
        (ms(-800, 35), "between -800 ms and +35 ms"),
        (ms(-5_000, -3_000), "between -5.0 s and -3.0 s"),
        (ms(12_700, 22_600), "between +12.7 s and +22.6 s"),
        (ms(44.1, 45.2), "at about +45 ms"),
    ],
)
def test_an_instant_in_a_sentence(bounds: Bounds, text: str) -> None:
    assert prose.at(bounds) == text


@given(BOUNDS)
def test_within_the_first_is_said_of_nothing_that_may_have_been_before(bounds: Bounds) -> None:
    text = prose.at(bounds) + prose.since(bounds)
    if "the first" in text:
        assert bounds[0] >= -5 * NS_PER_MS
        assert bounds[1] > 0
    assert "first -" not in text


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        (ms(-290, 1_725), "up to 1.73 s"),
        (ms(0, 34.2), "up to 35 ms"),
        (ms(2_150, 3_130), "2.15–3.13 s"),
        (ms(1_060, 1_060), "1.06 s"),
    ],
)
def test_a_duration_in_a_sentence(bounds: Bounds, text: str) -> None:
    assert prose.lasting(bounds) == text


@given(BOUNDS.filter(lambda bounds: bounds[1] >= 0))
def test_a_duration_has_no_minus_and_holds_its_upper_bound(bounds: Bounds) -> None:
    text = prose.lasting(bounds)
    assert "-" not in text
    number, unit = re.findall(r"([\d.]+) (ms|s)$", text)[0]
    last_digit = NS_PER_S // 100 if unit == "s" else NS_PER_MS
    # One number stands for bounds that are closer than its last digit.
    assert float(number) * _UNITS[unit] >= bounds[1] - last_digit / 2
    if text.startswith("up to"):
        assert float(number) * _UNITS[unit] >= bounds[1]


@given(st.integers(0, 90 * NS_PER_S))
def test_at_most_is_never_less(ns: int) -> None:
    number, unit = prose.most(ns).split(" ")
    assert ns <= round(float(number) * _UNITS[unit]) < ns + NS_PER_S // 100
