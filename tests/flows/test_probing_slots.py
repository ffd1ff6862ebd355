"""Which slots a prober tries: by epoch, interval and plan alone, each taken once or missed."""

from __future__ import annotations

from collections import Counter

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.flows.density import Densities, Stretch
from pytest_drainwatch.flows.probing.slots import Slots

MS = 1_000_000
END = 700 * MS
INTERVAL = 5 * MS
NAME = "tcp-new"


@st.composite
def plans(draw: st.DrawFn) -> list[Interval]:
    """Dense stretches in order and apart, in half milliseconds: some touch the grid."""
    edges = draw(st.lists(st.integers(0, 1200), max_size=8, unique=True).map(sorted))
    found = zip(edges[::2], edges[1::2], strict=False)
    return [Interval(lo * MS // 2, hi * MS // 2) for lo, hi in found]


def by_rule(epoch: int, every: int, dense: list[Interval], lo: int, hi: int) -> list[int]:
    """The slots of ``[lo, hi)``, the slow way."""
    found = []
    for slot in range((hi - epoch) // INTERVAL + 2):
        at = epoch + slot * INTERVAL
        if lo <= at < hi and (slot % every == 0 or any(d.lo <= at < d.hi for d in dense)):
            found.append(slot)
    return found


def tried(densities: Densities, *, epoch: int = 0, every: int = 10) -> Slots:
    return Slots(densities, NAME, epoch_ns=epoch, interval_ns=INTERVAL, every=every)


def punctual(slots: Slots, until: int) -> list[tuple[int, int]]:
    """Takes every slot at its very time: the slot, and how far apart they were said to be."""
    found = []
    while slots.next_ns < until:
        turn = slots.take(slots.next_ns)
        assert turn is not None
        turn.book.lateness.add(0)
        found.append((turn.slot, turn.every))
    return found


@settings(deadline=None)
@given(plan=plans(), every=st.integers(1, 20), epoch=st.integers(0, 40 * MS))
def test_slots_are_a_function_of_epoch_interval_and_plan(
    plan: list[Interval], every: int, epoch: int
) -> None:
    densities = Densities(0)
    densities.replan(plan, 0)
    found = punctual(tried(densities, epoch=epoch, every=every), END)
    assert [slot for slot, _ in found] == by_rule(epoch, every, plan, epoch, END)
    for slot, apart in found:
        dense = any(d.lo <= epoch + slot * INTERVAL < d.hi for d in plan)
        assert apart == (1 if dense else every)


@settings(deadline=None)
@given(
    plan=plans(),
    wrong=plans(),
    at_ms=st.tuples(st.integers(0, 400), st.integers(0, 400)).map(sorted),
)
def test_a_plan_changes_what_comes_after_it_alone(
    plan: list[Interval], wrong: list[Interval], at_ms: list[int]
) -> None:
    """Dense until a plan comes; a second one replaces the first."""
    first_ns, second_ns = (ms * MS + 1 for ms in at_ms)
    densities = Densities(0)
    slots = tried(densities)
    found = punctual(slots, first_ns)
    densities.replan(wrong, first_ns)
    slots.replanned()
    found += punctual(slots, second_ns)
    densities.replan(plan, second_ns)
    slots.replanned()
    found += punctual(slots, END)
    whole = [Interval(0, first_ns)]
    whole += [
        cut(at, first_ns, second_ns) for at in wrong if at.lo < second_ns and at.hi > first_ns
    ]
    whole += [cut(at, second_ns, END) for at in plan if at.hi > second_ns]
    assert [slot for slot, _ in found] == by_rule(0, 10, whole, 0, END)


def cut(at: Interval, lo: int, hi: int) -> Interval:
    return Interval(min(max(at.lo, lo), hi), max(lo, min(at.hi, hi)))


def test_what_was_due_before_a_plan_is_still_due() -> None:
    densities = Densities(0)
    slots = tried(densities)
    assert slots.take(0) is not None
    densities.replan([], 6 * MS)
    slots.replanned()
    turn = slots.take(8 * MS)
    assert turn is not None
    assert (turn.slot, turn.every) == (1, 1)
    assert slots.next_ns == 50 * MS


@settings(deadline=None)
@given(
    plan=plans(),
    every=st.integers(1, 20),
    stalls=st.lists(st.integers(1, 200), max_size=6),
    end_ms=st.integers(0, 100),
)
@example(plan=[Interval(20 * MS, 40 * MS)], every=10, stalls=[200], end_ms=0)
def test_every_planned_slot_is_tried_or_missed_where_it_lies(
    plan: list[Interval], every: int, stalls: list[int], end_ms: int
) -> None:
    """However long the agent does not look; the last that was due when it stops is neither."""
    densities = Densities(0)
    densities.replan(plan, 0)
    slots = tried(densities, every=every)
    now, taken = 0, []
    for stall in stalls:
        now += stall * MS
        while (turn := slots.take(now)) is not None:
            turn.book.lateness.add(now - slots.time_ns(turn.slot))
            taken.append(turn.slot)
            later = by_rule(0, every, plan, turn.slot * INTERVAL + 1, now + 1)
            assert later == [], "of several that are due the last is tried"
    now += end_ms * MS
    slots.skip(now)
    due = by_rule(0, every, plan, 0, now + 1)
    open_slot = {due[-1]} - set(taken)
    assert taken == sorted(set(taken) & set(due))
    booked, wanted = Counter[int](), Counter[int]()
    for number, stretch in enumerate(densities.until(now + 1)):
        book = stretch.book(NAME)
        booked[number] = book.sends + book.missed
        planned = [slot for slot in due if inside(stretch, slot * INTERVAL)]
        wanted[number] = len(set(planned) - open_slot)
        assert book.sends == len(set(planned) & set(taken))
    assert booked == wanted


def inside(stretch: Stretch, at_ns: int) -> bool:
    return stretch.lo_ns <= at_ns < stretch.hi_ns


def test_a_missed_slot_is_as_late_as_it_was_when_it_was_given_up() -> None:
    densities = Densities(0)
    densities.replan([Interval(100 * MS, 110 * MS)], 0)
    slots = tried(densities)
    assert slots.take(0) is not None
    turn = slots.take(149 * MS)
    assert turn is not None
    assert (turn.slot, turn.every) == (21, 1), "105 ms: 150 ms is not due yet"
    sparse, dense = list(densities.until(105 * MS))
    assert (sparse.book(NAME).missed, sparse.book(NAME).lateness.max_ns) == (1, 99 * MS)
    assert (dense.book(NAME).missed, dense.book(NAME).lateness.max_ns) == (1, 49 * MS)
