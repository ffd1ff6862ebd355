"""How many attempts had which fate, and what that says of the rate of failures.

Where the plan is sparse an attempt stands for more time than where it is dense, and the plan is
dense where failures are to be expected. A share of all attempts would be the share of no time
at all. So attempts are counted apart by how many slots lie between them, and the rate weighs the
two by the time that they stand for, missed slots included: those are missed where the plan is
dense and the machine full. It is the share of the time watched in which a new connection would
have failed, if one that was missed would have met what those tried at its density did.
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


def rate(
    counted: Mapping[int, Counts],
    lost: int | None,
    *,
    planned: Mapping[int, int] | None = None,
    sparsest: int = 1,
) -> Rate | None:
    """It holds whatever became of the doubtful attempts and of ``lost`` further ones.

    None if it is not known how many were lost, or nothing was tried. Of two densities each has
    an exact interval, which misses half as often, and stands for its slots: those ``planned``
    (tried or missed), or those tried where the plan is not known. Of a density that had slots
    and no attempt nothing is known. A lost attempt may have been one of the ``sparsest``.
    """
    slots = planned or {}
    told = {
        every: (failed, attempts, doubtful(results))
        for every in sorted(counted.keys() | slots.keys())
        for results in [counted.get(every, Counter[Fate]())]
        for attempts, failed in [judged(results)]
        if attempts + doubtful(results) or slots.get(every)
    }
    tried = [every for every, (_, attempts, unknown) in told.items() if attempts + unknown]
    if lost is None or (not tried and not lost):
        return None
    sparsest = max(sparsest, *told, 1)
    if not tried:
        return Rate(low=0.0, high=1.0)
    if len(told) == 1 and (not lost or sparsest in told):
        failed, attempts, unknown = told[tried[0]]
        low, high = rate_bounds(failed, attempts, unknown=unknown + lost)
        return Rate(low=low, high=high)
    whole = least = most = 0.0
    for every, (failed, attempts, unknown) in told.items():
        low, high = 0.0, 1.0
        if attempts + unknown:
            low, high = rate_bounds(failed, attempts, unknown=unknown, missed=MISSED / len(tried))
        weight = every * max(slots.get(every, 0), attempts + unknown)
        whole, least, most = whole + weight, least + weight * low, most + weight * high
    missing = lost * sparsest
    low, high = outward(least / (whole + missing), (most + missing) / (whole + missing))
    return Rate(low=low, high=min(high, 1.0))
