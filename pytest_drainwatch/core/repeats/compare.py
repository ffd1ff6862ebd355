"""Two runs, scenario by scenario: what became worse, what better, what cannot be said."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_drainwatch.core.repeats.aggregate import Repeat
from pytest_drainwatch.core.repeats.alike import (
    ComparisonError,
    names,
    refuse,
    unlike,
)
from pytest_drainwatch.core.repeats.compared import (
    COMPARE_SCHEMA,
    Comparison,
    FigureFound,
    ScenarioFound,
    Verdict,
)
from pytest_drainwatch.core.repeats.evidence import LEVEL, weigh
from pytest_drainwatch.core.repeats.judged import LEAST_EFFECT_NS, Figure, Unit, figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One side: the repeats of every scenario, what must be known about them, and the
    scenarios whose repeats cannot be taken together, with the reason.
    """

    name: str
    scenarios: Mapping[str, Sequence[Repeat]]
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


def compare(baseline: Run, run: Run, *, across: Collection[str] = ()) -> Comparison:
    """Compare two runs.

    ``across`` are conditions that may differ nevertheless. Raises
    :class:`~pytest_drainwatch.core.repeats.alike.ComparisonError` if others do, if nobody has
    one of that name, or if there is no scenario in common.
    """
    here, there = baseline.scenarios, run.scenarios
    both = [name for name in here if name in there]
    if not both:
        raise ComparisonError(
            f"no scenario in common: {baseline.name} has {_listed(baseline)}, {run.name} has "
            f"{_listed(run)}. Expected two runs of the same tests"
        )
    _refuse_unknown(across, [*(r for n in both for r in (*here[n], *there[n]))])
    differing = {
        name: unlike(here[name][0].conditions, there[name][0].conditions, across) for name in both
    }
    refuse({name: found.refused for name, found in differing.items()})
    every = {name: figures(here[name], there[name], differing[name].fields) for name in both}
    asked = {name: [figure for figure in every[name] if figure.measured] for name in both}
    evidence = weigh([figure for name in both for figure in asked[name]])
    told = iter(evidence.figures)
    found = {name: [next(told) for _ in asked[name]] for name in both}
    scenarios = tuple(
        ScenarioFound(
            id=name,
            verdict=_over(found[name]),
            repeats=(len(here[name]), len(there[name])),
            asked=differing[name].asked,
            across=differing[name].across,
            figures=tuple(found[name]),
            not_measured=tuple(figure.name for figure in every[name] if not figure.measured),
            notes=tuple(_notes(name, baseline, run, every[name])),
        )
        for name in both
    )
    left_out = {name: why for each in (baseline, run) for name, why in each.refused.items()}
    return Comparison(
        compare_schema=COMPARE_SCHEMA,
        baseline=baseline.name,
        run=run.name,
        verdict=_overall(scenarios, left_out),
        level=float(LEVEL),
        least_effect_ns=LEAST_EFFECT_NS,
        questions=evidence.questions,
        scenarios=scenarios,
        only_in_baseline=tuple(sorted(here.keys() - there.keys() - left_out.keys())),
        only_in_run=tuple(sorted(there.keys() - here.keys() - left_out.keys())),
        left_out=left_out,
    )


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The one that stands for several: the first, in the order of their declaration."""
    found = set(verdicts)
    return next((v for v in Verdict if v in found), Verdict.INSUFFICIENT_EVIDENCE)


def _overall(scenarios: Iterable[ScenarioFound], left_out: Collection[str]) -> Verdict:
    """What was left out was not compared, and that is no pass."""
    verdicts = [scenario.verdict for scenario in scenarios]
    return worst([*verdicts, *(Verdict.INSUFFICIENT_EVIDENCE for _ in left_out)])


def _over(found: Sequence[FigureFound]) -> Verdict:
    """A scenario's verdict. Lost connections lead: durations that nobody could judge do not
    hide that none was lost, but where connections were not counted durations are all there is.
    """
    judged = [each for each in found if each.verdict is not None]
    leading = [each for each in judged if each.unit is Unit.COUNT] or judged
    claimed = [each.verdict for each in judged if each.verdict is not Verdict.INSUFFICIENT_EVIDENCE]
    return worst([*(e.verdict for e in leading if e.verdict), *(v for v in claimed if v)])


def _notes(name: str, baseline: Run, run: Run, asked: Sequence[Figure]) -> Iterable[str]:
    if unbounded := [figure.name for figure in asked if not figure.bounded]:
        yield (
            f"{len(unbounded)} figures come without bounds from their source: they count as known "
            "to their last digit, 1 ms, which is the best that can be"
        )
    here, there = baseline.notes.get(name, ()), run.notes.get(name, ())
    yield from (f"baseline: {note}" for note in here if note not in there)
    yield from (f"run: {note}" for note in there if note not in here)
    yield from (note for note in here if note in there)


def _refuse_unknown(across: Collection[str], repeats: Sequence[Repeat]) -> None:
    known = {field for repeat in repeats for field in repeat.conditions}
    if unknown := sorted(set(across).difference(*map(names, known))):
        raise ComparisonError(
            f"--across {', '.join(unknown)}: no report has such a condition; expected one of: "
            f"{', '.join(sorted(known))}"
        )


def _listed(side: Run) -> str:
    return ", ".join(sorted(side.scenarios)) or "none"
