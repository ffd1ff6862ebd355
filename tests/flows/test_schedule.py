"""The plan: even phases, times that no reply moves, no catching up."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.flows.schedule import Lateness, Schedule, first_slot_ns, phase_ns

PERIODS = st.integers(1_000_000, 10_000_000_000)


@dataclass(slots=True, eq=False)
class Flow:
    period_ns: int
    sending: bool = True


@given(period=PERIODS, count=st.integers(2, 300))
def test_phases_leave_no_large_gap(period: int, count: int) -> None:
    """Three-gap theorem: with the golden ratio no gap exceeds 2.7 of the mean one."""
    phases = sorted(phase_ns(index, period) for index in range(count))
    assert phases[0] >= 0
    assert phases[-1] < period
    gaps = [b - a for a, b in zip(phases, [*phases[1:], phases[0] + period], strict=True)]
    assert max(gaps) <= 2.7 * period / count + 1


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


def test_slots_do_not_drift_with_lateness() -> None:
    schedule, flow = Schedule(0), Flow(100)
    schedule.add(flow, 0, 0)
    taken = []
    for now in (0, 130, 220, 399):  # late by 0, 30, 20, 99
        due = schedule.take(now)
        assert due is not None
        taken.append(due[0])
    assert taken == [0, 100, 200, 300]
    assert schedule.missed == 0


def test_a_missed_slot_is_counted_and_never_made_up_for() -> None:
    schedule, flow = Schedule(0), Flow(100)
    schedule.add(flow, 0, 0)
    assert schedule.take(0) == (0, flow)
    assert schedule.take(450) == (400, flow)
    assert schedule.take(450) is None
    assert schedule.missed == 3
    assert schedule.next_ns == 500


def test_a_flow_that_stopped_gets_no_slots() -> None:
    schedule, gone, here = Schedule(0), Flow(100), Flow(100)
    schedule.add(gone, 0, 0)
    schedule.add(here, 0, 0)
    gone.sending = False
    assert schedule.take(0) == (0, here)
    assert schedule.take(99) is None


@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=200))
def test_quantiles_are_within_a_bucket_and_never_too_small(values: list[int]) -> None:
    lateness = Lateness()
    for value in values:
        lateness.add(value)
    assert lateness.max_ns == max(values)
    for q in (0.5, 0.99, 1.0):
        exact = sorted(values)[max(0, -(-int(q * len(values) * 100) // 100) - 1)]
        shown = lateness.quantile_ns(q)
        assert shown is not None
        assert shown >= exact
    assert lateness.quantile_ns(1.0) == max(values)


def test_no_sends_no_quantile() -> None:
    assert Lateness().quantile_ns(0.5) is None
