"""How many attempts had which fate, and what that says of the rate of failures.

Where the plan is sparse an attempt stands for more time than where it is dense, and the plan is
dense where failures are to be expected. A share of all attempts would be the share of no time
at all. So attempts are counted apart by how many slots lie between them, and the rate weighs the
two by that: it is the share of the time watched in which a new connection would have failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from pytest_drainwatch.core.probing.binomial import MISSED, outward, rate_bounds
from pytest_drainwatch.core.probing.document import FAILED, UNKNOWN, Fate, Rate
from pytest_drainwatch.core.probing.pieces import Piece
from pytest_drainwatch.core.probing.result import Result

Counts = Counter[Fate]


def by_every(pieces: Iterable[tuple[Piece, int]]) -> dict[int, Counts]:
    """So many attempts of each piece, by every how many-th slot was tried there; in order."""
    found: dict[int, Counts] = {}
    for piece, number in pieces:
        if number:
            found.setdefault(piece.run.every, Counter())[piece.fate] += number
    return dict(sorted(found.items()))


def in_all(counted: Mapping[int, Counts]) -> Counts:
    """Whatever the density."""
    return sum(counted.values(), Counter[Fate]())


def judged(results: Counts) -> tuple[int, int]:
    """Attempts that the workload answered or failed, and those that failed."""
    failed = sum(results[fate] for fate in FAILED)
    return results[Result.ANSWERED] + failed, failed


def doubtful(results: Counts) -> int:
    """Attempts of which nobody knows what became of them."""
    return sum(results[fate] for fate in UNKNOWN)


def rate(counted: Mapping[int, Counts], lost: int | None) -> Rate | None:
    """It holds whatever became of the doubtful attempts and of ``lost`` further ones.

    None if it is not known how many were lost, or there were none at all. Of two densities
    each has an exact interval, which misses half as often, and ``lost`` ones may be of either.
    """
    told = {
        every: (failed, attempts, doubtful(results))
        for every, results in counted.items()
        for attempts, failed in [judged(results)]
        if attempts + doubtful(results)
    }
    if lost is None or (not told and not lost):
        return None
    if len(told) < 2:
        failed, attempts, unknown = next(iter(told.values()), (0, 0, 0))
        low, high = rate_bounds(failed, attempts, unknown=unknown + lost)
        return Rate(low=low, high=high)
    whole = least = most = 0.0
    for every, (failed, attempts, unknown) in told.items():
        low, high = rate_bounds(failed, attempts, unknown=unknown, missed=MISSED / len(told))
        weight = every * (attempts + unknown)
        whole, least, most = whole + weight, least + weight * low, most + weight * high
    missing = lost * max(told)
    low, high = outward(least / (whole + missing), (most + missing) / (whole + missing))
    return Rate(low=low, high=min(high, 1.0))
