"""The prober in networks of our own: paths that lead nowhere, and limits of this side."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.probing.result import Result
from tests.loopback.rig import Agent, Rig
from tests.loopback.servers import ScriptedTcp
from tests.loopback.tried import Tried, await_tried, mute_listener, trying
from tests.netns.network import Network, NoNamespaces

ENOUGH = 40
NOWHERE = "10.93.0.5"
SUBJECTS = ("tcp-new", "udp-new")


@pytest.fixture
def network() -> Iterator[Network]:
    """Client, node and pod."""
    try:
        made = Network(pod=True)
    except NoNamespaces as reason:
        pytest.skip(str(reason))
    except FileNotFoundError as missing:
        pytest.skip(f"needs {missing.filename}")
    with made:
        yield made


@pytest.fixture
def rig(network: Network, tmp_path: Path) -> Iterator[Rig]:
    """Probes and agents that end before their network does."""
    made = Rig(tmp_path)
    try:
        yield made
    finally:
        made.close()


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
        assert one.but_the_last(Result.UNFINISHED) == [(result, None, errno)]


def test_with_the_limit_most_of_it_is_silence(rig: Rig, network: Network) -> None:
    """K13: that is why a timeout may be a refusal that was never sent."""
    reject(network)
    prober = trying(7001, address=NOWHERE, patience_ms=300)
    agent = rig.agent(probers=[prober], prefix=network.client.prefix)
    await_tried(agent, "finished", ENOUGH)
    one = Tried(rig.recorded(agent))
    assert one.counts[Result.REFUSED] >= 1
    assert one.counts[Result.TIMEOUT] > one.counts[Result.REFUSED]


def test_no_route_of_our_own_is_unreachable_too(rig: Rig, network: Network) -> None:
    network.client("ip", "route", "del", "default")
    agent = rig.agent(probers=both(7001, address=NOWHERE), prefix=network.client.prefix)
    for one in tried(rig, agent):
        assert one.ways == [(Result.UNREACHABLE, None, "ENETUNREACH")]


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
    network.node("ip", "route", "del", "blackhole", f"{network.address}/32")
    await_tried(agent, "answered", ENOUGH)
    one = Tried(rig.recorded(agent))
    assert one.counts[Result.TIMEOUT] >= 19
    assert all(run["took_max_ns"] < 10**9 for run in one.runs if run["responder"] is not None)


def test_source_ports_that_run_out_are_our_own_limit(rig: Rig, network: Network) -> None:
    """C69: they look like refused service, and are none."""
    probe = rig.probe(prefix=network.server.prefix, BIND=network.address)
    network.client("sysctl", "-q", "-w", "net.ipv4.ip_local_port_range=40000 40099")
    # The kernel gives none of these away, which the check beforehand does not know.
    network.client("sysctl", "-q", "-w", "net.ipv4.ip_local_reserved_ports=40000-40098")
    network.node("ip", "route", "add", "blackhole", f"{network.address}/32")
    prober = trying(
        probe.tcp_port, address=network.address, source_address="10.91.0.1", patience_ms=200
    )
    agent = rig.agent(probers=[prober], prefix=network.client.prefix)
    await_tried(agent, "finished", ENOUGH)
    network.node("ip", "route", "del", "blackhole", f"{network.address}/32")
    await_tried(agent, "answered", ENOUGH)
    one = Tried(rig.recorded(agent))
    assert one.counts[Result.CLIENT_LIMIT] > one.counts[Result.TIMEOUT] >= 1
    limited = [way for way in one.ways if way[0] == Result.CLIENT_LIMIT]
    assert set(limited) == {(Result.CLIENT_LIMIT, None, "EADDRNOTAVAIL")}
    assert {way[0] for way in one.ways} <= {
        Result.CLIENT_LIMIT, Result.TIMEOUT, Result.ANSWERED, Result.UNFINISHED,
    }  # fmt: skip


def test_udp_ports_that_run_out_are_our_own_limit(rig: Rig, network: Network) -> None:
    network.client("sysctl", "-q", "-w", "net.ipv4.ip_local_port_range=40000 40001")
    holder = rig.agent(
        probers=[trying(7001, "udp", address="10.91.0.2", interval_ms=100, patience_ms=60)],
        prefix=network.client.prefix,
    )
    await_tried(holder, "finished", 3, "udp-new")
    # Both ports, for as long as it takes.
    hold = (
        "import socket, sys; held = [socket.socket(2, 2) for _ in range(2)];"
        "[sock.bind(('', 40000 + i)) for i, sock in enumerate(held)]; sys.stdin.read()"
    )
    held = subprocess.Popen(
        [*network.client.prefix, sys.executable, "-c", hold], stdin=subprocess.PIPE
    )
    before = holder.lines[-1]["probers"]["udp-new"]["finished"]
    await_tried(holder, "finished", before + 10, "udp-new")
    held.communicate()
    one = Tried(rig.recorded(holder), "udp-new")
    assert (Result.CLIENT_LIMIT, None, "EADDRINUSE") in one.ways


def test_connected_to_itself_is_refused(rig: Rig, network: Network) -> None:
    """Nobody listens there, and the kernel has only that port to give."""
    network.client("sysctl", "-q", "-w", "net.ipv4.ip_local_port_range=40000 40000")
    prober = trying(40000, interval_ms=30, patience_ms=20)
    agent = rig.agent(probers=[prober], prefix=network.client.prefix)
    await_tried(agent, "finished", 10)
    one = Tried(rig.recorded(agent))
    assert (Result.REFUSED, None, "ECONNREFUSED") in one.ways
    assert one.counts[Result.ANSWERED] == one.counts[Result.FOREIGN] == 0
    assert one.counts[Result.NEVER_SERVED] == one.counts[Result.RESET] == 0


def test_descriptors_that_run_out_end_nothing(tmp_path: Path) -> None:
    """The check allows what other descriptors of the process then take."""
    rig = Rig(tmp_path)
    crowd = (
        "import os, sys; [os.dup2(0, number) for number in range(10, 40)];"
        "os.execvp(sys.argv[1], sys.argv[1:])"
    )
    with mute_listener() as port, ScriptedTcp(lambda peer: peer.serve(-1)) as server:
        probers = [trying(port, interval_ms=5, patience_ms=145)]  # 30 at once
        agent = rig.agent(
            tcp=(server.port, 2),
            probers=probers,
            prefix=("sh", "-c", 'ulimit -n 64; exec "$@"', "sh", sys.executable, "-c", crowd),
        )
        try:
            await_tried(agent, "finished", 3 * ENOUGH)
            agent.holding(5)
            part = rig.recorded(agent)
        finally:
            rig.close()
    one = Tried(part)
    assert (Result.CLIENT_LIMIT, None, "EMFILE") in one.ways, json.dumps(one.ways)
    assert one.counts[Result.NEVER_SERVED] >= 1
    assert len(part.all(Event.FLOW_OPEN_AT_END)) == 2
