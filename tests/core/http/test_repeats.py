"""Repeats that differ in which request was cut are told apart, and never averaged."""

from __future__ import annotations

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.http.ending import Ending, Over
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.repeats.aggregate import pool
from pytest_drainwatch.core.repeats.metrics import OwnMetric
from pytest_drainwatch.core.repeats.repeat import repeat
from tests.core import story as s
from tests.core.http.asked import Asked, Lane, end, http

NAMES = ("in-flight-00", "in-flight-01")


def trial(*cut: str) -> Report:
    """Two requests in flight, of which these were cut."""
    lanes = []
    for name in NAMES:
        gone = name in cut
        over = Over.RST if gone else Over.CLIENT
        lanes.append(
            Lane(
                name=name,
                asked=[
                    Asked(ms=-5000, took_ms=5100, ended=Ending.RST if gone else Ending.RESPONSE)
                ],
                ends=[end(name, over, 100, outstanding=gone, said_close=not gone)],
            )
        )
    return derive(s.recording([s.accepted()], s.cluster(), http(*lanes)))


def test_c15_repeats_disagree_on_which() -> None:
    cuts = [NAMES[n % 2] for n in range(10)]
    repeats = [repeat(trial(cut), f"r{n:02d}") for n, cut in enumerate(cuts)]
    found = pool("in-flight", repeats)
    counts = {(fate.outcome, fate.mechanism): fate.per_repeat for fate in found.fates}
    assert counts == {
        ("drained-clean-close", "connection-close"): (1,) * 10,
        ("severed", "rst-outstanding"): (1,) * 10,
    }
    told = " ".join(found.disagreements)
    assert "not the same ones" in told
    assert "in-flight-00" in told


def test_c15_repeats_that_agree_on_which() -> None:
    repeats = [repeat(trial(NAMES[0]), f"r{n:02d}") for n in range(10)]
    assert not pool("in-flight", repeats).disagreements


def failing_for(*lanes: Lane) -> Interval | None:
    found = repeat(derive(s.recording([s.accepted()], s.cluster(), http(*lanes))), "r00")
    reading = found.own_metrics[OwnMetric.HTTP_FAILING]
    return None if reading is None else reading.within


def test_for_how_long_requests_failed() -> None:
    served = Asked(ms=0, count=10)
    cut = [Asked(ms=ms, ended=Ending.RST, took_ms=1) for ms in (1000, 3000)]
    assert failing_for(Lane(asked=[served])) == Interval(0, 0)
    assert failing_for(Lane(asked=[served, cut[0]])) == Interval(0, 0)
    two = failing_for(Lane(asked=[served, cut[0]]), Lane(name="new-00", asked=[served, cut[1]]))
    assert two == Interval(1_999_000_000, 2_001_000_000)
    # Of those that are lost, or not judged, nobody knows.
    assert failing_for(Lane(asked=[served], made=20)) is None
    unsure = Asked(ms=1000, ended=Ending.UNFINISHED)
    assert failing_for(Lane(asked=[served, unsure])) is None
    # No requests, no figure.
    without = repeat(derive(s.recording([s.accepted()], s.cluster())), "r00")
    assert OwnMetric.HTTP_FAILING not in without.own_metrics
