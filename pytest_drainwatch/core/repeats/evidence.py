"""What the figures of two runs prove, all of them together.

Every judged figure (see :mod:`.judged`) of every scenario is a question of its own, and
whoever asks forty at the level 0.05 gets two wrong answers. So p-values are corrected
(S. Holm, Scand. J. Stat. 6 (1979) 65): the chance that a comparison of two equal runs
claims anything at all is at most 0.05. Figures that could not have been claimed however
the trials had been shared out (all values equal, say) do not count as questions
(R. E. Tarone, Biometrics 46 (1990) 515).

That holds for trials that differ in nothing but their side. What differs between two runs
as a whole, such as another load of the machine, is a difference to this test too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from pytest_drainwatch.core.interval import Bounds, Interval
from pytest_drainwatch.core.repeats.claim import Value, attainable, higher, shift
from pytest_drainwatch.core.repeats.compared import FigureFound, Needed, ShiftFound, Side, Verdict
from pytest_drainwatch.core.repeats.judged import Figure, Unit
from pytest_drainwatch.core.repeats.rank import repeats_of_b, repeats_of_both, smallest_p
from pytest_drainwatch.core.repeats.stats import bounded_statistics

LEVEL = Fraction(5, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Every figure with its verdict, in the order given, and how many were questions."""

    figures: tuple[FigureFound, ...]
    questions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tested:
    """A judged figure: its p before and after correction, and the least it could have had."""

    p: Fraction
    corrected: Fraction
    attainable: Fraction

    @property
    def decided(self) -> bool:
        return self.corrected <= LEVEL


def weigh(figures: Sequence[Figure]) -> Evidence:
    """Judge all figures of a comparison."""
    judged = [figure for figure in figures if figure.shown_only is None]
    tested = _test(judged)
    undecided = [each for each in tested if not each.decided]
    # What a further question would be one of; and what it would be with more repeats.
    now = sum(each.attainable <= LEVEL for each in undecided)
    then = sum(each.attainable < 1 for each in undecided)
    remaining = iter(tested)
    return Evidence(
        figures=tuple(
            _shown(figure)
            if figure.shown_only is not None
            else _judged(figure, next(remaining), now, then)
            for figure in figures
        ),
        questions=sum(each.attainable <= LEVEL for each in tested),
    )


def corrected(p: Sequence[Fraction]) -> list[Fraction]:
    """Holm's correction: to be held against the level, each in its place."""
    order = sorted(range(len(p)), key=lambda at: p[at])
    found = [Fraction(1)] * len(p)
    so_far = Fraction(0)
    for step, at in enumerate(order):
        so_far = max(so_far, min(Fraction(1), p[at] * (len(p) - step)))
        found[at] = so_far
    return found


def _test(judged: Sequence[Figure]) -> list[_Tested]:
    p = [min(Fraction(1), 2 * min(_both_ways(figure))) for figure in judged]
    could = [attainable(each.baseline, each.run, each.least) for each in judged]
    counted = [at for at in range(len(judged)) if could[at] <= LEVEL]
    found = dict(zip(counted, corrected([p[at] for at in counted]), strict=True))
    return [
        _Tested(p=p[at], corrected=found.get(at, Fraction(1)), attainable=could[at])
        for at in range(len(judged))
    ]


def _judged(figure: Figure, tested: _Tested, now: int, then: int) -> FigureFound:
    verdict, why, needed = _verdict(figure, tested, now, then)
    return replace(
        _shown(figure),
        verdict=verdict,
        why=why,
        needed=needed,
        p=float(tested.p),
        p_corrected=float(tested.corrected),
        p_smallest=float(smallest_p(len(figure.baseline), len(figure.run))),
    )


def _verdict(
    figure: Figure, tested: _Tested, now: int, then: int
) -> tuple[Verdict, str | None, Needed | None]:
    """``now`` and ``then``: among how many undecided questions it would be held."""
    if tested.decided:
        up, down = _both_ways(figure)
        return (Verdict.REGRESSION if up < down else Verdict.IMPROVEMENT), None, None
    if missing := _missing(figure):
        return Verdict.INSUFFICIENT_EVIDENCE, missing, None
    # What would have been enough, had one side lain wholly beyond the other.
    level = LEVEL / (now if tested.attainable <= LEVEL else now + 1)
    n_a, n_b = len(figure.baseline), len(figure.run)
    if (reached := smallest_p(n_a, n_b)) > level:
        later = LEVEL / (then if tested.attainable < 1 else then + 1)
        why = f"{n_a} against {n_b} repeats reach p = {float(reached):.2g} at best: too few"
        needed = Needed(of_run=repeats_of_b(n_a, later), of_each=repeats_of_both(later))
        return Verdict.INSUFFICIENT_EVIDENCE, why, needed
    if figure.unit is Unit.COUNT and _p_at_best(figure) <= level:
        why = "what is not known of the counts would decide"
        return Verdict.INSUFFICIENT_EVIDENCE, why, None
    return Verdict.NO_CHANGE, None, None


def _both_ways(figure: Figure) -> tuple[Fraction, Fraction]:
    """The one-sided p of "the run has more" and of "the run has less"."""
    up = higher(figure.baseline, figure.run, figure.least)
    return up, higher(figure.run, figure.baseline, figure.least)


def _p_at_best(figure: Figure) -> Fraction:
    """The two-sided p for the truth that suits a claim best."""

    def at(values: Sequence[Value], highest: bool) -> list[Value]:
        known = [value for value in values if value is not None]
        return [Interval.point(value.hi if highest else value.lo) for value in known]

    up = higher(at(figure.baseline, False), at(figure.run, True))
    down = higher(at(figure.run, False), at(figure.baseline, True))
    return min(Fraction(1), 2 * min(up, down))


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
