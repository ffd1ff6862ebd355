"""A comparison as plain text: the verdict first, then a line for each figure that matters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_drainwatch.core.interval import NS_PER_MS, Bounds
from pytest_drainwatch.core.repeats.compared import (
    Comparison,
    FigureFound,
    Needed,
    ScenarioFound,
    ShiftFound,
    Side,
    TogetherFound,
    Verdict,
)
from pytest_drainwatch.core.repeats.judged import LONGER_IS_WORSE, Unit
from pytest_drainwatch.core.repeats.metrics import OwnMetric, Tally
from pytest_drainwatch.render.text import NOT_MEASURED, duration, plain, table

COLUMNS = ("VERDICT", "FIGURE", "N", "BASELINE", "RUN", "SHIFT", "WHICH IS REALLY WITHIN")
NOT_JUDGED = "(not judged)"
WORSE = frozenset([*Tally, OwnMetric.NEW_FAILED, *LONGER_IS_WORSE])  # what would be judged
BEYOND = 3  # so many times the repeats of each: nobody measures that of the run alone
MOST_NOTES = 3  # of a scenario; the rest is in the JSON


def show(found: Comparison) -> str:
    """All of it for a terminal; a note that holds for all scenarios stands at the end."""
    notes = [scenario.notes for scenario in found.scenarios]
    common = [note for note in notes[0] if all(note in own for own in notes)] if notes else []
    lines = [
        f"{found.verdict.upper()}: {found.run} against the baseline {found.baseline}",
        *_together(found),
        *(line for scenario in found.scenarios for line in _scenario(scenario, common)),
        "",
        *(f"not compared: {why}" for why in found.left_out.values()),
        *_apart("baseline", found.only_in_baseline),
        *_apart("run", found.only_in_run),
        f"judged at {found.level:g}, two-sided, {questions(found)}; "
        f"durations count from {found.least_effect_ns / NS_PER_MS:g} ms on",
        *(f"note: {note}" for note in common),
        *next_step(found),
    ]
    return "".join(plain(line) + "\n" for line in lines)


def _together(found: Comparison) -> Iterator[str]:
    """What all scenarios say together; of one alone its own lines say as much."""
    if len(found.scenarios) < 2 or not found.together:
        return
    yield ""
    yield f"connections lost, of all {len(found.scenarios)} scenarios together:"
    yield from table([(each.verdict, each.name, why(each)) for each in found.together])


def why(of: TogetherFound) -> str:
    """Why, or in which scenarios most of all, and how surely."""
    most = f", most of all in {', '.join(of.moved)}" if of.moved else ""
    if of.why is None:
        return f"p = {of.p_corrected:.2g}, corrected{most}"
    return of.why + most + _enough([of.needed] if of.needed else [])


def _scenario(scenario: ScenarioFound, said_once: Sequence[str]) -> Iterator[str]:
    yield ""
    here, there = scenario.repeats
    yield f"{scenario.id}: {scenario.verdict} ({here} repeats in the baseline, {there} in the run)"
    yield from (f"  asked: {each}" for each in scenario.asked)
    yield from (f"  compared across: {each}" for each in scenario.across)
    rows = [row(figure) for figure in shown(scenario)]
    if rows:
        yield from table([COLUMNS, *rows], right=(2, 3, 4, 5))
    else:
        yield "  nothing in it was measured"
    yield from (f"  {why}" for why in reasons(scenario))
    if missed := [_name(name) for name in scenario.not_measured if name in WORSE]:
        yield f"  neither side measured: {', '.join(missed)}"
    notes = [note for note in scenario.notes if note not in said_once]
    yield from (f"  note: {note}" for note in notes[:MOST_NOTES])
    if (more := len(notes) - MOST_NOTES) > 0:
        yield f"  and {more} further note{'s' if more > 1 else ''}: see --json"


def shown(scenario: ScenarioFound) -> list[FigureFound]:
    """The figures that matter, the worst first."""
    return sorted((f for f in scenario.figures if f.verdict or _moved(f)), key=_rank)


def _rank(figure: FigureFound) -> int:
    order = list(Verdict)
    return len(order) if figure.verdict is None else order.index(figure.verdict)


def _moved(figure: FigureFound) -> bool:
    """Whether one that is not judged differs, as far as one can tell."""
    at = figure.shift
    return at is not None and not at.within[0] <= 0 <= at.within[1]


def row(figure: FigureFound) -> tuple[str, ...]:
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


def reasons(scenario: ScenarioFound) -> Iterator[str]:
    """Why something could not be decided: once for all figures of which it holds."""
    found: dict[str, list[FigureFound]] = {}
    for figure in shown(scenario):
        if figure.verdict is Verdict.INSUFFICIENT_EVIDENCE and figure.why:
            found.setdefault(figure.why, []).append(figure)
    judged = sum(figure.verdict is not None for figure in scenario.figures)
    for why, of in found.items():
        all_of_them = len(of) == judged > 1
        names = "all" if all_of_them else ", ".join(_name(figure.name) for figure in of)
        yield f"{names}: {why}{_enough([f.needed for f in of if f.needed])}"


def _enough(needed: Sequence[Needed]) -> str:
    if not needed:
        return ""
    ways = _cheapest(needed, "{} of each", "{} repeats of the run beside this baseline")
    return f"; at least {' or '.join(ways)} could decide"


def _cheapest(needed: Sequence[Needed], both: str, run: str) -> list[str]:
    """How many repeats of what would do, what takes fewer trials first.

    The run alone is not worth a word if it takes thrice as many as of each.
    """
    of_run, of_each = max(n.of_run for n in needed), max(n.of_each for n in needed)
    if of_run > BEYOND * of_each:
        return [both.format(of_each)]
    ways = [run.format(of_run), both.format(of_each)]
    return ways if of_run <= 2 * of_each else ways[::-1]


def _apart(side: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"only in the {side}, so not compared: {', '.join(names)}"


def questions(found: Comparison) -> str:
    """For how many questions p is corrected."""
    count = f"{found.questions} question{'' if found.questions == 1 else 's'}"
    about = f" and {found.questions_together} about all scenarios" if found.together else ""
    still = sum(
        figure.verdict is not None and figure.p_smallest is not None and not _varies(figure)
        for scenario in found.scenarios
        for figure in scenario.figures
    )
    held = "; figures that never move are held to one more" if still else ""
    return f"corrected for {count}{about}{held}"


def _varies(figure: FigureFound) -> bool:
    """Whether any value surely differs from another by what counts."""
    known = [at for at in (*figure.baseline.values, *figure.run.values) if at is not None]
    return any(a[0] - b[1] > figure.least_effect for a in known for b in known)


def next_step(found: Comparison) -> Iterator[str]:
    """What to type now."""
    if found.verdict is Verdict.REGRESSION:
        yield f"next: drainwatch aggregate {found.run}"
        return
    if found.verdict is not Verdict.INSUFFICIENT_EVIDENCE:
        return
    counted = {name for each in found.together for name in each.scenarios}
    needed = [each.needed for each in found.together if each.needed] + [
        figure.needed
        for scenario in found.scenarios
        if scenario.verdict is Verdict.INSUFFICIENT_EVIDENCE and scenario.id not in counted
        for figure in scenario.figures
        if figure.needed
    ]
    if needed:
        ways = _cheapest(needed, "both with --dw-repeat {}", "the run with --dw-repeat {}")
        yield f"next: measure {', or '.join(ways)}"
    elif found.left_out or any(NOT_MEASURED in (each.why or "") for each in found.together):
        yield (
            "next: what was not measured, and why, is told by: drainwatch aggregate "
            f"{found.run} --markdown, and the same of {found.baseline}"
        )
