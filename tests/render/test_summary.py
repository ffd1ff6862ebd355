"""The end of a run: what was repeated, what disagrees, what is missing; else nothing."""

from __future__ import annotations

from dataclasses import replace

from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.repeats.aggregate import Repeat, pool
from pytest_drainwatch.core.repeats.metrics import Metric, Reading, Tally
from pytest_drainwatch.core.repeats.summary import (
    Planned,
    Refused,
    State,
    Summary,
    TrialEntry,
    summarised,
)
from pytest_drainwatch.render.summary import MOST, WIDTH, lines


def repeat(number: int, ms: int | None = 5, failed: tuple[int, int] | None = (0, 0)) -> Repeat:
    reading = None if ms is None else Reading.of(Interval(0, ms * NS_PER_MS))
    return Repeat(
        label=f"r{number:02d}",
        conditions={},
        metrics={Metric.SIGTERM: reading},
        fates={},
        tallies={Tally.NEW_CONNECTIONS_FAILED: None if failed is None else Interval(*failed)},
    )


def entry(number: int, state: State = State.MEASURED, why: str | None = None) -> TrialEntry:
    return TrialEntry(
        scenario="drain",
        repeat=number,
        attempt=1,
        test=None,
        folder=f"drain/r{number:02d}",
        state=state,
        why=why,
    )


def summary(*repeats: Repeat, **more: object) -> Summary:
    return summarised(
        "run",
        trials=[entry(number) for number, _ in enumerate(repeats)],
        scenarios=[pool("drain", repeats)] if repeats else [],
        **more,  # type: ignore[arg-type]
    )


def cells(found: Summary) -> str:
    return next(line for line in lines(found) if line.lstrip().startswith("drain "))


def test_one_repeat_of_each_needs_no_table() -> None:
    assert lines(summary(repeat(0))) == []


def test_a_table_of_medians_with_their_spread() -> None:
    row = cells(summary(repeat(0, 5, (3, 3)), repeat(1, 7, (4, 6)), repeat(2, 9, (8, 8))))
    assert row.split() == ["drain", "3", "-", "4–6", "(3–8)", "7", "(5", "to", "9)", "-", "-"]


def test_http_requests_have_a_column_where_any_were_made() -> None:
    asked = [
        replace(repeat(n), tallies={Tally.HTTP_REQUESTS_FAILED: Interval(n, n)}) for n in (2, 4, 9)
    ]
    told = lines(summary(*asked))
    assert "HTTP REQUESTS FAILED" in told[1]
    assert cells(summary(*asked)).split()[:6] == ["drain", "3", "-", "-", "4", "(2–9)"]
    assert "HTTP" not in lines(summary(repeat(0), repeat(1)))[1]


def test_what_is_always_the_same_has_no_spread() -> None:
    row = cells(summary(repeat(0), repeat(1)))
    assert row.split() == ["drain", "2", "-", "0", "5", "-", "-"]


def test_what_some_did_not_measure_is_said_to_be_of_the_others() -> None:
    row = cells(summary(repeat(0), repeat(1, None, None), repeat(2)))
    assert "0 in 2 of 3" in row
    assert "5 in 2 of 3" in row


def test_disagreements_refusals_and_what_is_missing_are_told() -> None:
    pair = [replace(repeat(0), fates={"tcp lost": 1}), replace(repeat(1), fates={})]
    told = lines(
        summary(
            *pair,
            refused=[Refused(id="x", reason="scenario x: they differ")],
            planned=[Planned(scenario="drain", repeat=9, test="a.py::t")],
        )
    )
    # r00 and r01 have no test of their own, so nothing stands for the one that was planned.
    assert "drain: tcp lost: 1, 0 flows" in told
    assert "not pooled: scenario x: they differ" in told
    assert "incomplete: 1 of 3 trials were not measured" in told
    assert told[-1] == "  drain r09 of a.py::t did not run: planned, and never begun"


def test_what_is_missing_is_told_without_repeats_too() -> None:
    found = summarised("run", trials=[entry(0, State.VOID, "why")])
    assert lines(found) == [
        "incomplete: 1 of 1 trials were not measured",
        "  drain/r00 is void: why",
    ]


def test_control_characters_of_other_peoples_files_do_not_reach_the_terminal() -> None:
    evil = "x\x1b[2J\u202e"
    pair = [replace(repeat(n), fates={evil: n}) for n in range(2)]
    told = summarised(
        "run",
        trials=[entry(0, State.VOID, evil)],
        scenarios=[pool(evil, pair)],
        refused=[Refused(id=evil, reason=evil)],
    )
    assert sum("x?[2J?" in line for line in lines(told)) == 4
    assert all(line.isprintable() for line in lines(told))


def test_thousands_of_missing_trials_are_a_few_lines() -> None:
    trials = [entry(number, State.VOID, "x" * 900) for number in range(5000)]
    told = lines(summarised("run", trials=trials))
    assert len(told) == 1 + MOST + 1
    assert told[-1] == "… and 4990 more, in summary.json"
    assert max(map(len, told)) == WIDTH
