"""The scale of time and the words for it, as the page's own script computes them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, cast

import pytest

from tests.page.browser import made
from tests.page.browser.conftest import Open

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

SPANS = [(0, 1), (0, 3), (-7, 12), (0, 999), (-1_500, 40_000), (0, 26_894_320), (0, 7_200_000_000)]


@pytest.fixture
def tab(open_page: Open) -> Tab:
    return open_page(made.page(scenarios=1, repeats=1))


def test_ticks_are_round_within_and_told_apart(tab: Tab) -> None:
    for lo, hi in SPANS:
        ticks = cast(list[int], tab.evaluate("([lo, hi]) => dw.scale.ticks(lo, hi, 8)", [lo, hi]))
        assert 1 <= len(ticks) <= 8, (lo, hi)
        assert all(lo <= tick <= hi and tick == int(tick) for tick in ticks)
        steps = {after - before for before, after in pairwise(ticks)}
        assert len(steps) <= 1, "evenly spaced"
        step = steps.pop() if steps else hi - lo
        labels = [
            tab.evaluate("([at, step]) => dw.scale.label(at, step)", [t, step]) for t in ticks
        ]
        assert len(set(labels)) == len(labels), labels


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (None, "not known"),
        ([0, 0], "0 ms"),
        ([1_060_000, 1_060_001], "1.06 s"),
        ([46_430, 46_431], "46.4 ms"),
        ([46_400, 46_900], "46.4–46.9 ms"),
        ([500, 501], "500–501 µs"),
        ([-3_900, 46_400], "\u22123.9 to 46.4 ms"),
    ],
)
def test_durations_are_as_precise_as_they_are_known(
    at: list[int] | None, said: str, tab: Tab
) -> None:
    assert tab.evaluate("(at) => dw.say.duration(at)", at) == said


def test_the_axis_of_a_plot_holds_all_that_is_drawn(tab: Tab) -> None:
    measures = [
        {"values": [[10, 20], None], "interval": None, "baseline": [[-5, 0]]},
        {"values": [[15, 400]], "interval": [1, 900], "baseline": None},
    ]
    lo, hi = tab.evaluate("(measures) => dw.strips.domain(measures)", measures)
    assert lo < -5
    assert hi > 900
    nothing = [{"values": [None], "interval": None, "baseline": None}]
    assert tab.evaluate("(measures) => dw.strips.domain(measures)", nothing) is None


def test_what_is_short_covers_a_column_of_a_small_picture(tab: Tab) -> None:
    columns = "([at, span]) => dw.multiples.columns(at, span)"
    span = [0, 180_000_000]
    assert tab.evaluate(columns, [[5_000_000, 5_000_010], span]) == [5, 5]
    assert tab.evaluate(columns, [[0, 2_000_000], span]) == [0, 1]
    assert tab.evaluate(columns, [[-9_000_000, 180_000_000], span]) == [0, 179]


def test_a_small_picture_shows_how_many_failed(tab: Tab) -> None:
    """Of each second: how many were served, and how many were not."""
    heights = tab.evaluate(
        """() => {
          const attempts = {
            lane: "new", name: "new", results: [["answered", "good"], ["refused", "bad"]],
            runs: [[0, 60e6, 1, 60], [60e6, 120e6, 0, 60], [60e6, 120e6, 1, 120]],
          };
          const tried = dw.multiples.tries(attempts, [0, 180e6]);
          return [30, 90, 150].map((at) => ["good", "bad"].map((tone) => tried.get(tone)[at]));
        }"""
    )
    assert heights == [[0, 1], [1, 2], [0, 0]]
