"""How many attempts had which fate, and what that says of the rate of failures."""

from __future__ import annotations

from collections import Counter

from pytest_drainwatch.core.probing.binomial import rate_bounds
from pytest_drainwatch.core.probing.document import FAILED, UNKNOWN, Fate, Rate
from pytest_drainwatch.core.probing.result import Result


def judged(results: Counter[Fate]) -> tuple[int, int]:
    """Attempts that the workload answered or failed, and those that failed."""
    failed = sum(results[fate] for fate in FAILED)
    return results[Result.ANSWERED] + failed, failed


def doubtful(results: Counter[Fate]) -> int:
    """Attempts of which nobody knows what became of them."""
    return sum(results[fate] for fate in UNKNOWN)


def rate(results: Counter[Fate], lost: int | None) -> Rate | None:
    """It holds whatever became of the doubtful attempts and of ``lost`` further ones.

    None if it is not known how many were lost, or there were none at all.
    """
    attempts, failed = judged(results)
    if lost is None or attempts + doubtful(results) + lost == 0:
        return None
    low, high = rate_bounds(failed, attempts, unknown=doubtful(results) + lost)
    return Rate(low=low, high=high)
