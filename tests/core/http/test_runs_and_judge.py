"""What lanes write in runs, judged again: no request is moved, lost or made better than it was."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.http.ending import Ending, LaneKind, Pool
from pytest_drainwatch.core.http.fate import FAILED, SERVED, fate
from pytest_drainwatch.core.http.judge import requests
from pytest_drainwatch.core.http.recorded import recorded
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.probing.pieces import Surroundings
from pytest_drainwatch.core.stall import NO_STALLS
from pytest_drainwatch.flows.http.request import Request
from pytest_drainwatch.flows.http.runs import Runs

PERIOD_NS = 100 * NS_PER_MS
T0_NS = 100 * NS_PER_S
PATIENCE_NS = 300 * NS_PER_MS


@dataclass(frozen=True, slots=True)
class Truth:
    """One request as it was."""

    begun_ns: int
    over_ns: int
    served: bool
    failed: bool


@st.composite
def lanes(draw: st.DrawFn) -> tuple[list[Observation], list[Truth]]:
    """A lane of some stretches, each of requests that end alike, late by some time each."""
    seen: list[Observation] = []
    truth: list[Truth] = []
    epoch_ns = T0_NS - draw(st.integers(0, 3000)) * NS_PER_MS
    runs = Runs("keepalive-00", LaneKind.KEEPALIVE, seen.append)
    slot = made = missed = late_max_ns = 0
    for _ in range(draw(st.integers(1, 6))):
        ended = draw(st.sampled_from([Ending.RESPONSE, Ending.RST, Ending.REFUSED, Ending.TIMEOUT]))
        status = draw(st.sampled_from([200, 503])) if ended is Ending.RESPONSE else None
        for _ in range(draw(st.integers(1, 25))):
            if draw(st.integers(0, 9)) == 0:
                slot, missed = slot + 1, missed + 1
            late_ns = draw(st.integers(0, 90)) * NS_PER_MS
            late_max_ns = max(late_max_ns, late_ns)
            one = Request(slot, epoch_ns + slot * PERIOD_NS + late_ns, "/")
            one.pool, one.connection, one.status, one.written = Pool.REUSED, 1, status, 9
            one.end(ended, one.begun_ns + draw(st.integers(0, 250)) * NS_PER_MS)
            runs.add(one)
            what = fate(ended, pool=one.pool, status=status, expected=200, written=True)
            over_ns = one.begun_ns + one.took_ns
            truth.append(Truth(one.begun_ns, over_ns, what in SERVED, what in FAILED))
            slot, made = slot + 1, made + 1
    runs.close()
    lane = {
        "lane": "keepalive-00", "kind": "keepalive", "requests": made, "missed_slots": missed,
        "epoch_ns": epoch_ns, "period_ns": PERIOD_NS,
    }  # fmt: skip
    summary = {
        "method": "GET", "expect_status": 200, "timeout_ns": PATIENCE_NS, "lanes": [lane],
        "late_max_ns": late_max_ns,
    }  # fmt: skip
    at = Interval(epoch_ns, max(one.over_ns for one in truth))
    told = Observation(source=Source.CLIENT, event=Event.HTTP_SUMMARY, at=at, data=summary)
    return [*seen, told], truth


@settings(max_examples=60, deadline=None)
@given(lanes())
def test_the_bounds_of_each_request_in_a_run_hold_it(
    lane: tuple[list[Observation], list[Truth]],
) -> None:
    seen, truth = lane
    told = recorded(seen)
    assert told is not None
    places = [(run, k) for run in told.runs for k in range(run.count)]
    for (run, k), one in zip(places, truth, strict=True):
        assert run.begun_lo(k) <= one.begun_ns <= run.begun_hi(k)
        assert one.over_ns <= run.over_hi(k)
        at = run.hull(k, k + 1)
        assert at.lo <= one.begun_ns
        assert one.over_ns <= at.hi


@settings(max_examples=60, deadline=None)
@given(lanes())
def test_what_is_judged_holds_what_was(lane: tuple[list[Observation], list[Truth]]) -> None:
    seen, truth = lane
    around = Surroundings(
        t0_ns=T0_NS, targets={}, workload=frozenset(), names={}, all_pods_known=True,
        stalls=NO_STALLS,
    )  # fmt: skip
    found = requests(seen, around)
    assert found is not None
    assert found.lost == 0
    (kind,) = found.kinds
    # Each is before or since; who was over before may be taken for one since, by its bounds.
    since = [one for one in truth if one.over_ns >= T0_NS]
    assert kind.attempts + kind.attempts_before == len(truth)
    assert kind.attempts >= len(since)
    assert kind.failed >= sum(one.failed for one in since)
    assert kind.failed + kind.failed_before == sum(one.failed for one in truth)
    failed = [one for one in since if one.failed]
    if kind.failing is None:
        assert not failed
        return
    if failed:
        first, last = failed[0], failed[-1]
        assert kind.failing.first_ns[0] <= first.over_ns - T0_NS
        assert last.begun_ns - T0_NS <= kind.failing.last_ns[1]
        assert kind.failing.last_ns[0] <= last.over_ns - T0_NS
    recovered = kind.failing.recovered_ns
    after = [one for one in truth if one.served and one.begun_ns > truth_last(truth).begun_ns]
    if recovered is not None:
        assert after, "served again, and none was"
        assert any(
            recovered[0] <= one.begun_ns - T0_NS and one.over_ns - T0_NS <= recovered[1]
            for one in after
        )
    before = kind.failing.served_before_ns
    if before is not None and failed:
        earlier = [one for one in truth if one.served and one.begun_ns < failed[0].begun_ns]
        assert earlier, "served before, and none was"


def truth_last(truth: list[Truth]) -> Truth:
    """The last that failed."""
    return [one for one in truth if one.failed][-1]
