"""What ICMP does and does not tell, over a real link (FACTS K13, K18, M11)."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest

from pytest_drainwatch.core.flow.life import live
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.udp.continuity import Continuity, PhaseKind
from pytest_drainwatch.core.udp.phases import continuity
from tests.core.story import total
from tests.loopback.rig import Agent, Part, Probe, Rig
from tests.netns.network import Host, Network, link_to

FLOWS = 20
RATE_HZ = 20
REFUSED, UNREACHABLE, SILENT = (
    ("severed", "refused"),
    ("severed", "unreachable"),
    ("severed", "silence"),
)


def start(rig: Rig, at: Host, address: str, client: Host) -> tuple[Probe, Agent]:
    probe = rig.probe(prefix=at.prefix, BIND=address, DRAIN_BEHAVIOR="exit-now")
    agent = rig.agent(
        udp=(probe.udp_port, FLOWS), prefix=client.prefix, address=address, udp_rate_hz=RATE_HZ
    )
    agent.holding(5)
    return probe, agent


def kill(probe: Probe) -> None:
    probe.signal(signal.SIGTERM)
    probe.wait()


def watch(agent: Agent, seconds: float) -> None:
    """Until so much time has passed on the agent's own clock."""
    began = agent.await_status(lambda s: True, "a status")["at_ns"]
    agent.await_status(lambda s: bool(s["at_ns"] - began > seconds * 1e9), f"{seconds} s more")


def history_of(part: Part, flow: str) -> Continuity:
    found = continuity(live(Proto.UDP, part.of(flow), frozenset()), part.of(flow), 0)
    assert found is not None
    return found


def icmp(part: Part, flow: str, code: int) -> list[Observation]:
    return [o for o in part.of(flow) if o.event is Event.FLOW_ICMP and o.data["code"] == code]


def test_on_loopback_every_flow_is_refused(rig: Rig, network: Network) -> None:
    """The ancestor's 10 of 10: loopback is exempt from the limit."""
    probe, agent = start(rig, network.client, "127.0.0.1", network.client)
    kill(probe)
    agent.await_status(lambda s: s["udp"]["refused"] == FLOWS, "all flows refused")
    part = rig.recorded(agent)
    assert [part.verdict(flow) for flow in part.flows()] == [REFUSED] * FLOWS


def test_over_a_link_a_refusal_is_evidence_and_its_absence_is_none(
    rig: Rig, network: Network
) -> None:
    """K13: the kernel refuses about six datagrams at once, then one a second."""
    probe, agent = start(rig, network.server, network.address, network.client)
    kill(probe)
    watch(agent, 4.5)
    part = rig.recorded(agent)
    verdicts = {flow: part.verdict(flow) for flow in part.flows()}
    assert set(verdicts.values()) == {REFUSED, SILENT}
    refused = [flow for flow, verdict in verdicts.items() if verdict == REFUSED]
    errors = sum(_int(o.data["count"]) for flow in refused for o in icmp(part, flow, 3))
    lost = total(*(history_of(part, flow).lost for flow in verdicts))
    assert errors < FLOWS, "far fewer refusals than flows"
    assert lost > 10 * errors, "though hundreds of datagrams were lost"
    for flow in verdicts:
        told = history_of(part, flow)
        assert told.recovered_at_ns is None
        kinds = [phase.kind for phase in told.phases]
        assert (PhaseKind.REFUSED in kinds) == (flow in refused)
        # Whether refused or silent, they ended at the same time, known equally well.
        end = live(Proto.UDP, part.of(flow), frozenset()).end
        assert end is not None
        assert end.width < 1e9


def test_without_the_limit_all_are_refused_over_the_link_too(rig: Rig, network: Network) -> None:
    """So it was the limit, and nothing of ours, that made the difference."""
    network.server("sysctl", "-q", "-w", "net.ipv4.icmp_ratelimit=0")
    probe, agent = start(rig, network.server, network.address, network.client)
    kill(probe)
    agent.await_status(lambda s: s["udp"]["refused"] == FLOWS, "all flows refused")
    part = rig.recorded(agent)
    assert [part.verdict(flow) for flow in part.flows()] == [REFUSED] * FLOWS


@pytest.mark.parametrize("network", ["pod"], indirect=True)
def test_a_host_that_answers_no_arp_is_unreachable_seconds_later(
    rig: Rig, network: Network
) -> None:
    """M11's second half: silence first, then type 3 code 1 from the node (K18)."""
    # One ICMP error per flow and more, not one a second for all of them.
    network.node("sysctl", "-q", "-w", "net.ipv4.icmp_ratelimit=0")
    _, agent = start(rig, network.server, network.address, network.client)
    link = link_to(network.node, network.server)
    gone_from = time.monotonic_ns()
    # Its link stays up: without a carrier the node would know at once.
    network.server("ip", "link", "set", link_to(network.server, network.node), "arp", "off")
    network.node("ip", "neigh", "flush", "dev", link)
    gone_by = time.monotonic_ns()
    agent.await_status(lambda s: s["udp"]["refused"] == FLOWS, "an error on every flow")
    watch(agent, 0.5)
    part = rig.recorded(agent)
    assert len(part.flows()) == FLOWS
    for flow in part.flows():
        assert part.verdict(flow) == UNREACHABLE
        first = icmp(part, flow, 1)[0]
        assert (first.data["type"], first.data["errno"]) == (3, "EHOSTUNREACH")
        assert first.data["offender"] == "10.91.0.2", "the node says so, not the pod"
        assert icmp(part, flow, 3) == []
        # Only ARP's own patience delays the error; the end was long before it.
        assert first.at.hi - gone_from > 2e9
        end = live(Proto.UDP, part.of(flow), frozenset()).end
        assert end is not None
        assert end.hi >= gone_from
        assert end.lo <= gone_by
        assert end.hi < first.at.lo
        kinds = [phase.kind for phase in history_of(part, flow).phases]
        assert kinds == [PhaseKind.ALIVE, PhaseKind.LOST, PhaseKind.UNREACHABLE]


def _int(value: Any) -> int:
    assert isinstance(value, int)
    return value
