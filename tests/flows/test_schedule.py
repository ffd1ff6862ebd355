"""The plan: even phases, times that no reply moves, no catching up, and two densities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.flows.density import Densities, Stretch
from pytest_drainwatch.flows.schedule import (
    Cadence,
    Schedule,
    first_slot_ns,
    phase_ns,
)

PERIODS = st.integers(1_000_000, 10_000_000_000)
MS = 1_000_000
END = 700 * MS


@dataclass(slots=True, eq=False)
class Flow:
    cadence: Cadence
    sending: bool = True
    proto: str = "udp"


def steady(period_ns: int) -> Flow:
    """A flow with one rate."""
    return Flow(Cadence(period_ns, period_ns))


# --- phases ---------------------------------------------------------------------------


@given(period=PERIODS, count=st.integers(2, 300))
def test_phases_leave_no_large_gap(period: int, count: int) -> None:
    """Three-gap theorem: with the golden ratio no gap exceeds 2.7 of the mean one."""
    phases = sorted(phase_ns(index, period) for index in range(count))
    assert phases[0] >= 0
    assert phases[-1] < period
    gaps = [b - a for a, b in zip(phases, [*phases[1:], phases[0] + period], strict=True)]
    assert max(gaps) <= 2.7 * period / count + 1


@given(period=PERIODS, count=st.integers(2, 200), first=st.integers(-(10**5), 10**5))
def test_no_two_flows_send_together(period: int, count: int, first: int) -> None:
    """Any ``n`` consecutive flows are at least a quarter of the mean gap apart."""
    phases = sorted(phase_ns(index, period) for index in range(first, first + count))
    gaps = [b - a for a, b in zip(phases, [*phases[1:], phases[0] + period], strict=True)]
    assert min(gaps) >= period / (4 * count) - 1


@given(
    epoch=st.integers(0, 10**15),
    index=st.integers(0, 10**5),
    period=PERIODS,
    later=st.integers(-(10**10), 10**12),
)
def test_the_first_slot_is_on_the_grid_and_not_past(
    epoch: int, index: int, period: int, later: int
) -> None:
    now = epoch + later
    slot = first_slot_ns(epoch, index, period, now)
    assert slot >= now
    assert (slot - epoch - phase_ns(index, period)) % period == 0
    assert slot - max(now, epoch) < 2 * period


# --- one density ----------------------------------------------------------------------


def missed(schedule: Schedule, end_ns: int = 10**18) -> int:
    """In all stretches."""
    return sum(s.book(p).missed for s in schedule.densities.until(end_ns) for p in ("tcp", "udp"))


def test_slots_do_not_drift_with_lateness() -> None:
    schedule, flow = Schedule(0), steady(100)
    schedule.add(flow, 0, 0)
    taken = []
    for now in (0, 130, 220, 399):  # late by 0, 30, 20, 99
        due = schedule.take(now)
        assert due is not None
        taken.append(due.slot_ns)
    assert taken == [0, 100, 200, 300]
    assert missed(schedule) == 0


def test_a_missed_slot_is_counted_and_never_made_up_for() -> None:
    schedule, flow = Schedule(0), steady(100)
    schedule.add(flow, 0, 0)
    first, second = schedule.take(0), schedule.take(450)
    assert first is not None
    assert second is not None
    assert (first.slot_ns, second.slot_ns) == (0, 400)
    assert schedule.take(450) is None
    assert missed(schedule) == 3
    assert schedule.next_ns == 500


def test_a_missed_slot_is_as_late_as_it_was_when_it_was_given_up() -> None:
    """An agent that slept for twenty periods was not late by one."""
    schedule, flow = Schedule(0), steady(100)
    schedule.add(flow, 0, 0)
    for now in (0, 2050):
        due = schedule.take(now)
        assert due is not None
        due.book.lateness.add(now - due.slot_ns)
    (stretch,) = schedule.densities.until(2051)
    told = stretch.book("udp").told()
    assert (told["sends"], told["missed_slots"]) == (2, 19)
    assert told["late_max_ns"] == 1950
    half = told["late_p50_ns"]
    assert isinstance(half, int)
    assert half >= 950


def test_a_flow_that_stopped_gets_no_slots() -> None:
    schedule, gone, here = Schedule(0), steady(100), steady(100)
    schedule.add(gone, 0, 0)
    schedule.add(here, 0, 0)
    gone.sending = False
    due = schedule.take(0)
    assert due is not None
    assert due.flow is here
    assert schedule.take(99) is None


# --- two densities --------------------------------------------------------------------

Plan = Sequence[Interval]


def slots_by_rule(
    epoch: int, index: int, cadence: Cadence, dense: Plan, lo: int, hi: int
) -> list[int]:
    """What the module promises, the slow way: both grids, each where its density holds."""
    found = set()
    for period, wanted in ((cadence.dense_ns, True), (cadence.sparse_ns, False)):
        slot = first_slot_ns(epoch, index, period, lo)
        while slot < hi:
            if any(at.lo <= slot < at.hi for at in dense) is wanted:
                found.add(slot)
            slot += period
    return sorted(found)


@st.composite
def plans(draw: st.DrawFn) -> list[Interval]:
    """Dense stretches in order and apart, in milliseconds that may touch the grid."""
    edges = draw(st.lists(st.integers(0, 500), max_size=8, unique=True).map(sorted))
    return [Interval(lo * MS, hi * MS) for lo, hi in zip(edges[::2], edges[1::2], strict=False)]


@st.composite
def cadences(draw: st.DrawFn) -> Cadence:
    dense = draw(st.integers(5, 40))
    return Cadence(dense * MS, draw(st.integers(dense, 120)) * MS)


def replan(schedule: Schedule, plan: Plan, now: int, chunk: int = 10**9) -> None:
    schedule.replan(plan, now)
    while not schedule.settle(chunk):
        pass


def drive(schedule: Schedule, until: int) -> dict[int, list[int]]:
    """Take every slot at its very time; returns them per flow (by id)."""
    taken: dict[int, list[int]] = {}
    while (due_ns := schedule.next_ns) is not None and due_ns < until:
        due = schedule.take(due_ns)
        if due is not None:
            assert due.slot_ns == due_ns
            due.book.lateness.add(0)
            taken.setdefault(id(due.flow), []).append(due.slot_ns)
    return taken


@settings(deadline=None)
@given(plan=plans(), cadence=cadences(), count=st.integers(1, 12), epoch=st.integers(0, 10**9))
def test_slots_are_a_function_of_epoch_index_and_plan(
    plan: list[Interval], cadence: Cadence, count: int, epoch: int
) -> None:
    plan = [at + Interval.point(epoch) for at in plan]
    flows = [Flow(cadence) for _ in range(count)]
    schedule = Schedule(epoch)
    replan(schedule, plan, epoch)
    for index, flow in enumerate(flows):
        schedule.add(flow, index, epoch)
    until = epoch + END
    taken = drive(schedule, until)
    for index, flow in enumerate(flows):
        wanted = slots_by_rule(epoch, index, cadence, plan, epoch, until)
        assert taken.get(id(flow), []) == wanted


@settings(deadline=None)
@given(
    plan=plans(),
    wrong=plans(),
    cadence=cadences(),
    at_ms=st.tuples(st.integers(0, 400), st.integers(0, 400)).map(sorted),
    chunk=st.integers(1, 5),
)
def test_a_plan_that_comes_later_gives_the_same_slots_from_then_on(
    plan: list[Interval], wrong: list[Interval], cadence: Cadence, at_ms: list[int], chunk: int
) -> None:
    """Dense until a plan comes; a second plan replaces the first; both as if known before."""
    first_ns, second_ns = (ms * MS + 1 for ms in at_ms)
    late = Schedule(0)
    flows = [Flow(cadence) for _ in range(7)]
    for index, flow in enumerate(flows):
        late.add(flow, index, 0)
    taken = Counter[tuple[int, int]]()

    def until(end_ns: int) -> None:
        for key, slots in drive(late, end_ns).items():
            taken.update((key, slot) for slot in slots)

    until(first_ns)
    replan(late, wrong, first_ns, chunk)
    until(second_ns)
    late.replan(wrong, second_ns)
    late.settle(chunk)  # and the last plan comes before all flows follow that one
    replan(late, plan, second_ns, chunk)
    until(END)
    whole = [Interval(0, first_ns)]
    whole += [i for at in wrong if (i := cut(at, first_ns, second_ns))]
    whole += [i for at in plan if (i := cut(at, second_ns, END))]
    for index, flow in enumerate(flows):
        mine = sorted(slot for key, slot in taken if key == id(flow))
        assert mine == slots_by_rule(0, index, cadence, whole, 0, END)
    assert set(taken.values()) <= {1}, "no slot is taken twice"


def test_a_slot_of_the_plan_before_is_not_taken() -> None:
    """Not even by a flow that has not been moved yet."""
    schedule, flow = Schedule(0), Flow(Cadence(10 * MS, 100 * MS))
    schedule.add(flow, 0, 0)
    assert schedule.take(0) is not None
    assert schedule.next_ns == 10 * MS
    schedule.replan([], 5 * MS)
    assert schedule.take(10 * MS) is None
    assert schedule.next_ns == 100 * MS
    assert schedule.settle(1)


def cut(at: Interval, lo: int, hi: int) -> Interval | None:
    """The part of the half-open stretch ``at`` within ``[lo, hi)``."""
    lo, hi = max(at.lo, lo), min(at.hi, hi)
    return Interval(lo, hi) if lo < hi else None


@settings(deadline=None)
@given(
    plan=plans(),
    cadence=cadences(),
    stalls=st.lists(st.integers(1, 200), max_size=6),
    end_ms=st.integers(0, 100),
)
def test_what_was_planned_was_sent_or_missed_in_every_stretch(
    plan: list[Interval], cadence: Cadence, stalls: list[int], end_ms: int
) -> None:
    """However long the agent does not look, the books of each stretch balance."""
    schedule = Schedule(0)
    replan(schedule, plan, 0)
    flows = [Flow(cadence, proto=proto) for proto in ("tcp", "udp", "udp")]
    for index, flow in enumerate(flows):
        schedule.add(flow, index, 0)
    now = 0
    for stall in [*stalls, end_ms]:
        now += stall * MS
        while (due := schedule.take(now)) is not None:
            due.book.lateness.add(now - due.slot_ns)
            index = flows.index(due.flow)  # type: ignore[arg-type]
            later = slots_by_rule(0, index, cadence, plan, due.slot_ns + 1, now + 1)
            assert later == [], "of several slots that are due the last one is taken"
    for stretch in schedule.densities.until(now + 1):
        booked = Counter(tcp=0, udp=0)
        for index, flow in enumerate(flows):
            hi = min(stretch.hi_ns, now + 1)
            planned = slots_by_rule(0, index, cadence, plan, stretch.lo_ns, hi)
            booked[flow.proto] += len(planned)
        for proto in ("tcp", "udp"):
            book = stretch.book(proto)
            assert book.sends + book.missed == booked[proto]


@settings(deadline=None)
@given(plan=plans(), cadence=cadences())
def test_a_stretch_counts_the_flows_that_had_a_slot_in_it(
    plan: list[Interval], cadence: Cadence
) -> None:
    schedule = Schedule(0)
    replan(schedule, plan, 0)
    flows = [Flow(cadence) for _ in range(5)]
    for index, flow in enumerate(flows):
        schedule.add(flow, index, 0)
    taken = drive(schedule, END)
    for stretch in schedule.densities.until(END):
        had = [f for f in flows if any(inside(stretch, s) for s in taken.get(id(f), ()))]
        assert stretch.book("udp").flows == len(had)


def inside(stretch: Stretch, slot_ns: int) -> bool:
    return stretch.lo_ns <= slot_ns < stretch.hi_ns


@given(plan=plans(), now_ms=st.integers(0, 600))
def test_stretches_cover_all_time_without_overlap(plan: list[Interval], now_ms: int) -> None:
    densities = Densities(0)
    densities.replan(plan, now_ms * MS)
    stretches = list(densities.until(10**18))
    assert stretches[0].lo_ns == 0
    for one, other in pairwise(stretches):
        assert one.lo_ns < one.hi_ns == other.lo_ns
        assert one.dense is not other.dense, "neighbours of one density are one stretch"
    assert not stretches[-1].dense


def test_when_the_density_rises_flows_change_one_after_the_other() -> None:
    """No burst: within any dense period each flow sends at most once."""
    cadence = Cadence(16 * MS, 100 * MS)
    flows = [Flow(cadence) for _ in range(100)]
    schedule = Schedule(0)
    replan(schedule, [Interval(1000 * MS, 2000 * MS)], 0)
    for index, flow in enumerate(flows):
        schedule.add(flow, index, 0)
    taken = drive(schedule, 2500 * MS)
    everything = sorted(slot for slots in taken.values() for slot in slots)
    for lo in range(900 * MS, 2100 * MS, MS):
        # 100 flows in 16 ms: 6.25 a millisecond; golden phases allow 2.7 of the mean gap.
        assert sum(1 for slot in everything if lo <= slot < lo + MS) <= 2 * 7
    for slots in taken.values():
        rising = [b - a for a, b in pairwise(slots) if a < 1000 * MS <= b]
        assert all(gap < 100 * MS + 16 * MS for gap in rising)


def test_flows_that_ended_are_forgotten_when_a_plan_comes() -> None:
    schedule = Schedule(0)
    flows = [steady(100) for _ in range(10)]
    for index, flow in enumerate(flows):
        schedule.add(flow, index, 0)
    for flow in flows[::2]:
        flow.sending = False
    replan(schedule, [], 50, chunk=3)
    taken = drive(schedule, 1000)
    assert set(taken) == {id(flow) for flow in flows[1::2]}
