"""A comparison as plain text: the verdict first, then a line for each figure that matters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_drainwatch.core.interval import NS_PER_MS, Bounds
from pytest_drainwatch.core.repeats.compared import (
    Comparison,
    FigureFound,
    ScenarioFound,
    ShiftFound,
    Side,
    Verdict,
)
from pytest_drainwatch.core.repeats.judged import LONGER_IS_WORSE, Unit
from pytest_drainwatch.core.repeats.metrics import Tally
from pytest_drainwatch.render.text import NOT_MEASURED, duration, table

COLUMNS = ("VERDICT", "FIGURE", "N", "BASELINE", "RUN", "SHIFT", "WHICH IS REALLY WITHIN")
NOT_JUDGED = "(not judged)"
WORSE = frozenset([*Tally, *LONGER_IS_WORSE])  # what would be judged
MOST_NOTES = 3  # of a scenario; the rest is in the JSON


def show(found: Comparison) -> str:
    """All of it for a terminal; a note that holds for all scenarios stands at the end."""
    notes = [scenario.notes for scenario in found.scenarios]
    common = [note for note in notes[0] if all(note in own for own in notes)] if notes else []
    lines = [
        f"{found.verdict.upper()}: {found.run} against the baseline {found.baseline}",
        *(line for scenario in found.scenarios for line in _scenario(scenario, common)),
        "",
        *(f"not compared: {why}" for why in found.left_out.values()),
        *_apart("baseline", found.only_in_baseline),
        *_apart("run", found.only_in_run),
        f"judged at {found.level:g}, two-sided, corrected for {_questions(found.questions)}; "
        f"durations count from {found.least_effect_ns / NS_PER_MS:g} ms on",
        *(f"note: {note}" for note in common),
        *_next(found),
        "",
    ]
    return "\n".join(lines)


def _scenario(scenario: ScenarioFound, said_once: Sequence[str]) -> Iterator[str]:
    yield ""
    here, there = scenario.repeats
    yield f"{scenario.id}: {scenario.verdict} ({here} repeats in the baseline, {there} in the run)"
    yield from (f"  asked: {each}" for each in scenario.asked)
    yield from (f"  compared across: {each}" for each in scenario.across)
    figures = sorted(scenario.figures, key=_rank)
    rows = [_row(figure) for figure in figures if figure.verdict or _moved(figure)]
    if rows:
        yield from table([COLUMNS, *rows], right=(2, 3, 4, 5))
    else:
        yield "  nothing in it was measured"
    yield from _reasons(figures)
    if missed := [_name(name) for name in scenario.not_measured if name in WORSE]:
        yield f"  neither side measured: {', '.join(missed)}"
    notes = [note for note in scenario.notes if note not in said_once]
    yield from (f"  note: {note}" for note in notes[:MOST_NOTES])
    if (more := len(notes) - MOST_NOTES) > 0:
        yield f"  and {more} further note{'s' if more > 1 else ''}: see --json"


def _rank(figure: FigureFound) -> int:
    order = list(Verdict)
    return len(order) if figure.verdict is None else order.index(figure.verdict)


def _moved(figure: FigureFound) -> bool:
    """Whether one that is not judged differs, as far as one can tell."""
    at = figure.shift
    return at is not None and not at.within[0] <= 0 <= at.within[1]


def _row(figure: FigureFound) -> tuple[str, ...]:
    return (
        figure.verdict or NOT_JUDGED,
        _name(figure.name),
        f"{_count(figure.baseline)} : {_count(figure.run)}",
        _value(figure.baseline.median, figure.unit),
        _value(figure.run.median, figure.unit),
        _signed(figure.shift.median, figure.unit) if figure.shift else "-",
        _within(figure.shift, figure.unit),
    )


def _name(name: str) -> str:
    return name.removesuffix("_ms")


def _count(side: Side) -> str:
    every = len(side.values)
    return f"{every - side.not_measured}/{every}" if side.not_measured else str(every)


def _value(at: Bounds | None, unit: Unit) -> str:
    if at is None:
        return NOT_MEASURED
    if unit is Unit.NS:
        return duration(at)
    return str(at[0]) if at[0] == at[1] else f"{at[0]}–{at[1]}"


def _signed(at: Bounds, unit: Unit) -> str:
    """A difference: one number where its bounds look the same, else both."""
    lo, hi = (_one(value, unit) for value in at)
    if lo == hi:
        return lo + (" ms" if unit is Unit.NS else "")
    return f"{lo} to {hi}" + (" ms" if unit is Unit.NS else "")


def _one(value: int, unit: Unit) -> str:
    return f"{round(value / NS_PER_MS) if unit is Unit.NS else value:+,}"


def _within(found: ShiftFound | None, unit: Unit) -> str:
    if found is None:
        return NOT_MEASURED
    if not found.coverage:
        return "so few repeats say nothing"
    return f"{_signed(found.within, unit)} ({found.coverage:.1%})"


def _reasons(figures: Sequence[FigureFound]) -> Iterator[str]:
    """Why something could not be decided: once for all figures of which it holds."""
    reasons: dict[str, list[FigureFound]] = {}
    for figure in figures:
        if figure.verdict is Verdict.INSUFFICIENT_EVIDENCE and figure.why:
            reasons.setdefault(figure.why, []).append(figure)
    judged = sum(figure.verdict is not None for figure in figures)
    for why, of in reasons.items():
        all_of_them = len(of) == judged > 1
        names = "all" if all_of_them else ", ".join(_name(figure.name) for figure in of)
        yield f"  {names}: {why}{_enough(of)}"


def _enough(figures: Sequence[FigureFound]) -> str:
    needed = [figure.needed for figure in figures if figure.needed]
    if not needed:
        return ""
    of_run, of_each = max(n.of_run for n in needed), max(n.of_each for n in needed)
    return f"; at least {of_run} repeats of the run could decide, or {of_each} of each"


def _apart(side: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"only in the {side}, so not compared: {', '.join(names)}"


def _questions(count: int) -> str:
    return f"{count} question{'' if count == 1 else 's'}"


def _next(found: Comparison) -> Iterator[str]:
    if found.verdict is Verdict.REGRESSION:
        yield f"next: drainwatch aggregate {found.run}"
        return
    needed = [
        figure.needed
        for scenario in found.scenarios
        if scenario.verdict is Verdict.INSUFFICIENT_EVIDENCE
        for figure in scenario.figures
        if figure.needed
    ]
    if needed:
        run, each = max(n.of_run for n in needed), max(n.of_each for n in needed)
        yield f"next: measure the run with --dw-repeat {run}, or both with --dw-repeat {each}"
