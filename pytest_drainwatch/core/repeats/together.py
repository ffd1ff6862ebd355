"""What a figure says in all scenarios together: their rank sums, added up.

Five repeats of one scenario prove little beside thirty other questions. But if connections
are lost where none were, mostly several scenarios lose them: then their rank sums, added
up, lie where chance hardly brings them. Scenarios in which no trial surely differs from
another say nothing and are left out; that does not depend on which trial is on which side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from math import prod

from pytest_drainwatch.core.repeats.claim import (
    Value,
    at_best,
    attainable,
    higher,
    surely_higher,
)
from pytest_drainwatch.core.repeats.judged import Figure
from pytest_drainwatch.core.repeats.rank import (
    Stratum,
    as_high_together,
    stratum,
    stratum_untied,
)


def two_sided(figures: Sequence[Figure]) -> Fraction:
    """The p of "they differ", for the truths that suit it worst."""
    return min(Fraction(1), 2 * min(up(figures), down(figures)))


def up(figures: Iterable[Figure]) -> Fraction:
    """The one-sided p of "the run has more, in all of them together"."""
    return _higher([(each.baseline, each.run, each.least) for each in figures])


def down(figures: Iterable[Figure]) -> Fraction:
    """The same of "the run has less"."""
    return _higher([(each.run, each.baseline, each.least) for each in figures])


def attainable_together(figures: Iterable[Figure]) -> Fraction:
    """No sharing out of these trials has a smaller two-sided p."""
    says = [each for each in figures if _says(each.baseline, each.run, each.least)]
    if not says:
        return Fraction(1)
    if len(says) == 1:
        return attainable(says[0].baseline, says[0].run, says[0].least)
    strata = [_stratum(each.baseline, each.run, each.least) for each in says]
    ends: tuple[Callable[[Stratum], Fraction], ...] = (lambda s: s.highest, lambda s: s.lowest)
    return min(Fraction(1), 2 * min(prod(map(end, strata), start=Fraction(1)) for end in ends))


def two_sided_at_best(figures: Sequence[Figure]) -> Fraction:
    """The p for the truths that suit a claim best; what was not measured is left out."""
    ways = [
        [(*at_best(each.baseline, each.run), each.least) for each in figures],
        [(*at_best(each.run, each.baseline), each.least) for each in figures],
    ]
    return min(Fraction(1), 2 * min(map(_higher, ways)))


_Samples = tuple[Sequence[Value], Sequence[Value], int]


def _higher(samples: Sequence[_Samples]) -> Fraction:
    says = [each for each in samples if _says(*each)]
    if not says:
        return Fraction(1)
    if len(says) == 1:
        return higher(*says[0])
    return as_high_together([_stratum(*each) for each in says])


def _says(a: Sequence[Value], b: Sequence[Value], least: int) -> bool:
    return bool(a) and bool(b) and attainable(a, b, least) < 1


def _stratum(a: Sequence[Value], b: Sequence[Value], least: int) -> Stratum:
    """As :func:`~pytest_drainwatch.core.repeats.claim.higher` sees one alone: what is known
    with its ties, else each tie and each doubt counts against the claim.
    """
    here, there = ([v.lo for v in side if v is not None and not v.width] for side in (a, b))
    if not least and len(here) == len(a) and len(there) == len(b):
        return stratum(here, there)
    return stratum_untied(len(a), len(b), sum(surely_higher(x, y, least) for x in a for y in b))
