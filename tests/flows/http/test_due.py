"""When lanes that ask once are due: a function of the plan and the lane's number."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.http.ending import LaneKind
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.scenario.http import Http
from pytest_drainwatch.flows.http.config import HttpConfig
from pytest_drainwatch.flows.http.due import Once
from pytest_drainwatch.flows.http.lane import OPENING
from pytest_drainwatch.flows.http.request import Request

CONFIG = HttpConfig.of(
    Http(in_flight=1, in_flight_path="/slow", in_flight_ns=8 * NS_PER_S),
    address="192.0.2.1",
    port=80,
)
TRIGGER_NS = 100 * NS_PER_S


@dataclass(slots=True)
class Asked:
    """A lane that writes down what it was asked."""

    kind: LaneKind
    index: int = 0
    pooled: object = None
    waiting: int = 0
    slots: list[tuple[int, str, int]] = field(default_factory=list)
    unsent: list[int] = field(default_factory=list)

    def ask(self, slot: int, path: str, patience_ns: int, *, opening: bool = False) -> Request:
        assert opening == (slot == OPENING)
        self.slots.append((slot, path, patience_ns))
        return Request(slot, 0, path)

    def not_sent(self, slot: int, at_ns: int) -> None:
        self.unsent.append(slot)


def once(kind: LaneKind, index: int = 0) -> tuple[Asked, Once]:
    lane = Asked(kind, index, pooled="a connection")
    due = Once(lane, CONFIG, 0)  # type: ignore[arg-type]
    due.fire(0)
    assert [slot for slot, _, _ in lane.slots] == [OPENING]
    return lane, due


@given(st.integers(0, 999))
def test_idle_lanes_ask_within_five_seconds_after_the_trigger(index: int) -> None:
    _, due = once(LaneKind.IDLE, index)
    due.plan(TRIGGER_NS, 0)
    assert due.next_ns is not None
    assert 0 <= due.next_ns - TRIGGER_NS < 5 * NS_PER_S


def test_no_two_idle_lanes_ask_at_once() -> None:
    times = set()
    for index in range(1000):
        _, due = once(LaneKind.IDLE, index)
        due.plan(TRIGGER_NS, 0)
        times.add(due.next_ns)
    assert len(times) == 1000


@given(st.integers(0, 999))
def test_requests_in_flight_are_under_way_at_the_trigger(index: int) -> None:
    _, due = once(LaneKind.IN_FLIGHT, index)
    due.plan(TRIGGER_NS, 0)
    assert due.next_ns is not None
    assert 0.8 * NS_PER_S <= TRIGGER_NS - due.next_ns <= 7.2 * NS_PER_S


def test_one_that_should_be_in_flight_already_is_sent_at_once() -> None:
    lane, due = once(LaneKind.IN_FLIGHT)
    now_ns = TRIGGER_NS - 10
    due.plan(TRIGGER_NS, now_ns)
    assert due.next_ns == now_ns
    due.fire(now_ns)
    assert lane.slots[-1] == (0, "/slow", CONFIG.timeout_ns + CONFIG.in_flight_ns)
    assert due.next_ns is None


@pytest.mark.parametrize("kind", [LaneKind.IDLE, LaneKind.IN_FLIGHT])
def test_a_trigger_that_was_blocked_is_planned_again(kind: LaneKind) -> None:
    lane, due = once(kind)
    due.plan(TRIGGER_NS, 0)
    due.fire(TRIGGER_NS + 6 * NS_PER_S)
    due.plan(2 * TRIGGER_NS, TRIGGER_NS + 7 * NS_PER_S)
    assert due.planned
    due.fire(2 * TRIGGER_NS + 6 * NS_PER_S)
    assert [slot for slot, _, _ in lane.slots[1:]] == [0, 1]


@pytest.mark.parametrize("kind", [LaneKind.IDLE, LaneKind.IN_FLIGHT])
def test_a_plan_for_the_same_trigger_asks_nothing_again(kind: LaneKind) -> None:
    """The conductor plans anew shortly before the trigger, and finds it some ms later."""
    _, due = once(kind)
    due.plan(TRIGGER_NS, 0)
    due.fire(TRIGGER_NS + 6 * NS_PER_S)
    due.plan(TRIGGER_NS + 50_000_000, TRIGGER_NS - NS_PER_S)
    assert not due.planned
    due.plan(TRIGGER_NS + NS_PER_S, TRIGGER_NS - NS_PER_S)
    assert due.planned
    # What was not asked yet moves with the trigger.
    due.plan(TRIGGER_NS + NS_PER_S + 50_000_000, TRIGGER_NS - NS_PER_S)
    assert due.planned


def test_a_plan_without_a_trigger_asks_nothing() -> None:
    lane, due = once(LaneKind.IDLE)
    due.plan(None, 0)
    due.end(NS_PER_S)
    assert (due.next_ns, lane.unsent) == (None, [])


def test_what_was_planned_and_is_not_due_when_all_ends_is_told() -> None:
    lane, due = once(LaneKind.IDLE)
    due.plan(TRIGGER_NS, 0)
    due.end(NS_PER_S)
    assert lane.unsent == [0]


def test_an_idle_lane_opens_again_only_before_the_trigger() -> None:
    _, due = once(LaneKind.IDLE)
    assert due.reopen(0)
    due.fire(NS_PER_S)
    due.plan(TRIGGER_NS, 0)
    assert due.reopen(TRIGGER_NS - NS_PER_S)
    assert not due.reopen(TRIGGER_NS - 1)
    assert not due.reopen(TRIGGER_NS + 1)


def test_an_idle_lane_without_its_connection_opens_again_for_the_next_plan() -> None:
    lane, due = once(LaneKind.IDLE)
    lane.pooled = None
    due.plan(TRIGGER_NS, 50)
    assert due.next_ns == 50
    due.fire(50)
    assert [slot for slot, _, _ in lane.slots] == [OPENING, OPENING]
