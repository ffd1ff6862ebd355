"""One-way flows through a node that translates addresses, and into a black hole (C01)."""

from __future__ import annotations

import json
import re
import time

import pytest

from pytest_drainwatch.core.clock import clocks
from pytest_drainwatch.core.flow.report import flow_reports
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.udp.one_way import told_by_the_probe
from pytest_drainwatch.flows.clockid import clock_id
from pytest_drainwatch.flows.oneway import CALM_NS
from pytest_drainwatch.workload.logs import parse_log_line
from tests.core.story import total
from tests.loopback.rig import Agent, Probe, Rig
from tests.netns.network import Network, link_to
from tests.netns.test_lossy_path import needs_iptables

pytestmark = [needs_iptables, pytest.mark.parametrize("network", ["pod"], indirect=True)]
FLOWS, RATE_HZ = 5, 20


def start(rig: Rig, network: Network) -> tuple[Probe, Agent]:
    """Every flow has the node's address by the time the pod sees it."""
    out = link_to(network.node, network.server)
    network.node(
        "iptables", "-t", "nat", "-A", "POSTROUTING", "-o", out, "-j", "MASQUERADE", "--random"
    )
    probe = rig.probe(prefix=network.server.prefix, BIND=network.address)
    end = {"address": network.address, "port": probe.udp_port, "flows": FLOWS}
    agent = rig.agent(prefix=network.client.prefix, udp_one_way=end, udp_rate_hz=RATE_HZ)
    probe.await_line(
        lambda line: (
            len(line.get("flows", [])) == FLOWS and all(row["count"] >= 20 for row in line["flows"])
        ),
        "20 datagrams of each flow",
    )
    return probe, agent


def told(probe: Probe) -> dict[str, dict[str, int]]:
    """The last word about each flow."""
    return {row["flow"]: row for line in probe.lines for row in line.get("flows", [])}


def test_flows_behind_one_address_are_told_apart(rig: Rig, network: Network) -> None:
    probe, agent = start(rig, network)
    part = rig.recorded(agent)
    sent = {
        part.note(flow): part.one(flow, Event.FLOW_OPEN_AT_END).data["sent"]
        for flow in part.flows()
    }
    assert len(sent) == FLOWS
    probe.await_line(
        lambda _: {flow: row["count"] for flow, row in told(probe).items()} == sent,
        f"all of {sent}",
    )


def test_a_black_hole_lies_within_the_bounds(rig: Rig, network: Network) -> None:
    """The node drops what it forwards, and says nothing, as a stale entry does."""
    probe, agent = start(rig, network)
    before_ns = time.monotonic_ns()
    network.node("iptables", "-I", "FORWARD", "-p", "udp", "-j", "DROP")
    after_ns = time.monotonic_ns()
    began = agent.await_status(lambda s: True, "a status")["at_ns"]
    agent.await_status(lambda s: bool(s["at_ns"] - began > 4e9), "4 s more")
    part = rig.recorded(agent)
    (dropped,) = re.findall(
        r"^\s*(\d+)\s+\d+\s+DROP", network.node("iptables", "-nvxL", "FORWARD"), re.MULTILINE
    )
    assert part.all(Event.FLOW_ICMP) == []
    logged = (parse_log_line(json.dumps(line), str(probe.uid)) for line in probe.lines)
    seen = [*part.seen, *(o for o in logged if o is not None)]
    retold, notes = told_by_the_probe(seen, clocks(clock_id(), seen), ())
    assert notes == ()
    flows = flow_reports(retold, 0, frozenset(), frozenset())
    assert len(flows) == FLOWS
    lost = 0
    for flow in flows:
        assert (flow.outcome, flow.mechanism) == ("severed", "silence")
        assert flow.terminal_ns is not None
        lo, hi = flow.terminal_ns
        assert lo <= after_ns
        assert hi >= before_ns
        assert flow.continuity is not None
        assert flow.continuity.recovered_at_ns is None
        assert flow.continuity.sent == total(flow.continuity.answered, flow.continuity.lost)
        lost += total(flow.continuity.lost)
    assert lost == int(dropped), "the firewall's own count is the truth"


def test_a_second_outage_of_our_own_link_is_news(rig: Rig, network: Network) -> None:
    """No answer ends the first one; only that sends worked for a while tells them apart."""
    _, agent = start(rig, network)
    link = link_to(network.client, network.node)

    def outage() -> None:
        network.client("ip", "link", "set", link, "down")
        time.sleep(0.5)
        network.client("ip", "link", "set", link, "up")
        network.client("ip", "route", "replace", "default", "via", "10.91.0.2")

    outage()
    time.sleep(CALM_NS / 1e9 / 2)
    between_ns = time.monotonic_ns()
    time.sleep(CALM_NS / 1e9 / 2 + 1)
    outage()
    part = rig.recorded(agent)
    for flow in part.flows():
        errors = [o.at for o in part.of(flow) if o.event is Event.FLOW_WRITE_ERROR]
        assert any(at.hi < between_ns for at in errors)
        assert any(at.lo > between_ns for at in errors)
        assert not any(at.lo < between_ns < at.hi for at in errors)
