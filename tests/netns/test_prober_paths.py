"""The prober in networks of our own: paths that lead nowhere, and limits of this side."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.probing.result import Result
from tests.loopback.rig import Agent, Rig
from tests.loopback.tried import Tried, await_tried, trying
from tests.netns.network import Network, link_to

pytestmark = pytest.mark.parametrize("network", ["pod"], indirect=True)

ENOUGH = 40
NOWHERE = "10.93.0.5"
SUBJECTS = ("tcp-new", "udp-new")


def both(port: int, **more: Any) -> list[dict[str, Any]]:
    return [trying(port, proto, **more) for proto in ("tcp", "udp")]


def tried(rig: Rig, agent: Agent, count: int = ENOUGH) -> list[Tried]:
    for subject in SUBJECTS:
        await_tried(agent, "finished", count, subject)
    part = rig.recorded(agent)
    return [Tried(part, subject) for subject in SUBJECTS]


def reject(network: Network, *how: str) -> None:
    """Let the node answer for what it will not forward, as kube-proxy's rules do."""
    network.node("ip", "route", "add", "10.93.0.0/24", "via", network.address)
    try:
        network.node("iptables", "-A", "FORWARD", "-d", NOWHERE, "-j", "REJECT", *how)
    except AssertionError as error:
        pytest.skip(f"needs iptables with REJECT: {error}")


def without_limit(network: Network) -> None:
    network.node("sysctl", "-q", "-w", "net.ipv4.icmp_ratelimit=0")
    network.node("sysctl", "-q", "-w", "net.ipv4.icmp_msgs_per_sec=100000")


@pytest.mark.parametrize(
    ("how", "result", "errno"),
    [
        ((), Result.REFUSED, "ECONNREFUSED"),
        # A soft error for a connected UDP socket: only its error queue knows (FACTS K18).
        (("--reject-with", "icmp-host-unreachable"), Result.UNREACHABLE, "EHOSTUNREACH"),
        (("--reject-with", "icmp-net-unreachable"), Result.UNREACHABLE, "ENETUNREACH"),
    ],
)
def test_what_the_node_answers_is_told(
    rig: Rig, network: Network, how: tuple[str, ...], result: Result, errno: str
) -> None:
    reject(network, *how)
    without_limit(network)
    agent = rig.agent(probers=both(7001, address=NOWHERE), prefix=network.client.prefix)
    for one in tried(rig, agent):
        assert one.ways == [(result, None, errno)]


def test_with_the_limit_most_of_it_is_silence(rig: Rig, network: Network) -> None:
    """K13: that is why a timeout may be a refusal that was never sent."""
    reject(network)
    prober = trying(7001, address=NOWHERE, patience_ms=300)
    agent = rig.agent(probers=[prober], prefix=network.client.prefix)
    await_tried(agent, "finished", ENOUGH)
    one = Tried(rig.recorded(agent))
    assert one.counts[Result.REFUSED] >= 1
    assert one.counts[Result.TIMEOUT] > one.counts[Result.REFUSED]


@pytest.mark.parametrize(
    ("route", "errno"),
    [
        (None, "ENETUNREACH"),
        ("unreachable", "EHOSTUNREACH"),
        ("prohibit", "EACCES"),
        ("blackhole", "EINVAL"),
    ],
)
def test_a_route_that_we_lack_or_refuse_is_our_own_limit(
    rig: Rig, network: Network, route: str | None, errno: str
) -> None:
    """Nothing was sent: it tells nothing of the workload."""
    if route is None:
        network.client("ip", "route", "del", "default")
    else:
        network.client("ip", "route", "add", route, "10.93.0.0/24")
    agent = rig.agent(probers=both(7001, address=NOWHERE), prefix=network.client.prefix)
    for one in tried(rig, agent):
        assert one.ways == [(Result.CLIENT_LIMIT, None, errno)]
    assert [told["failed"] for told in agent.lines[-1]["probers"].values()] == [0, 0]


def test_what_the_path_prohibits_is_unreachable(rig: Rig, network: Network) -> None:
    """ICMPv6 has an errno for it that a call of our own may also return."""
    link = {"client": link_to(network.client, network.node)}
    link["node"] = link_to(network.node, network.client)
    for name, host in (("client", network.client), ("node", network.node)):
        address = f"fd00:91::{'1' if name == 'client' else '2'}/64"
        try:
            host("ip", "-6", "addr", "add", address, "dev", link[name], "nodad")
        except AssertionError as error:
            pytest.skip(f"needs IPv6: {error}")
    network.node("sysctl", "-q", "-w", "net.ipv6.conf.all.forwarding=1")
    network.node("sysctl", "-q", "-w", "net.ipv6.icmp.ratelimit=0")
    network.node("ip", "-6", "route", "add", "prohibit", "fd00:93::/64")
    network.client("ip", "-6", "route", "add", "fd00:93::/64", "via", "fd00:91::2")
    agent = rig.agent(probers=both(7001, address="fd00:93::5"), prefix=network.client.prefix)
    for one in tried(rig, agent):
        assert one.ways == [(Result.UNREACHABLE, None, "EACCES")]


def test_a_rejecting_rule_of_this_host_is_a_refusal(rig: Rig, network: Network) -> None:
    """As kube-proxy's, where the agent runs on the node: the send itself fails with EPERM."""
    network.client("iptables", "-A", "OUTPUT", "-d", NOWHERE, "-j", "REJECT")
    network.client("sysctl", "-q", "-w", "net.ipv4.icmp_ratelimit=0")
    network.client("sysctl", "-q", "-w", "net.ipv4.icmp_msgs_per_sec=100000")
    probers = both(7001, address=NOWHERE, patience_ms=200)
    agent = rig.agent(probers=probers, prefix=network.client.prefix)
    for one in tried(rig, agent):
        assert one.ways == [(Result.REFUSED, None, "ECONNREFUSED")]


def test_a_black_hole_is_a_timeout(rig: Rig, network: Network) -> None:
    network.node("ip", "route", "add", "blackhole", "10.93.0.0/24")
    probers = both(7001, address=NOWHERE, patience_ms=200)
    agent = rig.agent(probers=probers, prefix=network.client.prefix)
    for one in tried(rig, agent):
        assert one.ways == [(Result.TIMEOUT, None, None)]
        assert one.runs[0]["took_min_ns"] >= 200 * NS_PER_MS


def test_a_path_that_heals_is_seen_to(rig: Rig, network: Network) -> None:
    probe = rig.probe(prefix=network.server.prefix, BIND=network.address)
    network.node("ip", "route", "add", "blackhole", f"{network.address}/32")
    probers = [
        trying(probe.tcp_port, "tcp", address=network.address, source_address="10.91.0.1"),
        trying(probe.udp_port, "udp", address=network.address, source_address="10.91.0.1"),
    ]
    agent = rig.agent(probers=probers, prefix=network.client.prefix)
    for subject in SUBJECTS:
        await_tried(agent, "finished", ENOUGH, subject)
    network.node("ip", "route", "del", "blackhole", f"{network.address}/32")
    for subject in SUBJECTS:
        await_tried(agent, "answered", ENOUGH, subject)
    part = rig.recorded(agent)
    for subject in SUBJECTS:
        one = Tried(part, subject)
        assert one.summary["source"] == "10.91.0.1"
        assert one.ways[0] == (Result.TIMEOUT, None, None)
        assert (Result.ANSWERED, probe.responder, None) in one.ways


def test_a_lost_syn_is_a_timeout_though_its_repetition_is_answered(
    rig: Rig, network: Network
) -> None:
    """Linux sends it again after a second; by then the attempt was given up."""
    probe = rig.probe(prefix=network.server.prefix, BIND=network.address)
    network.node("ip", "route", "add", "blackhole", f"{network.address}/32")
    prober = trying(probe.tcp_port, address=network.address)
    agent = rig.agent(probers=[prober], prefix=network.client.prefix)
    await_tried(agent, "attempts", 20)
    healed_ns = time.monotonic_ns()
    network.node("ip", "route", "del", "blackhole", f"{network.address}/32")
    await_tried(agent, "answered", ENOUGH)
    one = Tried(rig.recorded(agent))
    assert one.counts[Result.TIMEOUT] >= 19
    assert all(run["first_ns"] > healed_ns for run in one.runs if run["responder"] is not None)


def test_even_if_the_agent_slept_until_it_was_answered(rig: Rig, network: Network) -> None:
    """Awake again it finds connections that the second SYN made."""
    probe = rig.probe(prefix=network.server.prefix, BIND=network.address)
    network.node("ip", "route", "add", "blackhole", f"{network.address}/32")
    prober = trying(probe.tcp_port, address=network.address)
    agent = rig.agent(probers=[prober], prefix=network.client.prefix)
    await_tried(agent, "attempts", 20)
    agent.signal(signal.SIGSTOP)
    healed_ns = time.monotonic_ns()
    network.node("ip", "route", "del", "blackhole", f"{network.address}/32")
    time.sleep(1.7)
    agent.signal(signal.SIGCONT)
    await_tried(agent, "answered", ENOUGH)
    one = Tried(rig.recorded(agent))
    assert one.counts[Result.TIMEOUT] >= 19
    assert set(one.counts) == {Result.TIMEOUT, Result.ANSWERED}
    assert all(run["first_ns"] > healed_ns for run in one.runs if run["responder"] is not None)


@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_source_ports_that_run_out_are_our_own_limit(
    rig: Rig, network: Network, proto: str
) -> None:
    """C69: they look like refused service, and are none."""
    network.client("sysctl", "-q", "-w", "net.ipv4.ip_local_port_range=40000 40099")
    network.node("ip", "route", "add", "blackhole", f"{network.address}/32")
    prober = trying(
        7001, proto, address=network.address, source_address="10.91.0.1", patience_ms=200
    )
    # Somebody else has all but one, which the check beforehand does not know.
    kind = "SOCK_STREAM" if proto == "tcp" else "SOCK_DGRAM"
    hold = (
        f"import socket, sys; held = [socket.socket(2, socket.{kind}) for _ in range(99)];"
        "[sock.bind(('', 40000 + number)) for number, sock in enumerate(held)];"
        "print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [*network.client.prefix, sys.executable, "-c", hold],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        agent = rig.agent(probers=[prober], prefix=network.client.prefix)
        subject = f"{proto}-new"
        told = await_tried(agent, "finished", 2 * ENOUGH, subject)
    finally:
        holder.communicate()
    await_tried(agent, "finished", told["probers"][subject]["finished"] + ENOUGH, subject)
    one = Tried(rig.recorded(agent), subject)
    assert one.counts[Result.CLIENT_LIMIT] > ENOUGH
    assert set(one.ways) == {
        (Result.CLIENT_LIMIT, None, "EADDRINUSE"),
        (Result.TIMEOUT, None, None),
    }
    # Held ports shorten the round: at the end fewer than all were had, and more than one.
    assert 5 * NS_PER_MS < one.summary["ports_round_ns"] < 100 * 5 * NS_PER_MS
    assert agent.lines[-1]["probers"][subject]["failed"] == one.counts[Result.TIMEOUT]


def test_connected_to_itself_is_refused(rig: Rig, network: Network) -> None:
    """Nobody listens there, and the kernel has only that port to give."""
    network.client("sysctl", "-q", "-w", "net.ipv4.ip_local_port_range=40000 40000")
    prober = trying(40000, interval_ms=30, patience_ms=20)
    agent = rig.agent(probers=[prober], prefix=network.client.prefix)
    await_tried(agent, "finished", 10)
    one = Tried(rig.recorded(agent))
    assert (Result.REFUSED, None, None) in one.ways, "nobody said so"
    assert one.counts[Result.ANSWERED] == one.counts[Result.FOREIGN] == 0
    assert one.counts[Result.NEVER_SERVED] == one.counts[Result.RESET] == 0
