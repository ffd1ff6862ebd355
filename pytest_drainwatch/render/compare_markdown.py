"""A comparison as Markdown, for a pull request's job summary: as :mod:`.compare` has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.repeats.compared import Comparison, ScenarioFound
from pytest_drainwatch.render.compare import COLUMNS, next_step, questions, reasons, row, shown, why
from pytest_drainwatch.render.markdown import cut, table, text


def show(found: Comparison) -> str:
    """The whole, within the limit of a job summary."""
    return cut("".join(line + "\n" for line in _lines(found)), "drainwatch compare")


def _lines(found: Comparison) -> Iterator[str]:
    yield f"## Connections when a pod terminated: {text(found.verdict)}"
    yield ""
    yield f"Run {text(found.run)} against the baseline {text(found.baseline)}."
    yield ""
    if found.left_out:
        yield from _list("Not compared", found.left_out.values())
    if found.together:
        yield f"### Lost, of all {len(found.scenarios)} scenarios together"
        yield ""
        yield from table(
            ("verdict", "figure", "why"),
            ((each.verdict, _words(each.name), why(each)) for each in found.together),
        )
    yield "### Scenarios"
    yield ""
    yield from table(
        ("scenario", "verdict", "repeats", "what differs"), map(_scenario, found.scenarios)
    )
    told = [(one.id, said) for one in found.scenarios for said in (*reasons(one), *one.notes)]
    said_of: dict[str, list[str]] = {}
    for name, said in told:
        said_of.setdefault(said, []).append(name)
    if said_of:
        yield from _list(
            "Reasons and notes", (f"{', '.join(of)}: {s}" for s, of in said_of.items())
        )
    for side, names in (("baseline", found.only_in_baseline), ("run", found.only_in_run)):
        if names:
            yield f"Only in the {side}, so not compared: {text(', '.join(names))}."
            yield ""
    yield "<details><summary>Figures</summary>"
    yield ""
    yield from table(
        ("scenario", *(column.lower() for column in COLUMNS)),
        ((one.id, *row(figure)) for one in found.scenarios for figure in shown(one)),
    )
    yield (
        f"Judged at {found.level:g}, two-sided, {text(questions(found))}; durations count from "
        f"{found.least_effect_ns / NS_PER_MS:g} ms on."
    )
    yield ""
    yield "</details>"
    yield ""
    yield from (text(line) for line in next_step(found))


def _scenario(found: ScenarioFound) -> tuple[str, ...]:
    here, there = found.repeats
    differs = "; ".join(map(str, (*found.asked, *found.across))) or "-"
    return (found.id, found.verdict, f"{here} : {there}", differs)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _list(title: str, said: Iterable[str]) -> Iterator[str]:
    yield f"### {title}"
    yield ""
    yield from (f"- {text(each)}" for each in said)
    yield ""
