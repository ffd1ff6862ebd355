"""What the books of a lane write is what the core reads."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.http.ending import Ending, LaneKind, Pool
from pytest_drainwatch.core.http.recorded import Lane, Run
from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.flows.http.request import Request
from pytest_drainwatch.flows.http.runs import Runs

PERIOD_NS = 100_000_000
LANE = Lane(
    name="keepalive-00",
    kind=LaneKind.KEEPALIVE,
    requests=None,
    missed_slots=0,
    epoch_ns=0,
    period_ns=PERIOD_NS,
)
LATE_NS = 5_000_000

ENDED = st.tuples(
    st.sampled_from([Ending.RESPONSE, Ending.RESPONSE, Ending.RESPONSE, Ending.RST]),
    st.sampled_from([200, 200, 200, 503]),
    st.integers(0, LATE_NS),  # how late it was begun
    st.integers(0, 400_000_000),  # what it took
    st.booleans(),  # whether the slot was missed
)


def request(slot: int, ended: Ending, status: int, late_ns: int, took_ns: int) -> Request:
    made = Request(slot, slot * PERIOD_NS + late_ns, "/")
    made.pool, made.connection, made.written = Pool.REUSED, 1, 10
    made.status = status if ended is Ending.RESPONSE else None
    made.end(ended, made.begun_ns + took_ns)
    return made


@given(st.lists(ENDED, max_size=60))
def test_bounds_hold_for_each_request_inside_a_run(
    told: list[tuple[Ending, int, int, int, bool]],
) -> None:
    made = [
        request(slot, ended, status, late_ns, took_ns)
        for slot, (ended, status, late_ns, took_ns, missed) in enumerate(told)
        if not missed
    ]
    written: list[Observation] = []
    books = Runs(LANE.name, LANE.kind, written.append)
    for one in made:
        books.add(one)
    books.close()
    runs = [Run.read(o, {LANE.name: LANE}, LATE_NS) for o in written]
    left = iter(made)
    for run in runs:
        assert run is not None
        mine = [next(left) for _ in range(run.count)]
        assert {one.slot for one in mine} == set(range(run.first_slot, run.last_slot + 1))
        for k, one in enumerate(mine):
            assert (one.ended, one.status) == (run.ended, run.status)
            assert run.begun_lo(k) <= one.begun_ns <= run.begun_hi(k)
            assert one.begun_ns + one.took_ns <= run.over_hi(k)
            hull = run.hull(k, k + 1)
            assert hull.lo <= one.begun_ns <= one.begun_ns + one.took_ns <= hull.hi
        whole = run.hull(0, run.count)
        assert whole.hi >= max(one.begun_ns + one.took_ns for one in mine)
        for k, after in pairwise(range(run.count)):
            assert run.begun_hi(k) <= run.begun_hi(after)
            assert run.over_hi(k) <= run.over_hi(after)
    assert next(left, None) is None


def test_a_steady_stretch_is_one_line_and_ends_after_ten_seconds() -> None:
    written: list[Observation] = []
    books = Runs(LANE.name, LANE.kind, written.append)
    for slot in range(250):
        books.add(request(slot, Ending.RESPONSE, 200, 0, 1000))
    books.close()
    assert [o.data["count"] for o in written] == [100, 100, 50]


def test_a_line_that_cannot_be_one_is_not_read() -> None:
    written: list[Observation] = []
    books = Runs(LANE.name, LANE.kind, written.append)
    for slot in range(3):
        books.add(request(slot, Ending.RESPONSE, 200, 0, 1000))
    books.close()
    (line,) = written
    for name, wrong in (("ended", "well"), ("count", 0), ("last_slot", 0), ("last_ns", -1)):
        odd = Observation(
            source=line.source,
            event=line.event,
            at=line.at,
            subject=line.subject,
            data={**line.data, name: wrong},
        )
        assert Run.read(odd, {LANE.name: LANE}, LATE_NS) is None
