"""Cases of section B, TCP, against real processes."""

from __future__ import annotations

import signal
import time

from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.probing.judge import new_connections
from pytest_drainwatch.core.probing.pieces import Surroundings, all_tried
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.stall import stalls_of
from tests.loopback.rig import Part, Rig, restart
from tests.loopback.tried import Tried, await_tried, trying

INTERVAL_MS, PAUSE_S, BEFORE = 10, 2, 50


def test_c19_new_connections_keep_their_schedule_through_a_restart(rig: Rig) -> None:
    """100 a second, kill -9, back after 2 s: attempts = planned, and the outage between."""
    probe = rig.probe("pod-a")
    agent = rig.agent(probers=[trying(probe.tcp_port, interval_ms=INTERVAL_MS)])
    told = await_tried(agent, "answered", BEFORE)["probers"]["tcp-new"]["finished"]
    t0_ns = time.monotonic_ns()
    probe.signal(signal.SIGKILL)
    probe.wait()
    killed = Interval(t0_ns, time.monotonic_ns())
    time.sleep(PAUSE_S)
    began_ns = time.monotonic_ns()
    again = restart(rig, probe, "pod-b")
    back = Interval(began_ns, again.event("listening")["mono_ns"])
    await_tried(agent, "finished", told + 2 * PAUSE_S * 1000 // INTERVAL_MS)
    part = rig.recorded(agent)
    missed = Tried(part).summary["missed_slots"]
    around = Surroundings(
        t0_ns=t0_ns,
        targets={},
        workload={"pod-a", "pod-b"},
        names={},
        all_pods_known=True,
        stalls=stalls_of(part.seen),
    )
    (found,) = new_connections(all_tried(part.seen, around), around)
    # One attempt was under way when it was killed, and one slot was due when we stopped.
    made = sum(found.results.values())
    assert planned(part, t0_ns) - missed - 2 <= made <= planned(part, t0_ns) + 2
    assert (found.failed_before, found.results_before) == (0, {"answered": found.attempts_before})
    assert {who.pod_uid for who in found.answered_by} >= {"pod-b"}
    failing = found.observed_failing
    assert failing is not None
    # An attempt that the kill cut off was reset; the port refused all others until it was back.
    assert {str(run.result) for run in found.runs} <= {
        Result.ANSWERED,
        Result.REFUSED,
        Result.RESET,
        Result.UNFINISHED,
    }
    lasts = Interval(*failing.lasts_ns)
    assert lasts.hi >= PAUSE_S * NS_PER_S
    assert failing.first_ns[1] >= 0
    assert lasts.lo <= back.hi - killed.lo
    assert failing.last_ns[0] <= back.hi - t0_ns
    assert failing.failures == failing.attempts == found.failed, "nobody answered in between"
    assert found.last_answered_ns is not None
    assert found.last_answered_ns[0] > failing.last_ns[1], "and then they were answered again"


def planned(part: Part, since_ns: int) -> int:
    """How many attempts the interval alone asks for since then."""
    (summary,) = part.all(Event.PROBER_SUMMARY)
    return (summary.at.hi - since_ns) // int(str(summary.data["period_ns"]))
