"""The parts of a simulated trial: kube-proxy's rules, Linux's ration of ICMP, the send plan."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval, merged
from pytest_drainwatch.core.scenario import App, Behavior, PreStop
from pytest_drainwatch.core.simulation.cluster import Conditions, EndpointsChange
from pytest_drainwatch.core.simulation.dataplane import DataPlane, told
from pytest_drainwatch.core.simulation.latencies import Latencies
from pytest_drainwatch.core.simulation.sends import Sends, stretches
from pytest_drainwatch.core.simulation.termination import Termination, termination
from pytest_drainwatch.flows.schedule import Cadence, Schedule

READY, ENDING = Conditions(serving=True, terminating=False), Conditions(True, True)
UNREADY = Conditions(serving=False, terminating=True)
SYNC_NS, CONNTRACK_NS, PERIOD_NS = 30 * NS_PER_MS, 40 * NS_PER_MS, NS_PER_S


def plane(*changes: tuple[int, dict[str, Conditions]]) -> DataPlane:
    """Of endpoints that change at these milliseconds, after ``a`` has been ready."""
    found = [EndpointsChange(-NS_PER_S, {"a": READY})]
    found += [EndpointsChange(ms * NS_PER_MS, endpoints) for ms, endpoints in changes]
    return DataPlane.of(found, sync_ns=SYNC_NS, conntrack_ns=CONNTRACK_NS, min_period_ns=PERIOD_NS)


def at(found: DataPlane, ms: int) -> tuple[str, ...]:
    return found.routable(ms * NS_PER_MS)


# --- kube-proxy -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("endpoints", "led_to"),
    [
        ({"a": READY, "b": READY}, ("a", "b")),
        ({"a": ENDING, "b": READY}, ("b",)),
        ({"a": ENDING}, ("a",)),  # nobody is ready: who still serves is led to
        ({"a": UNREADY}, ()),
        ({"a": UNREADY, "b": ENDING}, ("b",)),
        ({}, ()),
    ],
)
def test_ready_endpoints_else_serving_ones_else_none(
    endpoints: dict[str, Conditions], led_to: tuple[str, ...]
) -> None:
    """FACTS K2."""
    assert at(plane((10, endpoints)), 41) == led_to
    assert at(plane((10, endpoints)), 39) == ("a",)  # the sync is not over


def test_syncs_are_a_period_apart_counted_from_the_end_of_the_cleanup() -> None:
    """FACTS K8: the second one begins at 10 + 30 + 40 + 1000 ms, and takes what came until then."""
    found = plane((10, {"a": ENDING}), (500, {"a": ENDING, "b": READY}), (1079, {"b": READY}))
    assert [sync.at_ns // NS_PER_MS for sync in found.syncs[1:]] == [40, 1110]
    assert found.syncs[-1].endpoints == {"b": READY}
    later = plane((10, {"a": ENDING}), (500, {"a": ENDING, "b": READY}), (1081, {"b": READY}))
    assert [sync.at_ns // NS_PER_MS for sync in later.syncs[1:]] == [40, 1110, 2180]


def test_a_change_after_a_quiet_period_is_synced_at_once() -> None:
    found = plane((10, {"a": ENDING}), (9000, {"b": READY}))
    assert [sync.at_ns // NS_PER_MS for sync in found.syncs[1:]] == [40, 9030]


def test_udp_flows_are_led_anew_when_their_pod_does_not_serve_and_somebody_does() -> None:
    """FACTS K3: a NodePort that nobody serves is skipped, so their entries stay."""
    served = plane((10, {"a": UNREADY, "b": READY}))
    assert served.dropped_ns("a", 0) == (40 + 40) * NS_PER_MS
    assert plane((10, {"a": UNREADY})).dropped_ns("a", 0) is None
    assert plane((10, {"a": ENDING, "b": READY})).dropped_ns("a", 0) is None
    assert plane((10, {"b": READY})).dropped_ns("a", 0) is not None  # it is gone altogether


# --- Linux ------------------------------------------------------------------------------------


def test_a_burst_of_six_and_then_one_a_second() -> None:
    """FACTS K13."""
    many = [number * 10 * NS_PER_MS for number in range(300)]
    heard = [at_ns for at_ns, one in zip(many, told(many), strict=True) if one]
    assert heard[:6] == many[:6]
    assert [round(ns / NS_PER_S) for ns in heard[6:]] == [1, 2]
    assert told([0] * 7) == [True] * 6 + [False]
    assert told([number * 2 * NS_PER_S for number in range(20)]) == [True] * 20


# --- the kubelet and the probe -----------------------------------------------------------------


def ends(**app: object) -> Termination:
    return termination(App(**app), Latencies())  # type: ignore[arg-type]


def test_sigterm_waits_for_the_hook_and_sigkill_for_both() -> None:
    """FACTS K5."""
    plain, hook = ends(), ends(pre_stop=PreStop(sleep_s=7))
    assert hook.sigterm_ns - plain.sigterm_ns == 7 * NS_PER_S
    ignored = ends(behavior=Behavior.IGNORE, grace_period_s=10, pre_stop=PreStop(sleep_s=7))
    assert ignored.killed
    assert ignored.exit_ns - ignored.sigterm_ns == 3 * NS_PER_S + Latencies().kill_ns
    cut = ends(behavior=Behavior.IGNORE, grace_period_s=10, pre_stop=PreStop(sleep_s=10))
    assert cut.exit_ns - cut.sigterm_ns == 2 * NS_PER_S + Latencies().kill_ns


def test_a_killed_drain_has_no_deadline_and_one_that_ends_has() -> None:
    assert ends(drain_ns=4 * NS_PER_S, grace_period_s=5).deadline_ns is not None
    killed = ends(drain_ns=6 * NS_PER_S, grace_period_s=5)
    assert killed.killed
    assert killed.deadline_ns is None
    assert killed.exit_code == 137


# --- the send plan: that of the real flow agent ------------------------------------------------


class Sender:
    """What the agent's own schedule drives."""

    sending, proto = True, "tcp"

    def __init__(self, cadence: Cadence) -> None:
        self.cadence = cadence


@settings(max_examples=50)
@given(
    index=st.integers(1, 40),
    rates_hz=st.tuples(st.integers(1, 60), st.integers(1, 60)).map(sorted),
    dense=st.lists(st.tuples(st.integers(0, 9000), st.integers(1, 3000)), max_size=3),
)
def test_sends_are_those_of_the_real_agent(
    index: int, rates_hz: list[int], dense: list[tuple[int, int]]
) -> None:
    sparse_hz, dense_hz = rates_hz
    parts = merged(Interval(lo * NS_PER_MS, (lo + width) * NS_PER_MS) for lo, width in dense)
    end_ns = 10 * NS_PER_S
    schedule = Schedule(0)
    schedule.replan(parts, 0)
    sender = Sender(Cadence(NS_PER_S // dense_hz, NS_PER_S // sparse_hz))
    schedule.add(sender, index, 0)
    real: list[int] = []
    while (due_ns := schedule.next_ns) is not None and due_ns < end_ns:
        taken = schedule.take(due_ns)
        assert taken is not None
        real.append(taken.slot_ns)
    mine = Sends.of(index, stretches(parts, 0, end_ns), (dense_hz, sparse_hz))
    assert [sent_ns for _, sent_ns in mine.between(0, end_ns)] == real
    for number, sent_ns in enumerate(real, 1):
        assert mine.slot(number) == sent_ns
        assert mine.number_before(sent_ns) == number - 1
        assert mine.number_before(sent_ns + 1) == number
    for absent in (0, len(real) + 1):
        with pytest.raises(IndexError):
            mine.slot(absent)
