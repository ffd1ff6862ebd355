"""Cases of section G: the instrument measured with its own kind of measure."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_drainwatch.core.clock import clocks
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.core.flow.classify import classify
from pytest_drainwatch.core.flow.life import live
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval, Order
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.recording import Header, Recording, merge
from pytest_drainwatch.flows.clockid import clock_id
from pytest_drainwatch.workload.logs import parse_log_line
from tests.core import story as s
from tests.core.story import OLD
from tests.loopback.rig import Probe, Rig

TIMENS = [sys.executable, str(Path(__file__).parents[1] / "loopback" / "timens.py")]
DRAIN_NS = 400 * NS_PER_MS
SKEWS_MS = [-300, 300]


@dataclass(frozen=True, slots=True)
class Drained:
    """A drain of a real probe, and the instants at which SIGTERM was sent and that returned."""

    trial: TrialReport
    signalled: Interval


def drain(rig: Rig, skew_ms: int) -> Drained:
    """A probe with a clock of its own drains; what was seen of it is judged."""
    prefix = [*TIMENS, str(skew_ms * NS_PER_MS)]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to make a time namespace")
    probe = rig.probe(OLD, prefix=prefix, DRAIN_SECONDS=f"{DRAIN_NS // NS_PER_MS}ms")
    agent = rig.agent(tcp=(probe.tcp_port, 3), target=OLD)
    agent.holding(10)
    before_ns = time.monotonic_ns()
    probe.signal(signal.SIGTERM)
    signalled = Interval(before_ns, time.monotonic_ns())
    agent.ended("tcp", 3)
    probe.wait()
    return Drained(_judge(rig.recorded(agent).seen, probe, signalled), signalled)


def _judge(seen: list[Observation], probe: Probe, signalled: Interval) -> TrialReport:
    log = [parse_log_line(json.dumps(line), OLD) for line in probe.lines]
    deleted = Observation(
        source=Source.K8S,
        event=Event.POD,
        at=signalled,
        subject=OLD,
        data={"type": "MODIFIED", "name": "probe", "deletion_timestamp": "then"},
    )
    trigger = Observation(
        source=Source.ORCHESTRATOR,
        event=Event.TRIGGER_ACCEPTED,
        at=signalled,
        data={"verb": "delete", "attempt": 1, "targets": [OLD]},
    )
    over = Observation(
        source=Source.ORCHESTRATOR,
        event=Event.ALL_FLOWS_TERMINAL,
        at=Interval.point(time.monotonic_ns()),
    )
    header = Header(
        drainwatch_version="test",
        git_commit="test",
        trial_id="c53",
        wall_clock_start="",
        clock=clock_id(),
        scenario={"id": "c53", "config": {"tcp_flows": 3}},
        environment={},
    )
    return derive(
        Recording(header, merge([trigger, deleted, over], seen, [o for o in log if o]))
    ).trial


@pytest.mark.parametrize("skew_ms", SKEWS_MS)
def test_c53_a_skewed_probe_is_placed_where_it_was(rig: Rig, skew_ms: int) -> None:
    """A real probe whose clock is 300 ms off: the offset is bounded, and is in the bounds."""
    drained = drain(rig, skew_ms)
    trial = drained.trial
    (known,) = trial.clock
    assert not known.same_clock
    assert known.offset_ns is not None
    assert known.offset_ns[0] <= -skew_ms * NS_PER_MS <= known.offset_ns[1]
    term = trial.summary.trigger_to_sigterm_ns
    assert term is not None
    assert term[1] >= 0, "it was received after it was sent, whatever its own clock says"
    # The drain window lies between SIGTERM and the bye, on one and the same clock.
    byes = [f.terminal_ns for f in trial.flows]
    assert all(bye is not None and bye[1] - term[0] >= DRAIN_NS for bye in byes)
    assert trial.summary.tcp.drained == 3
    orders = {(o.first, o.second): o.order for o in trial.summary.orders}
    assert orders["sigterm", "last_flow_terminal"] is Order.BEFORE


def test_c53_the_skew_changes_nothing_and_zero_inside_means_indeterminate() -> None:
    """Recorded: the same trial under both skews; RTT 1 ms; bounds of half of it each way."""
    term, ready = 10.0, 10.2

    def judged(skew_ms: float) -> TrialReport:
        exchange = s.client(
            Event.CLOCK_EXCHANGE,
            f"{OLD}/n",
            s.at(0, 1),
            clock="boot-2/1",
            t1=s.ns(0),
            t2=s.ns(0.5 + skew_ms),
            t3=s.ns(0.5 + skew_ms),
            t4=s.ns(1),
        )
        frames = [
            s.endpoints(-100, (OLD, True, True, False)),
            s.endpoints(ready, (OLD, False, True, True)),
        ]
        log = [s.log(Event.SIGTERM_RECEIVED, term + skew_ms, clock="boot-2/1", nonce="n")]
        return derive(s.recording([s.accepted(), s.deleted()], frames, [exchange], log)).trial

    early, late = judged(-300), judged(300)
    assert early.summary == late.summary
    bounds = early.summary.trigger_to_sigterm_ns
    assert bounds is not None
    assert bounds[0] <= term * NS_PER_MS <= bounds[1]
    assert bounds[1] - bounds[0] == pytest.approx(NS_PER_MS, rel=0.01)
    order = {(o.first, o.second): o.order for o in early.summary.orders}
    assert order["sigterm", "endpoint_ready_false"] is Order.INDETERMINATE
    gap = early.summary.sigterm_to_ready_false_ns
    assert gap is not None
    assert gap[0] < 0 < gap[1], "negative values are kept, never clamped"


@pytest.mark.parametrize("ppm", [-80, 80])
def test_c53_a_drifting_clock_is_followed(ppm: int) -> None:
    """An hour at 80 ppm is 288 ms; exchanges every five seconds keep the bound narrow."""
    rate = 1 + ppm / 1e6
    seen = [
        s.client(
            Event.CLOCK_EXCHANGE,
            f"{OLD}/n",
            s.at(ms, ms + 1),
            clock="boot-2/1",
            t1=s.ns(ms),
            t2=s.ns((ms + 0.5) * rate),
            t3=s.ns((ms + 0.5) * rate),
            t4=s.ns(ms + 1),
        )
        for ms in range(0, 3_600_000, 5000)
    ]
    known = clocks(s.CLOCK, seen)["boot-2/1"]
    for at_ms in (1_000.0, 1_800_321.0, 3_599_000.0):
        reading = s.ns(at_ms * rate)
        offset = known.offset_at(reading)
        assert offset is not None
        truth = s.ns(at_ms) - reading
        assert offset.lo <= truth <= offset.hi
        assert offset.width < 2 * NS_PER_MS


def test_c68_a_client_that_slept_through_a_drain_blames_nobody(rig: Rig) -> None:
    """The ancestor called such a flow severed: its write deadline had expired meanwhile.

    Our agent is stopped before the probe closes, and goes on two seconds later.
    """
    probe = rig.probe(DRAIN_SECONDS="500ms")
    agent = rig.agent(tcp=(probe.tcp_port, 10), udp=(probe.udp_port, 3))
    agent.holding(10)
    probe.signal(signal.SIGTERM)
    probe.event("drain_started")
    agent.signal(signal.SIGSTOP)
    stopped_ns = time.monotonic_ns()
    closed_ns = probe.event("drain_deadline_reached")["mono_ns"]
    time.sleep(max(0.0, 2 - (time.monotonic_ns() - stopped_ns) / 1e9))
    agent.signal(signal.SIGCONT)
    agent.ended("tcp", 10)
    part = rig.recorded(agent)
    assert any(o.at.width >= NS_PER_S for o in part.all(Event.AGENT_STALLED))
    for flow in (f for f in part.flows() if f.startswith("tcp")):
        assert part.verdict(flow) == ("drained-clean-close", "announced-fin")
        end = part.one(flow, Event.FLOW_FIN).at
        assert end.lo <= closed_ns <= end.hi, "wide enough to hold the truth"
        assert end.width >= NS_PER_S


def test_c68_silence_that_nobody_listened_to_is_not_measured(rig: Rig) -> None:
    """The probe goes silent, and the client is stopped for most of that time."""
    probe = rig.probe()
    agent = rig.agent(udp=(probe.udp_port, 3))
    agent.holding(10)
    probe.signal(signal.SIGSTOP)
    agent.await_status(lambda status: status["udp"]["quiet"] == 3, "all flows quiet")
    agent.signal(signal.SIGSTOP)
    time.sleep(3.5)
    agent.signal(signal.SIGCONT)
    time.sleep(0.3)  # six and more datagrams go unanswered before it stops
    part = rig.recorded(agent)
    for flow in part.flows():
        silent_ns = part.one(flow, Event.FLOW_UNANSWERED).at.width
        assert silent_ns > 3 * NS_PER_S, "long enough to be called silence, had it been heard"
        assert part.verdict(flow) == ("not-measured", "client-stall")
        deaf = classify(live(Proto.UDP, part.of(flow), frozenset()))
        assert deaf == ("severed", "silence"), "what it would be without knowing of the stall"
