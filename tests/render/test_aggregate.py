"""Aggregates as text: a bracket is shown where it says more than the number."""

from __future__ import annotations

from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.repeats.aggregate import Repeat, pool
from pytest_drainwatch.core.repeats.document import AGGREGATE_SCHEMA, Aggregate
from pytest_drainwatch.core.repeats.metrics import Metric, Reading
from pytest_drainwatch.render.aggregate import show


def shown(*readings: Reading | None, notes: tuple[str, ...] = ()) -> str:
    repeats = [
        Repeat(label=f"r{n:02d}", conditions={}, metrics={Metric.SIGTERM: reading}, fates={})
        for n, reading in enumerate(readings)
    ]
    scenarios = (pool("one", repeats, notes), pool("two", repeats, (*notes[:1],)))
    return show(Aggregate(aggregate_schema=AGGREGATE_SCHEMA, scenarios=scenarios))


def row(text: str) -> str:
    return next(line for line in text.splitlines() if "trigger_to_sigterm" in line)


def within(lo: int, hi: int) -> Reading:
    return Reading.of(Interval(lo, hi))


def test_a_narrow_bracket_leaves_the_number_alone() -> None:
    assert row(shown(within(32_400_000, 33_300_000))).endswith("33      33   33  that, within 1 ms")


def test_a_wide_bracket_is_rounded_outward() -> None:
    text = row(shown(within(-34_300_000, -4_700_000)))
    assert text.endswith("-4      -4   -4  between -35 and -4")


def test_no_bounds_are_not_taken_for_exact_ones() -> None:
    assert row(shown(Reading(shown_ns=33 * NS_PER_MS))).endswith("33      33   33")


def test_what_was_not_measured_says_so() -> None:
    assert row(shown(None)).endswith("0/1    -       -    -  not measured")


def test_how_sure_the_median_is_depends_on_the_repeats() -> None:
    five = [within(n, n + 1) for n in range(5)]
    assert "the last column holds the median of all such trials in 93.75%" in shown(*five)
    nine = [within(n * NS_PER_MS, n * NS_PER_MS + 1) for n in range(9)]
    assert row(shown(*nine)).endswith("  1 to 8"), "the second from either end"
    assert "96.09%" in shown(*nine)
    assert "one repeat says nothing about the spread" in shown(five[0])
    assert "holds the median" not in shown(*five, None)


def test_what_holds_the_median_is_named_and_is_more_than_the_numbers_shown() -> None:
    """Five are shown at their upper bounds, and the median may lie below the least of them."""
    wide = [within((ms - 160) * NS_PER_MS, ms * NS_PER_MS) for ms in (139, 150, 200, 250, 296)]
    text = shown(*wide)
    assert row(text).split()[2:5] == ["139", "200", "296"]
    assert row(text).endswith("  -21 to 296")
    assert "min to max" not in text


def test_control_characters_of_other_peoples_files_do_not_reach_the_terminal() -> None:
    text = shown(within(0, 1), notes=("x\x1b[2J", "y\x9b"))
    assert "x?[2J" in text
    assert all(letter.isprintable() for letter in text.replace("\n", ""))


def test_a_note_that_holds_for_all_stands_once() -> None:
    text = shown(within(0, 1), notes=("for both", "for one"))
    assert text.count("for both") == 1
    assert text.rstrip().endswith("note: for both")
    assert text.count("  note: for one") == 1


def test_what_repeats_differ_in_is_told_for_that_scenario_only() -> None:
    def repeats(*fates: dict[str, int]) -> list[Repeat]:
        return [
            Repeat(label=f"r{n:02d}", conditions={}, metrics={Metric.SIGTERM: None}, fates=each)
            for n, each in enumerate(fates)
        ]

    drained, reset = {"target tcp drained by fin": 2}, {"target tcp severed by rst": 2}
    scenarios = (pool("one", repeats(drained, reset)), pool("two", repeats(drained, drained)))
    text = show(Aggregate(aggregate_schema=AGGREGATE_SCHEMA, scenarios=scenarios))
    one, two = text.split("SCENARIO two")
    assert "  repeats differ: target tcp drained by fin: 2, 0 flows" in one
    assert "  repeats differ: target tcp severed by rst: 0, 2 flows" in one
    assert "repeats differ" not in two
