"""Two runs, scenario by scenario: what became worse, what better, what cannot be said."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_drainwatch.core.repeats.aggregate import Repeat
from pytest_drainwatch.core.repeats.alike import (
    ComparisonError,
    names,
    refuse,
    refuse_simulated,
    unlike,
)
from pytest_drainwatch.core.repeats.compared import (
    COMPARE_SCHEMA,
    Comparison,
    FigureFound,
    ScenarioFound,
    TogetherFound,
    Verdict,
)
from pytest_drainwatch.core.repeats.evidence import Together, weigh
from pytest_drainwatch.core.repeats.judged import LEAST_EFFECT_NS, Figure, figures
from pytest_drainwatch.core.repeats.questions import LEVEL
from pytest_drainwatch.core.repeats.rank import MOST_VALUES

_DECIDED = frozenset({Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.NO_CHANGE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One side: the repeats of every scenario, what must be known about them, and the
    scenarios that have none, or such as cannot be taken together, with the reason.

    A trial that measured nothing is a repeat without figures, and not the first one.
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
    for side in (baseline, run):
        measured(side)
    both = [name for name in here if name in there]
    if not both:
        raise ComparisonError(
            f"no scenario in common: {baseline.name} has {_listed(baseline)}, {run.name} has "
            f"{_listed(run)}. Expected two runs of the same tests"
        )
    _refuse_too_many(baseline, run, both)
    _refuse_unknown(across, [*(r for n in both for r in (*here[n], *there[n]))])
    differing = {
        name: unlike(here[name][0].conditions, there[name][0].conditions, across) for name in both
    }
    refuse({name: found.refused for name, found in differing.items()})
    every = {name: figures(here[name], there[name], differing[name].fields) for name in both}
    asked = {name: [figure for figure in every[name] if figure.measured] for name in both}
    flat = [(name, figure) for name in both for figure in asked[name]]
    evidence = weigh([figure for _, figure in flat])
    told = iter(evidence.figures)
    found = {name: [next(told) for _ in asked[name]] for name in both}
    counted = {name: {f.name for f in asked[name] if f.together is not None} for name in both}
    scenarios = tuple(
        ScenarioFound(
            id=name,
            verdict=_over(found[name], counted[name]),
            repeats=(len(here[name]), len(there[name])),
            asked=differing[name].asked,
            across=differing[name].across,
            figures=tuple(found[name]),
            not_measured=tuple(figure.name for figure in every[name] if not figure.measured),
            notes=tuple(_notes(name, baseline, run, every[name])),
        )
        for name in both
    )
    together = tuple(_together(each, [name for name, _ in flat]) for each in evidence.together)
    left_out = _left_out(baseline, run)
    return Comparison(
        compare_schema=COMPARE_SCHEMA,
        baseline=baseline.name,
        run=run.name,
        verdict=_overall(scenarios, counted, together, left_out),
        level=float(LEVEL),
        least_effect_ns=LEAST_EFFECT_NS,
        questions=evidence.questions,
        questions_together=evidence.questions_together,
        together=together,
        scenarios=scenarios,
        only_in_baseline=tuple(sorted(here.keys() - there.keys() - left_out.keys())),
        only_in_run=tuple(sorted(there.keys() - here.keys() - left_out.keys())),
        left_out=left_out,
    )


def measured(side: Run) -> None:
    """Raise :class:`~pytest_drainwatch.core.repeats.alike.ComparisonError` if anything of it was
    simulated.
    """
    refuse_simulated(
        side.name,
        {name: [each.conditions for each in found] for name, found in side.scenarios.items()},
    )


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The one that stands for several: the first, in the order of their declaration."""
    found = set(verdicts)
    return next((v for v in Verdict if v in found), Verdict.INSUFFICIENT_EVIDENCE)


def _left_out(*sides: Run) -> dict[str, str]:
    """Scenarios of which a side cannot say anything, and why."""
    found: dict[str, str] = {}
    for side in sides:
        for name, why in side.refused.items():
            found[name] = f"{found[name]}; {why}" if name in found else why
    return found


def _together(found: Together, scenarios: Sequence[str]) -> TogetherFound:
    """With the names of scenarios: ``scenarios`` has that of each figure."""
    return TogetherFound(
        name=str(found.name),
        verdict=found.verdict,
        why=found.why,
        scenarios=tuple(scenarios[at] for at in found.members),
        moved=tuple(scenarios[at] for at in found.moved),
        p=float(found.p),
        p_corrected=float(found.corrected),
        needed=found.needed,
    )


def _overall(
    scenarios: Iterable[ScenarioFound],
    counted: Mapping[str, Collection[str]],
    together: Iterable[TogetherFound],
    left_out: Collection[str],
) -> Verdict:
    """What was left out was not compared, and that is no pass.

    Whether enough was measured is said of lost connections by all scenarios together; of a
    scenario in which none were counted it says so itself.
    """
    said = [each.verdict for each in together]
    for scenario in scenarios:
        if scenario.verdict is not Verdict.INSUFFICIENT_EVIDENCE or not counted[scenario.id]:
            said.append(scenario.verdict)
        said += _claimed(scenario.figures)
    return worst([*said, *(Verdict.INSUFFICIENT_EVIDENCE for _ in left_out)])


def _over(found: Sequence[FigureFound], counted: Collection[str]) -> Verdict:
    """A scenario's verdict. Lost connections lead: durations that nobody could judge do not
    hide that none was lost, but where connections were not counted durations are all there is.
    """
    judged = [each for each in found if each.verdict is not None]
    leading = [each for each in judged if each.name in counted] or judged
    return worst([*(e.verdict for e in leading if e.verdict), *_claimed(judged)])


def _claimed(found: Iterable[FigureFound]) -> list[Verdict]:
    return [e.verdict for e in found if e.verdict and e.verdict in _DECIDED]


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


def _refuse_too_many(baseline: Run, run: Run, both: Iterable[str]) -> None:
    for name in both:
        count = len(baseline.scenarios[name]), len(run.scenarios[name])
        if sum(count) > MOST_VALUES:
            raise ComparisonError(
                f"scenario {name}: {count[0]} repeats against {count[1]}; expected at most "
                f"{MOST_VALUES} of both together, for p is computed exactly. Compare a part of them"
            )


def _refuse_unknown(across: Collection[str], repeats: Sequence[Repeat]) -> None:
    known = {field for repeat in repeats for field in repeat.conditions}
    if unknown := sorted(set(across).difference(*map(names, known))):
        raise ComparisonError(
            f"--across {', '.join(unknown)}: no report has such a condition; expected one of: "
            f"{', '.join(sorted(known))}"
        )


def _listed(side: Run) -> str:
    return ", ".join(sorted(side.scenarios)) or "none"
