"""One-way flows over loopback: real sends, real receipts, and what the core makes of them."""

from __future__ import annotations

import json
import signal
from typing import Any

from pytest_drainwatch.core.clock import clocks
from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.core.flow.report import flow_reports
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.udp.continuity import PhaseKind
from pytest_drainwatch.core.udp.one_way import told_by_the_probe
from pytest_drainwatch.flows.clockid import clock_id
from pytest_drainwatch.workload.logs import parse_log_line
from tests.core.story import total
from tests.loopback.rig import LOOPBACK, Agent, Part, Probe, Rig, restart
from tests.loopback.servers import ScriptedUdp, pong

FLOWS = 3
RATE_HZ = 50


def one_way(rig: Rig, probe: Probe) -> Agent:
    end = {"address": LOOPBACK, "port": probe.udp_port, "flows": FLOWS}
    agent = rig.agent(udp_one_way=end, udp_rate_hz=RATE_HZ)
    agent.await_line(lambda s: s["phase"] == "holding", "holding")
    return agent


def received(probe: Probe, at_least: int) -> None:
    """Until the probe told of so many datagrams of each flow."""

    def enough(line: dict[str, Any]) -> bool:
        rows = line.get("flows", []) if line["event"] == "udp_received" else []
        return len(rows) >= FLOWS and all(row["count"] >= at_least for row in rows)

    probe.await_line(enough, f"{at_least} datagrams of each flow")


def logged(probe: Probe) -> list[Observation]:
    parsed = (parse_log_line(json.dumps(line), str(probe.uid)) for line in probe.lines)
    return [seen for seen in parsed if seen is not None]


def judged(part: Part, *probes: Probe) -> tuple[FlowReport, ...]:
    seen = [*part.seen, *(o for probe in probes for o in logged(probe))]
    told, notes = told_by_the_probe(seen, clocks(clock_id(), seen), ())
    assert notes == ()
    flows = flow_reports(told, 0, frozenset(), frozenset())
    assert len(flows) == FLOWS
    assert all(flow.one_way for flow in flows)
    return flows


def await_row(probe: Probe, flow: str, **wanted: int) -> None:
    """Until the probe told of ``flow`` with these values."""

    def told(line: dict[str, Any]) -> bool:
        rows = [row for row in line.get("flows", []) if row["flow"] == flow]
        return any(wanted.items() <= row.items() for row in rows)

    probe.await_line(told, f"{wanted} of {flow}")


def _sent(part: Part, flow: str) -> int:
    sent = part.one(flow, Event.FLOW_OPEN_AT_END).data["sent"]
    assert isinstance(sent, int)
    return sent


def test_received_to_the_end_is_survival(rig: Rig) -> None:
    probe = rig.probe()
    agent = one_way(rig, probe)
    received(probe, 30)
    part = rig.recorded(agent)
    for flow in part.flows():  # the probe's last lines come up to a second later
        await_row(probe, part.note(flow), count=_sent(part, flow))
    for report in judged(part, probe):
        assert (report.outcome, report.mechanism) == ("survived-observation-window", "none")
        told = report.continuity
        assert told is not None
        assert told.sent == told.answered == _sent(part, report.id)
        assert (told.lost, told.open, told.duplicated, told.reordered) == (0, 0, 0, 0)
        assert report.responders == (probe.responder,)


def test_two_agents_of_one_pod_have_flows_of_their_own(rig: Rig) -> None:
    """As when a path still leads here for a trial whose pod had this address before."""
    probe = rig.probe()
    agents = [one_way(rig, probe) for _ in range(2)]
    received(probe, 30)
    for agent in agents:
        agent.await_status(lambda _: True, "a status")
    parts = [rig.recorded(agent) for agent in agents]
    for part in parts:
        for flow in part.flows():
            await_row(probe, part.note(flow), count=_sent(part, flow))
    for part in parts:
        for report in judged(part, probe):
            told = report.continuity
            assert told is not None
            assert told.sent == told.answered == _sent(part, report.id)
            assert (told.duplicated, told.reordered) == (0, 0)


def test_a_restart_is_another_receiver_with_a_gap(rig: Rig) -> None:
    probe = rig.probe(DRAIN_BEHAVIOR="exit-now")
    agent = one_way(rig, probe)
    received(probe, 30)
    probe.signal(signal.SIGTERM)
    probe.wait()
    ended = probe.event("exiting")["mono_ns"]
    again = restart(rig, probe, "pod-a")
    began = again.event("listening")["mono_ns"]
    received(again, 30)
    part = rig.recorded(agent)
    for name in part.flows():  # the probe's last lines come up to a second later
        await_row(again, part.note(name), last_seq=_sent(part, name))
    for flow in judged(part, probe, again):
        # Loopback refuses what nobody listens to, and Linux tells even a sender that never reads.
        assert (flow.outcome, flow.mechanism) == ("severed", "refused")
        assert flow.responders == (probe.responder, again.responder)
        told = flow.continuity
        assert told is not None
        kinds = [phase.kind for phase in told.phases]
        assert (kinds[0], kinds[-1]) == (PhaseKind.ALIVE, PhaseKind.REHOMED)
        assert PhaseKind.REFUSED in kinds
        assert told.recovered_at_ns is not None
        assert told.gap_ns is not None
        # The truth lies in the intervals: the first probe's last moments, the second's first.
        assert flow.terminal_ns is not None
        assert flow.terminal_ns[0] <= ended
        assert told.recovered_at_ns[1] >= began
        assert told.gap_ns[1] >= began - ended
        assert told.sent == _sent(part, flow.id)
        assert told.sent >= total(told.answered, told.lost)


def test_a_stopped_receiver_is_silence_without_an_error(rig: Rig) -> None:
    """Nothing is lost while it is stopped: its socket keeps what came, and it is told later."""
    probe = rig.probe(DRAIN_BEHAVIOR="ignore")
    agent = one_way(rig, probe)
    received(probe, 30)
    probe.signal(signal.SIGSTOP)
    agent.await_status(lambda s: True, "a status")
    part = rig.recorded(agent)
    probe.signal(signal.SIGCONT)
    for flow in part.flows():
        await_row(probe, part.note(flow), last_seq=_sent(part, flow))
    assert part.all(Event.FLOW_ICMP) == []
    assert {flow.outcome for flow in judged(part, probe)} == {"survived-observation-window"}


def test_an_answer_to_what_expects_none_is_a_stranger_s(rig: Rig) -> None:
    with ScriptedUdp(lambda seq, peer: [pong(seq)] if seq == 20 else []) as server:
        end = {"address": LOOPBACK, "port": server.port, "flows": 1}
        agent = rig.agent(udp_one_way=end, udp_rate_hz=RATE_HZ)
        agent.await_line(lambda s: s["phase"] == "holding", "holding")
        began = agent.await_status(lambda s: True, "a status")["at_ns"]
        agent.await_status(lambda s: bool(s["at_ns"] - began > 1e9), "a second more")
        part = rig.recorded(agent)
    assert part.one("udp-oneway-0001", Event.FLOW_GARBAGE).data["count"] == 1
