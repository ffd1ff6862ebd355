"""Repeats that differ in which request was cut are told apart, and never averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.http.ending import Ending, Over
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.core.repeats.aggregate import pool
from pytest_drainwatch.core.repeats.compare import Run, compare
from pytest_drainwatch.core.repeats.compared import Comparison, Verdict
from pytest_drainwatch.core.repeats.metrics import OwnMetric, Tally
from pytest_drainwatch.core.repeats.repeat import repeat, tallies
from tests.core import story as s
from tests.core.http.asked import Asked, Lane, end, http

GOOD = Ending.RESPONSE
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


def test_how_long_is_not_known_exactly_where_some_are_not_known() -> None:
    """One failure lasts no time, unless others failed that nobody saw."""
    asked = [Asked(ms=0, count=10), Asked(ms=1000, ended=Ending.RST, took_ms=1)]
    lost = failing_for(Lane(asked=asked, made=20))
    assert lost is not None
    assert lost.lo <= 0 < lost.hi
    unsure = Asked(ms=5000, ended=Ending.UNFINISHED, took_ms=2000)
    for lanes in (
        [Lane(asked=[*asked, unsure])],
        [Lane(asked=asked), Lane(name="new-00", asked=[unsure])],  # of another kind
    ):
        within = failing_for(*lanes)
        assert within is not None
        assert within.lo == 0
        assert within.hi >= 5_999_000_000


def compared(here: Sequence[Report], there: Sequence[Report]) -> Comparison:
    sides = (
        Run(name=name, scenarios={"web": tuple(repeat(one, f"r{n}") for n, one in enumerate(side))})
        for name, side in (("A", here), ("B", there))
    )
    return compare(*sides)


def with_failures(number: int, *also: Observation) -> Report:
    """100 requests, of which so many failed, all in one slot of ten lanes or less."""
    lanes = [
        Lane(
            name=f"keepalive-{n:02d}",
            asked=[Asked(ms=0, count=9), Asked(ms=900, ended=Ending.RST if n < number else GOOD)],
        )
        for n in range(10)
    ]
    told = derive(s.recording([s.accepted()], s.cluster(), http(*lanes), also))
    # As of an attached workload: nothing but requests.
    return replace(told, trial=replace(told.trial, flows=()))


def test_a_comparison_judges_how_many_requests_failed() -> None:
    """One that failed lasts no time, so the failing time does not tell it."""
    none, one = [with_failures(0)] * 6, [with_failures(1)] * 6
    assert compared(none, one).verdict is Verdict.REGRESSION
    assert compared(one, none).verdict is Verdict.IMPROVEMENT
    assert compared(none, none).verdict is Verdict.NO_CHANGE
    (figures,) = (each.figures for each in compared(none, one).scenarios)
    (judged,) = (each for each in figures if each.name == Tally.HTTP_REQUESTS_FAILED)
    assert judged.verdict is Verdict.REGRESSION


def test_requests_that_fail_because_nobody_is_left_are_shown_and_not_judged() -> None:
    none, one = [with_failures(0)] * 6, [with_failures(3)] * 6
    scaled = [
        [replace(each, trial=replace(each.trial, config={**each.trial.config, "trigger": "scale"}))
         for each in side]
        for side in (none, one)
    ]  # fmt: skip
    (figures,) = (each.figures for each in compared(*scaled).scenarios)
    (shown,) = (each for each in figures if each.name == Tally.HTTP_REQUESTS_FAILED)
    assert shown.verdict is None
    assert compared(*scaled).verdict is not Verdict.REGRESSION


def test_how_many_failed_holds_those_of_which_nobody_knows() -> None:
    def count(*lanes: Lane) -> Interval | None:
        report = derive(s.recording([s.accepted()], s.cluster(), http(*lanes)))
        return tallies(report)[Tally.HTTP_REQUESTS_FAILED]

    cut = Asked(ms=1000, ended=Ending.RST)
    unsure = Asked(ms=2000, ended=Ending.UNFINISHED)
    assert count(Lane(asked=[cut, unsure])) == Interval(1, 2)
    assert count(Lane(asked=[cut], made=4)) == Interval(1, 4)
    assert count(Lane(asked=[Asked(ms=1000)])) == Interval(0, 0)
    assert count(Lane(asked=[Asked(ms=-2000)])) is None  # none since the trigger
    without = derive(s.recording([s.accepted()], s.cluster()))
    assert Tally.HTTP_REQUESTS_FAILED not in tallies(without)


def test_pooled_connections_of_nobody_known_are_counted_as_such() -> None:
    """They were answered: it is not known by whom."""
    other = s.endpoints(-5800, ("uid-old", True, True, False), ("uid-other", True, True, False))
    lane = Lane(asked=[Asked(ms=0, count=9)], ends=[end("keepalive-00", Over.FIN, 2000)])
    told = derive(s.recording([s.accepted()], s.cluster(), http(lane), [other]))
    assert [fate.group for fate in pool("web", [repeat(told, "r00")]).fates] == ["unknown http"]
