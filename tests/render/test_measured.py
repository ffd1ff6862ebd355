"""The sentences about measured figures: with a limit, without one, and without anything."""

from __future__ import annotations

from fractions import Fraction

from pytest_drainwatch.core.advisor.measured import Figure, Name
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.repeats.tolerance import upper_limit
from pytest_drainwatch.render.measured import left_out, percent, says, seconds

Q95 = Fraction(95, 100)


def figure(values_ms: range | tuple[int, ...], bounds_only: int = 0) -> Figure:
    values = tuple(ms * NS_PER_MS for ms in values_ms)
    return Figure(
        name=Name.PROPAGATION,
        values_ns=values,
        bounds_only=bounds_only,
        left_out={"degraded trial": 2, "no other pod": 1},
        limit=upper_limit(values, Q95, Q95),
    )


def test_enough_trials_give_a_limit() -> None:
    assert says(figure(range(1001, 1060))) == (
        "new connections came to a pod after its deletion for 1.01 s to 1.06 s (59 trials); "
        "at most 1.06 s in 95 % of all such trials with 95 % confidence (the greatest)"
    )
    assert "number 2 from above" in says(figure(range(93)))


def test_too_few_trials_say_so_and_how_many_would_do() -> None:
    assert says(figure((900, 1100, 1200), bounds_only=1)) == (
        "new connections came to a pod after its deletion for 0.90 s to 1.20 s (3 trials); in 1 of "
        "them none failed, and that long at most; too few for 95 % of all such trials with 95 % "
        "confidence, which needs 59: the greatest covers that with 14.2 %"
    )
    assert "for 0.90 s (1 trial)" in says(figure((900,)))


def test_no_trial_says_nothing_and_why() -> None:
    assert says(figure(())).startswith("not measured: no trial tells how long new connections")
    assert left_out(figure(())) == (
        "2 trials left out: degraded trial",
        "1 trial left out: no other pod",
    )


def test_a_limit_does_not_fall_and_a_confidence_does_not_rise() -> None:
    assert seconds(1_000_000_001) == "1.01 s"
    assert percent(Fraction(9599, 10_000)) == "95.9 %"
