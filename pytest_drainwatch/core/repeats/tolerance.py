"""How large can it get? Distribution-free upper tolerance limits, from order statistics.

A median says nothing about the slow ones, and a deploy meets them. An upper tolerance limit
is a measured value that, with a stated confidence, is not below a stated quantile of all such
values. Nothing is assumed of their distribution but that it is continuous and that the values are
independent (S. S. Wilks, 1941); ties only raise the confidence.

Of ``n`` values the ``rank``-th greatest is such a limit if fewer than ``n - rank + 1`` of them lie
below the quantile, and how many do is binomial. With too few values not even the greatest is
one: then there is no limit, and :func:`needed` says how many would do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from math import comb, log

# Beyond these a limit asks for more than a hundred thousand values.
HIGHEST = Fraction(9999, 10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpperLimit:
    """An upper tolerance limit of ``count`` values.

    ``value`` is the ``rank``-th greatest of them, and at least the ``quantile`` of all such
    values with probability ``confidence`` (not the one that was wanted: that of this rank).
    Both are None where the values are too few; ``needed`` would do at least.
    """

    value: int | None
    rank: int | None
    count: int
    quantile: Fraction
    wanted: Fraction
    confidence: Fraction
    needed: int


def upper_limit(values: Sequence[int], quantile: Fraction, wanted: Fraction) -> UpperLimit:
    """The least of ``values`` that is an upper limit of ``quantile`` with confidence ``wanted``.

    Where there is none, ``confidence`` is that of the greatest. Raises ValueError for a
    quantile or confidence that is not above 0 and at most :data:`HIGHEST`.
    """
    _check("quantile", quantile)
    _check("confidence", wanted)
    count, rank = len(values), 0
    reached = Fraction(0)
    for tried, at_rank in enumerate(_confidences(count, quantile), 1):
        # It falls with the rank.
        if tried == 1 or at_rank >= wanted:
            reached = at_rank
        if at_rank < wanted:
            break
        rank = tried
    return UpperLimit(
        value=sorted(values)[-rank] if rank else None,
        rank=rank or None,
        count=count,
        quantile=quantile,
        wanted=wanted,
        confidence=reached,
        needed=needed(quantile, wanted),
    )


def confidence(count: int, rank: int, quantile: Fraction) -> Fraction:
    """How probably the ``rank``-th greatest of ``count`` values is not below the ``quantile``.

    That at least ``rank`` of them are not: one minus the chance of fewer. Exact.
    """
    if not 1 <= rank <= count:
        raise ValueError(f"rank is {rank}, expected 1..{count} for {count} values")
    return next(islice(_confidences(count, quantile), rank - 1, None))


def _confidences(count: int, quantile: Fraction) -> Iterator[Fraction]:
    """Those of rank 1, 2, …: whole numbers over one denominator, for they get long."""
    below, whole = quantile.numerator, quantile.denominator
    fewer, all_of_them = 0, whole**count
    for above in range(count):
        fewer += comb(count, above) * (whole - below) ** above * below ** (count - above)
        yield Fraction(all_of_them - fewer, all_of_them)


def needed(quantile: Fraction, wanted: Fraction) -> int:
    """The least number of values whose greatest is an upper limit: 1 - q**n >= wanted."""
    _check("quantile", quantile)
    _check("confidence", wanted)
    # A logarithm is inexact at the very edge, so the answer is tried out.
    count = max(1, round(log(1 - wanted) / log(quantile)) - 1)
    while 1 - quantile**count < wanted:
        count += 1
    return count


def _check(name: str, value: Fraction) -> None:
    if not 0 < value <= HIGHEST:
        raise ValueError(f"{name} is {float(value):g}, expected above 0, up to {float(HIGHEST)}")
