"""The exact two-sample rank test of Wilcoxon, Mann and Whitney, and the shift that goes with it.

Two samples a and b are thrown together and ranked; ties share the mean of their ranks.
If it did not matter in which sample a value is, each choice of ``len(b)`` of the pooled
values would be equally likely to be b, so the distribution of b's rank sum is found by
counting choices. Nothing is approximated, at no size and with any ties: probabilities are
fractions, ranks are doubled to stay integers.

H. B. Mann, D. R. Whitney, Ann. Math. Stat. 18 (1947) 50; J. L. Hodges, E. L. Lehmann,
Ann. Math. Stat. 34 (1963) 598.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, groupby
from math import comb, prod

WANTED_COVERAGE = Fraction(95, 100)
# Both samples together. The exact distribution of so many takes a second; of twice as many,
# half a minute.
MOST_VALUES = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTest:
    """How likely b's ranks would be so high, or so low, if it did not matter what is b."""

    as_high: Fraction
    as_low: Fraction

    @property
    def two_sided(self) -> Fraction:
        """For whoever did not know beforehand which way to look: twice the smaller one."""
        return min(Fraction(1), 2 * min(self.as_high, self.as_low))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftRank:
    """Of all differences b - a, ordered, the ``rank``-th from below and from above enclose
    the shift between the samples with probability ``coverage``.

    Exact for continuous quantities; ties only raise it.
    """

    rank: int
    coverage: Fraction


def rank_sum(a: Sequence[int], b: Sequence[int]) -> RankTest:
    """The test. Raises ValueError if a sample is empty."""
    _check(len(a), len(b))
    sizes, ranks = _ties([*a, *b])
    seen = sum(ranks[value] for value in b)
    ways = _ways(sizes, len(b))
    every = comb(len(a) + len(b), len(b))
    return RankTest(
        as_high=Fraction(sum(ways[seen:]), every),
        as_low=Fraction(sum(ways[: seen + 1]), every),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """One of several pairs of samples: b's doubled rank sum, and in how many choices of b it
    is 0, 1, 2 … and so on.
    """

    seen: int
    ways: Sequence[int]

    @property
    def highest(self) -> Fraction:
        """How likely the greatest sum is that any choice has."""
        return Fraction(next(filter(None, reversed(self.ways))), sum(self.ways))

    @property
    def lowest(self) -> Fraction:
        """How likely the least one is."""
        return Fraction(next(filter(None, self.ways)), sum(self.ways))


def stratum(a: Sequence[int], b: Sequence[int]) -> Stratum:
    """Samples that are known, with their ties. Raises ValueError as :func:`rank_sum`."""
    _check(len(a), len(b))
    sizes, ranks = _ties([*a, *b])
    return Stratum(seen=sum(ranks[value] for value in b), ways=_ways(sizes, len(b)))


def stratum_untied(n_a: int, n_b: int, pairs: int) -> Stratum:
    """Samples without ties, of which b is higher in so many pairs."""
    _check(n_a, n_b)
    return Stratum(seen=n_b * (n_b + 1) + 2 * pairs, ways=_ways((1,) * (n_a + n_b), n_b))


def as_high_together(strata: Sequence[Stratum]) -> Fraction:
    """How likely the rank sums of all strata, added up, would be so high or higher.

    Exact: choices in one stratum are independent of those in another, so the distribution of
    the sum is the convolution of theirs (P. van Elteren, Bull. Int. Stat. Inst. 37 (1960)
    351, with equal weights).
    """
    every = prod(sum(each.ways) for each in strata)
    digit = every.bit_length() // 8 + 1  # bytes, as in _ways
    # Without ties every second sum is none, and below the least one there are none at all.
    first = [next(at for at, ways in enumerate(each.ways) if ways) for each in strata]
    step = 1 if any(any(e.ways[at + 1 :: 2]) for e, at in zip(strata, first, strict=True)) else 2
    cut = [each.ways[at::step] for each, at in zip(strata, first, strict=True)]
    together = prod(_number(ways, digit) for ways in cut)
    ways = _digits(together, digit, sum(len(each) - 1 for each in cut) + 1)
    seen = sum(each.seen for each in strata) - sum(first)
    return Fraction(sum(ways[-(-seen // step) :]), every)


def smallest_p(n_a: int, n_b: int) -> Fraction:
    """The two-sided p of samples of which one lies wholly beyond the other: none is smaller."""
    _check(n_a, n_b)
    return min(Fraction(1), Fraction(2, comb(n_a + n_b, n_b)))


def smallest_p_among(values: Sequence[int], n_b: int) -> Fraction:
    """The smallest two-sided p that ``n_b`` of these values can reach against the others.

    With ties that may be far more than without: if all are equal it is 1.
    """
    _check(len(values) - n_b, n_b)
    ordered = sorted(values)
    high = rank_sum(ordered[:-n_b], ordered[-n_b:])
    low = rank_sum(ordered[n_b:], ordered[:n_b])
    return min(high.two_sided, low.two_sided)


def repeats_of_b(n_a: int, level: Fraction) -> int:
    """How many repeats of b, beside ``n_a`` of a, can reach a p of ``level`` or less at all."""
    _check_level(level)
    n_b = 1
    while smallest_p(n_a, n_b) > level:
        n_b += 1
    return n_b


def repeats_of_both(level: Fraction) -> int:
    """The same for as many repeats of a as of b."""
    _check_level(level)
    n = 1
    while smallest_p(n, n) > level:
        n += 1
    return n


def shift_rank(n_a: int, n_b: int, wanted: Fraction = WANTED_COVERAGE) -> ShiftRank:
    """The narrowest interval of the shift that covers ``wanted``.

    The widest there is, with its true coverage, when the samples are too small for that.
    """
    _check(n_a, n_b)
    every = comb(n_a + n_b, n_b)
    # How often at most `rank - 1` of the differences lie on one side of the shift.
    missed = list(accumulate(_ways_untied(n_a, n_b)))
    rank = 1
    while 1 - Fraction(2 * missed[rank], every) >= wanted:
        rank += 1
    return ShiftRank(
        rank=rank, coverage=max(Fraction(0), 1 - Fraction(2 * missed[rank - 1], every))
    )


def as_high_untied(n_a: int, n_b: int, pairs: int) -> Fraction:
    """How likely b, without ties, is higher in so many of the ``n_a * n_b`` pairs, or in more."""
    _check(n_a, n_b)
    return Fraction(sum(_ways_untied(n_a, n_b)[pairs:]), comb(n_a + n_b, n_b))


def _ways_untied(n_a: int, n_b: int) -> Sequence[int]:
    """Of the choices of b, how many have 0, 1, 2 … pairs with b > a: from 0 to n_a n_b."""
    least = n_b * (n_b + 1)
    return _ways((1,) * (n_a + n_b), n_b)[least : least + 2 * n_a * n_b + 1 : 2]


def _number(digits: Sequence[int], digit: int) -> int:
    return int.from_bytes(b"".join(each.to_bytes(digit, "little") for each in digits), "little")


def _digits(number: int, digit: int, count: int) -> tuple[int, ...]:
    held = number.to_bytes(count * digit, "little")
    return tuple(
        int.from_bytes(held[at : at + digit], "little") for at in range(0, len(held), digit)
    )


def _ties(values: Sequence[int]) -> tuple[tuple[int, ...], dict[int, int]]:
    """How many values share each rank, from the lowest on, and the doubled ranks."""
    sizes, ranks, below = [], {}, 0
    for value, equal in groupby(sorted(values)):
        size = len(list(equal))
        ranks[value] = 2 * below + size + 1
        sizes.append(size)
        below += size
    return tuple(sizes), ranks


@lru_cache(maxsize=64)
def _ways(sizes: tuple[int, ...], n_b: int) -> tuple[int, ...]:
    """How many choices of ``n_b`` values have a doubled rank sum of 0, 1, 2 …

    The counts for all sums are the digits of one large number (Kronecker's substitution):
    a choice that adds a rank shifts it by so many digits, at the speed of the machine.
    """
    total = sum(sizes)
    if total > MOST_VALUES:
        raise ValueError(f"samples of {total} values together: expected at most {MOST_VALUES}")
    digit = comb(total, n_b).bit_length() // 8 + 1  # bytes
    chosen = [1] + [0] * n_b  # by how many were chosen so far
    below = 0
    for size in sizes:
        step = (2 * below + size + 1) * digit * 8
        for count in range(min(n_b, below + size), 0, -1):
            chosen[count] += sum(
                comb(size, taken) * chosen[count - taken] << taken * step
                for taken in range(1, min(size, count) + 1)
            )
        below += size
    highest = n_b * (2 * total - n_b + 1)  # without ties; ties cannot reach beyond
    return _digits(chosen[n_b], digit, highest + 1)


def _check(n_a: int, n_b: int) -> None:
    if min(n_a, n_b) < 1:
        raise ValueError(f"samples of {n_a} and {n_b} values: expected at least one in each")


def _check_level(level: Fraction) -> None:
    if level <= 0:
        raise ValueError(f"the level is {level}, expected more than 0: no p is 0")
