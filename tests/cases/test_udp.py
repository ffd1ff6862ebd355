"""Cases of section A: UDP, and the connection tracking under it."""

from __future__ import annotations

import signal
import time

import pytest

from pytest_drainwatch import App, Readiness, Scenario, Trial
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.core.flow.report import flow_reports
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.stall import stalls_of
from pytest_drainwatch.core.udp.continuity import RecoveredBy
from tests.core import story as s
from tests.core.story import NEW, OLD
from tests.loopback.rig import Part, Rig, restart
from tests.loopback.servers import POD_A, STRANGER, ScriptedUdp, pong

MS = NS_PER_MS
GRACE_S, DRAIN_S = 8, 5


def judged(*flows: list[Observation], pods: tuple[str, ...] = (NEW,)) -> tuple[FlowReport, ...]:
    """The reports of flows whose pod OLD was deleted; ``pods`` belong to the workload too."""
    others = [s.pod(uid, 30) for uid in pods]
    return derive(s.recording([s.accepted()], *flows, s.cluster(), others)).trial.flows


def end(flow: str, ms: float = 60_000) -> Observation:
    return s.client(Event.FLOW_OPEN_AT_END, flow, s.at(ms), sent=1, answered=1)


def test_c02_an_entry_that_blackholes_recovers_or_says_that_it_never_did() -> None:
    """No retries, no new socket: the same flow is lost, and then answered or not."""
    lost = s.unanswered("udp-0001", 5000, 31_000, 1560, end=31_020)
    back = [
        s.responder("udp-0001", NEW, 4999, 31_020, previous=OLD),
        s.answered("udp-0001", NEW, 31_017, 59_999, (1700, 3000)),
    ]
    never = s.unanswered("udp-0002", 5000, 59_999, 3300)
    recovered, blackholed = judged(
        [*s.alive("udp-0001", 4999), lost, *back, end("udp-0001")],
        [*s.alive("udp-0002", 4999), never, end("udp-0002")],
    )
    assert recovered.outcome == blackholed.outcome == "severed"
    assert (recovered.mechanism, blackholed.mechanism) == ("rehomed", "silence")
    assert recovered.continuity is not None
    assert recovered.continuity.recovered_at_ns == (31_000 * MS, 31_020 * MS)
    assert recovered.continuity.recovered_by is RecoveredBy.ANOTHER
    assert blackholed.continuity is not None
    assert blackholed.continuity.recovered_at_ns is None
    assert blackholed.continuity.note == "did not come back within the observation window"


def test_c03_each_flow_has_its_own_gap_and_names_both_pods() -> None:
    """k of n flows, not a boolean: one moves at once, one loses two seconds, one is lost."""

    def moved(flow: str, lost_ms: float) -> list[Observation]:
        heard = 5000 + lost_ms + 17
        lost = [s.unanswered(flow, 5000, 5000 + lost_ms, 120)] if lost_ms else []
        return [
            *s.alive(flow, 4999),
            *lost,
            s.responder(flow, NEW, 4999, heard, previous=OLD),
            s.answered(flow, NEW, heard - 1, 59_999, (300, 3000)),
            end(flow),
        ]

    gone = [*s.alive("udp-0003", 4999), s.unanswered("udp-0003", 5000, 59_999, 3300)]
    flows = judged(moved("udp-0001", 0), moved("udp-0002", 2000), [*gone, end("udp-0003")])
    assert [f.mechanism for f in flows] == ["rehomed", "rehomed", "silence"]
    for flow in flows[:2]:
        assert [who.partition("/")[0] for who in flow.responders] == [OLD, NEW]
    gaps = [flow.continuity.gap_ns for flow in flows if flow.continuity]
    assert gaps[0] is not None
    assert gaps[1] is not None
    assert gaps[0][1] < 50 * MS
    assert gaps[1][0] >= 2000 * MS
    assert gaps[2] is None


@pytest.mark.cluster
@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(
                grace_period_s=GRACE_S,
                drain_ns=DRAIN_S * NS_PER_S,
                readiness_on_drain=readiness,
            ),
            settle_ns=1 * NS_PER_S,
            name=f"udp-with-readiness-{readiness}",
        )
        for readiness in Readiness
    ],
    ids=lambda scenario: scenario.id,
)
def test_c06_serving_and_not_the_drain_decides_where_udp_goes(trial: Trial) -> None:
    """Readiness failed: re-homed while the old pod still drains. Kept: served to its end."""
    assert trial.tcp.drained == 10
    term = trial.summary.trigger_to_sigterm_ns
    assert term is not None
    ends = [f.terminal_ns for f in trial.flows if f.proto == "udp"]
    assert all(ends)
    before_the_end = [e for e in ends if e is not None and e[1] - term[0] < DRAIN_S * NS_PER_S]
    if trial.scenario.app.readiness_on_drain is Readiness.FAIL:
        assert trial.udp.mechanisms == {"rehomed": 10}
        assert len(before_the_end) == 10, "conntrack let go of a pod that does not serve (K3)"
    else:
        assert before_the_end == []
        _served_to_the_end_and_then_moved(trial)


def _served_to_the_end_and_then_moved(trial: Trial) -> None:
    """By the old pod alone until it exited, then by the replacement: the same flows, re-homed.

    A send that met the closed port before conntrack let go was refused, and moved after.
    """
    (old,) = trial.report.trial.trigger.targets
    assert set(trial.udp.mechanisms) <= {"rehomed", "refused", "unreachable"}
    (gone,) = [end for end in trial.report.trial.pod_ends if end.pod_uid == old]
    assert gone.ended_ns is not None
    for flow in (f for f in trial.flows if f.proto == "udp"):
        first, then = [who.partition("/")[0] for who in flow.responders]
        assert first == old
        assert then != old
        assert flow.outcome == "severed"
        assert flow.continuity is not None
        assert flow.continuity.recovered_by is RecoveredBy.ANOTHER
        assert flow.continuity.recovered_at_ns is not None
        assert flow.continuity.recovered_at_ns[1] >= gone.ended_ns[0]


def test_c07_acks_of_another_instance_are_no_survival() -> None:
    """Acks 1-20 from one instance, 21-60 from another: severed at 21, whoever answers."""
    flow = "udp-0001"
    (report,) = judged(
        [
            s.connected(flow),
            s.responder(flow, OLD, -4999, -4998),
            s.answered(flow, OLD, -4999, 500, (1, 20)),
            s.responder(flow, NEW, 499.8, 520, previous=OLD),
            s.answered(flow, NEW, 517, 60_000, (21, 60)),
            end(flow, 60_001),
        ]
    )
    assert (report.outcome, report.mechanism) == ("severed", "rehomed")
    assert report.last_answered_seq == 20
    assert report.last_data_t_ms == 500, "of the first instance, as the ancestor means it"
    assert report.terminal_ns == (round(499.8 * MS), 520 * MS)


@pytest.mark.parametrize(
    ("newcomer", "verdict"),
    [
        (STRANGER, ("severed", "foreign-responder")),
        (POD_A, ("survived-observation-window", "none")),
    ],
)
def test_c09_a_recycled_address_answers_for_somebody_else(
    rig: Rig, newcomer: str, verdict: tuple[str, str]
) -> None:
    """Well-formed frames, another workload: whatever the counts, this is no survival."""

    def script(seq: int, peer: str) -> list[bytes]:
        return [pong(seq, POD_A if seq < 20 else newcomer)]

    with ScriptedUdp(script) as server:
        agent = rig.agent(udp=(server.port, 1))
        agent.holding(60)
        part = rig.recorded(agent)
    assert part.verdict("udp-0001", {"pod-a"}) == verdict
    (flow,) = flow_reports(part.seen, 0, {"pod-a"}, {"pod-a"})
    assert (str(flow.outcome), str(flow.mechanism)) == verdict
    named = f"answered by {STRANGER}, was {POD_A}" if newcomer == STRANGER else None
    assert flow.detail == named
    assert (flow.answered or 0) >= 60, "answered all the time, which makes it no better"


def test_c19_the_schedule_is_kept_through_an_outage(rig: Rig) -> None:
    """Killed at full rate and started again after 2 s: sends = planned, the outage between."""
    flows, rate_hz, pause_s = 5, 100, 2
    probe = rig.probe("pod-a")
    agent = rig.agent(udp=(probe.udp_port, flows), udp_rate_hz=rate_hz)
    agent.holding(50)
    before_ns = time.monotonic_ns()
    probe.signal(signal.SIGKILL)
    probe.wait()
    killed = Interval(before_ns, time.monotonic_ns())
    agent.await_status(lambda status: status["udp"]["refused"] == flows, "all flows refused")
    time.sleep(pause_s)
    before_ns = time.monotonic_ns()
    again = restart(rig, probe, "pod-b")
    back = Interval(before_ns, again.event("listening")["mono_ns"])
    agent.await_status(lambda status: status["udp"]["moved"] == flows, "all flows moved")
    part = rig.recorded(agent)
    sent = 0
    for flow in flow_reports(part.seen, 0, {"pod-a"}, {"pod-a", "pod-b"}, stalls_of(part.seen)):
        last = part.one(flow.id, Event.FLOW_OPEN_AT_END).data
        booked = sum(
            int(str(o.data["count"])) + int(str(o.data.get("lost", 0)))
            for o in part.of(flow.id)
            if o.event in (Event.FLOW_ANSWERED, Event.FLOW_UNANSWERED)
        )
        assert last["sent"] == booked, "every send is answered or unanswered, none forgotten"
        sent += booked
        assert flow.outcome == "severed"
        assert flow.responders == (probe.responder, again.responder)
        assert flow.continuity is not None
        # The last request may be on its way when the agent stops: that is no part of this.
        (outage,) = [o for o in flow.continuity.outages if o.began_ns == flow.terminal_ns]
        began, recovered = Interval(*outage.began_ns), Interval(*(outage.recovered_at_ns or (0, 0)))
        assert began.intersect(killed) is not None
        assert recovered.intersect(back) is not None
        gap_ns = flow.continuity.gap_ns
        assert gap_ns is not None
        assert gap_ns[0] <= back.hi - killed.lo
        assert gap_ns[1] >= back.lo - killed.hi >= pause_s * NS_PER_S
    assert _planned(part, flows, rate_hz) == sent


def _planned(part: Part, flows: int, rate_hz: int) -> int:
    """How many were sent; with those missed, they are what rate and duration ask for."""
    told = part.all(Event.AGENT_SENDING)
    sends = [int(str(o.data["sends"])) for o in told]
    missed = [int(str(o.data["missed_slots"])) for o in told]
    wanted = sum(o.at.width for o in told) * flows * rate_hz / NS_PER_S
    assert abs(sum(sends) + sum(missed) - wanted) <= flows * len(told)
    assert wanted >= flows * rate_hz * 2, "through the outage, and not only before it"
    (summary,) = part.all(Event.AGENT_SUMMARY)
    assert summary.data["missed_slots"] == sum(missed), "counted, not hidden"
    return sum(sends)
