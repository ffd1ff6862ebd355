"""What the figures of two runs prove, all of them together: each one's verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from pytest_drainwatch.core.interval import Bounds, Interval
from pytest_drainwatch.core.repeats import together
from pytest_drainwatch.core.repeats.claim import Value, shift
from pytest_drainwatch.core.repeats.compared import FigureFound, Needed, ShiftFound, Side, Verdict
from pytest_drainwatch.core.repeats.judged import Figure
from pytest_drainwatch.core.repeats.metrics import Tally
from pytest_drainwatch.core.repeats.questions import LEVEL, TOGETHER, Asked, Levels, Questions, ask
from pytest_drainwatch.core.repeats.rank import repeats_of_b, repeats_of_both, smallest_p
from pytest_drainwatch.core.repeats.stats import bounded_statistics

DOUBT = "what is not known of it would decide"
SUSPECTED = "it seems to have moved, which so few repeats do not prove among so many questions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Connections lost, of all scenarios.

    ``members`` are the places of the figures that it is made of, ``moved`` of those of them
    that show it most, or seem to. ``corrected`` is to be held against LEVEL.
    """

    name: Tally
    verdict: Verdict
    why: str | None
    needed: Needed | None
    members: tuple[int, ...]
    moved: tuple[int, ...]
    p: Fraction
    corrected: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Every figure with its verdict, in the order given; and how many were questions."""

    figures: tuple[FigureFound, ...]
    together: tuple[Together, ...]
    questions: int
    questions_together: int


def weigh(figures: Sequence[Figure]) -> Evidence:
    """Judge all figures of a comparison."""
    asked = ask(figures)
    return Evidence(
        figures=tuple(
            _judged(figure, asked.single[at], asked.levels_alone(at))
            if at in asked.single
            else _shown(figure)
            for at, figure in enumerate(figures)
        ),
        together=tuple(_whole(name, figures, asked) for name in asked.members),
        questions=sum(each.counts for each in asked.single.values()),
        questions_together=sum(each.counts for each in asked.whole.values()),
    )


def _whole(name: Tally, figures: Sequence[Figure], questions: Questions) -> Together:
    asked, level = questions.whole[name], LEVEL * TOGETHER
    places = questions.members[name]
    members = [figures[at] for at in places]
    if len(places) == 1:
        return _of_one(name, figures[places[0]], places[0], questions)
    moved: list[int] = []
    needed = why = None
    few = max(members, key=lambda each: smallest_p(len(each.baseline), len(each.run)))
    if asked.decided:
        worse = together.up(members) < together.down(members)
        verdict = Verdict.REGRESSION if worse else Verdict.IMPROVEMENT
        way = together.up if worse else together.down
        moved = [at for at in places if 2 * way([figures[at]]) <= LEVEL]
    elif missing := sum(_missing(each) is not None for each in members):
        verdict = Verdict.INSUFFICIENT_EVIDENCE
        why = f"not measured in every repeat of {missing} of {len(members)} scenarios"
    elif too_few := _too_few(few, Levels(now=level, later=level)):
        verdict = Verdict.INSUFFICIENT_EVIDENCE
        why, needed = too_few
    elif together.two_sided_at_best(members) <= level or any(
        _doubtful(each, level) for each in members
    ):
        verdict, why = Verdict.INSUFFICIENT_EVIDENCE, DOUBT
    elif moved := [at for at in questions.suspected(name) if not questions.single[at].decided]:
        verdict, why = Verdict.INSUFFICIENT_EVIDENCE, SUSPECTED
        needed = _most(_needed(figures[at], questions.levels_alone(at)) for at in moved)
    else:
        verdict = Verdict.NO_CHANGE
    return Together(
        name=name,
        verdict=verdict,
        why=why,
        needed=needed,
        members=tuple(places),
        moved=tuple(moved),
        p=asked.p,
        corrected=asked.corrected,
    )


def _of_one(name: Tally, figure: Figure, at: int, questions: Questions) -> Together:
    """All of one scenario are that one."""
    asked = questions.single[at]
    verdict, why, needed = _verdict(figure, asked, questions.levels_alone(at))
    return Together(
        name=name,
        verdict=verdict,
        why=why,
        needed=needed,
        members=(at,),
        moved=(at,) if asked.decided else (),
        p=asked.p,
        corrected=asked.corrected,
    )


def _judged(figure: Figure, asked: Asked, levels: Levels) -> FigureFound:
    verdict, why, needed = _verdict(figure, asked, levels)
    return replace(
        _shown(figure),
        verdict=verdict,
        why=why,
        needed=needed,
        p=float(asked.p),
        p_corrected=float(asked.corrected),
        p_smallest=float(smallest_p(len(figure.baseline), len(figure.run))),
    )


def _verdict(
    figure: Figure, asked: Asked, levels: Levels
) -> tuple[Verdict, str | None, Needed | None]:
    if asked.decided:
        worse = together.up([figure]) < together.down([figure])
        return (Verdict.REGRESSION if worse else Verdict.IMPROVEMENT), None, None
    if missing := _missing(figure):
        return Verdict.INSUFFICIENT_EVIDENCE, missing, None
    if too_few := _too_few(figure, levels):
        return Verdict.INSUFFICIENT_EVIDENCE, *too_few
    if _doubtful(figure, levels.now):
        return Verdict.INSUFFICIENT_EVIDENCE, DOUBT, None
    return Verdict.NO_CHANGE, None, None


def _too_few(figure: Figure, levels: Levels) -> tuple[str, Needed] | None:
    """Why no claim was possible, had one side lain wholly beyond the other."""
    n_a, n_b = len(figure.baseline), len(figure.run)
    if (reached := smallest_p(n_a, n_b)) <= levels.now:
        return None
    why = f"{n_a} against {n_b} repeats reach p = {float(reached):.2g} at best: too few"
    return why, _needed(figure, levels)


def _needed(figure: Figure, levels: Levels) -> Needed:
    return Needed(
        of_run=repeats_of_b(len(figure.baseline), levels.later),
        of_each=repeats_of_both(levels.later),
    )


def _most(needed: Iterable[Needed]) -> Needed:
    found = list(needed)
    return Needed(of_run=max(n.of_run for n in found), of_each=max(n.of_each for n in found))


def _doubtful(figure: Figure, level: Fraction) -> bool:
    """Whether it would be claimed at ``level``, were the truth what suits the claim best."""
    return together.two_sided_at_best([figure]) <= level < together.two_sided([figure])


def _missing(figure: Figure) -> str | None:
    """Who did not measure it."""
    parts = []
    for name, values in (("baseline", figure.baseline), ("run", figure.run)):
        if none := values.count(None):
            parts.append(f"in {none} of {len(values)} repeats of the {name}")
    return f"not measured {' and '.join(parts)}" if parts else None


def _shown(figure: Figure) -> FigureFound:
    """What it shows, before anybody judges."""
    return FigureFound(
        name=figure.name,
        unit=figure.unit,
        baseline=_side(figure.baseline),
        run=_side(figure.run),
        shift=_shift(figure),
        least_effect=figure.least,
        why=figure.shown_only,
    )


def _side(values: Sequence[Value]) -> Side:
    known = [value for value in values if value is not None]
    return Side(
        values=tuple(None if value is None else (value.lo, value.hi) for value in values),
        median=_pair(bounded_statistics(known).median) if known else None,
        not_measured=len(values) - len(known),
    )


def _shift(figure: Figure) -> ShiftFound | None:
    """None where a repeat did not measure it: perhaps because of its size."""
    here = [value for value in figure.baseline if value is not None]
    there = [value for value in figure.run if value is not None]
    if _missing(figure):
        return None
    found = shift(here, there)
    return ShiftFound(
        median=_pair(found.median), within=_pair(found.within), coverage=float(found.coverage)
    )


def _pair(at: Interval) -> Bounds:
    return (at.lo, at.hi)
