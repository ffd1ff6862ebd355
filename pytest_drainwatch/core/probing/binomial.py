"""How large the true failure rate can be, judged by ``failed`` of ``tried`` attempts.

Clopper and Pearson's exact bounds. Where some failed they are a two-sided interval of 95 %: no
rate outside of it would give so few, or so many, failures in more than 2.5 % of all trials.
Where none failed only the upper bound is in question, and where all failed only the lower one,
so the whole 5 % are on that side, a one-sided bound of 95 %: 0 of 1,600 is "below 0.19 %", and
never "0 %". As the count chooses between the two, a rate near an end can be missed on both
sides, by 5 % and 2.5 %: what holds whatever the rate is that 92.5 % of all intervals hold it.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from math import exp, lgamma, log, log1p

MISSED = 0.05  # how often a bound that is alone, or the two together, may miss the truth
# Beyond these digits a machine's logarithm has a say, and a report is the same everywhere.
DIGITS = 6
_SMALLEST, _CLOSE, _STEPS = 1e-300, 1e-15, 100_000


def rate_bounds(
    failed: int, tried: int, *, unknown: int = 0, missed: float = MISSED
) -> tuple[float, float]:
    """The bounds of the rate (0..1), rounded outward; of 95 % unless ``missed`` says otherwise.

    ``unknown`` further attempts may have failed or not: the interval holds for either.
    Raises ValueError for counts that cannot be.
    """
    whole = tried + unknown
    if not 0 <= failed <= tried or unknown < 0 or whole == 0:
        raise ValueError(
            f"failed is {failed}, tried {tried}, unknown {unknown}; expected 0 <= failed <= tried "
            "and at least one attempt"
        )
    return outward(
        _lower(failed, whole, missed), 1.0 - _lower(whole - failed - unknown, whole, missed)
    )


def outward(low: float, high: float) -> tuple[float, float]:
    """Both rounded so that nothing is lost."""
    return _rounded(low, ROUND_FLOOR), _rounded(high, ROUND_CEILING)


def _lower(failed: int, tried: int, missed: float) -> float:
    if failed == 0:
        return 0.0
    if failed == tried:
        return float(missed ** (1 / tried))
    return _where(lambda rate: _at_least(failed, tried, rate) >= missed / 2)


def _where(reached: Callable[[float], bool]) -> float:
    """The least rate at which ``reached`` holds, which it does from there on."""
    lo, hi = 0.0, 1.0
    while True:
        middle = (lo + hi) / 2
        if middle in (lo, hi) or hi - lo < _CLOSE * hi:
            return middle
        lo, hi = (lo, middle) if reached(middle) else (middle, hi)


def _at_least(failed: int, tried: int, rate: float) -> float:
    """The probability of ``failed`` or more: the regularised incomplete beta function."""
    a, b = float(failed), float(tried - failed + 1)
    if not 0.0 < rate < 1.0:
        return rate
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(rate) + b * log1p(-rate))
    # The fraction converges fast on this side of the mean.
    if rate < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, rate) / a
    return 1.0 - front * _fraction(b, a, 1.0 - rate) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, 1.0 / _nonzero(1.0 - (a + b) * x / (a + 1.0))
    found = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _nonzero(1.0 + term * d)
            c = _nonzero(1.0 + term / c)
            found *= c * d
        if abs(c * d - 1.0) < _CLOSE:
            break
    return found


def _nonzero(value: float) -> float:
    return value if abs(value) > _SMALLEST else _SMALLEST


def _rounded(rate: float, rounding: str) -> float:
    return float(Context(prec=DIGITS, rounding=rounding).create_decimal_from_float(rate))
