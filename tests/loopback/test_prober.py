"""The prober against real peers: each way that an attempt can go, and none of the others."""

from __future__ import annotations

import json
import signal
import socket
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.flows import limits
from pytest_drainwatch.flows.probing.ports import MOST_TRIES
from pytest_drainwatch.flows.process import ProberStatus, parse_status
from tests.loopback.rig import Probe, Rig, restart
from tests.loopback.servers import POD_A, Peer, ScriptedTcp, pong
from tests.loopback.tried import (
    Tried,
    await_tried,
    closed_port,
    full_listener,
    mute_listener,
    trying,
)

ENOUGH = 40
LONG_S = 10  # no loop is as late as that


def try_tcp(rig: Rig, port: int, count: int = ENOUGH, **more: Any) -> Tried:
    """What became of attempts, once so many have a result."""
    agent = rig.agent(probers=[trying(port, **more)])
    await_tried(agent, "finished", count)
    return Tried(rig.recorded(agent))


def test_who_answered(rig: Rig) -> None:
    probe = rig.probe()
    tried = try_tcp(rig, probe.tcp_port)
    assert tried.ways == [(Result.ANSWERED, probe.responder, None)]
    assert tried.counts[Result.ANSWERED] >= ENOUGH


def test_each_comes_from_the_next_port(rig: Rig) -> None:
    """A node sends a known address and port to where it sent them before (see ports.py)."""
    ports: list[int] = []

    def script(peer: Peer) -> None:
        ports.append(peer.port)
        peer.serve(1)
        peer.request()

    with ScriptedTcp(script) as server:
        tried = try_tcp(rig, server.port)
    low, high = limits.port_range() or (0, 0)
    count = high - low + 1
    assert len(set(ports)) == len(ports) == tried.summary["attempts"]
    # Threads may note them out of order, but they are neighbours, without those in use.
    assert max((port - ports[0] + MOST_TRIES) % count for port in ports) < 3 * MOST_TRIES + len(
        ports
    )
    assert 0 < tried.summary["ports_round_ns"] <= count * 5 * NS_PER_MS


def test_it_leaves_no_ports_in_time_wait(rig: Rig) -> None:
    probe = rig.probe()
    try_tcp(rig, probe.tcp_port)
    remote = f":{probe.tcp_port:04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    assert [line for line in lines if remote in line[1] + line[2] and line[3] == "06"] == []


def test_refused(rig: Rig) -> None:
    agent = rig.agent(probers=[trying(closed_port())])
    await_tried(agent, "failed", ENOUGH)
    tried = Tried(rig.recorded(agent))
    assert tried.ways == [(Result.REFUSED, None, "ECONNREFUSED")]
    told = agent.lines[-1]["probers"]["tcp-new"]
    made = tried.summary["attempts"]
    assert told == {"attempts": made, "answered": 0, "failed": made, "finished": made}


@pytest.mark.parametrize("asked", [True, False], ids=["after the request", "at once"])
def test_reset(rig: Rig, asked: bool) -> None:
    def script(peer: Peer) -> None:
        if asked:
            peer.request()
        peer.reset()

    with ScriptedTcp(script) as server:
        tried = try_tcp(rig, server.port)
    assert tried.ways == [(Result.RESET, None, "ECONNRESET")]


def test_accepted_and_never_served_by_a_silent_peer(rig: Rig) -> None:
    with mute_listener() as port:
        tried = try_tcp(rig, port, patience_ms=200)
    assert tried.ways == [(Result.NEVER_SERVED, None, None)]
    assert tried.runs[0]["took_min_ns"] >= 200 * NS_PER_MS


@pytest.mark.parametrize(
    ("said", "ends", "more"),
    [
        (b"", True, 0),
        (b"bye 0 drain-deadline\n", False, 0),
        (b"by", True, 0),
        (pong(1)[:20], True, 0),
        (b"by", True, socket.MSG_MORE),
    ],
    ids=["fin", "bye", "torn bye", "torn pong", "torn bye and fin in one segment"],
)
def test_a_farewell_is_no_service(rig: Rig, said: bytes, ends: bool, more: int) -> None:
    def script(peer: Peer) -> None:
        if peer.request() is not None:
            peer.sock.sendall(said, more)
            if ends:
                peer.half_close()
            peer.request()

    with ScriptedTcp(script) as server:
        tried = try_tcp(rig, server.port, patience_ms=LONG_S * 1000)
    assert tried.ways == [(Result.NEVER_SERVED, None, None)]
    longest_ns = max(run["took_max_ns"] for run in tried.runs)
    assert longest_ns < LONG_S * NS_PER_S, "at once, and not when patience ended"


def test_timeout(rig: Rig) -> None:
    """The kernel of a peer whose queue is full drops SYNs."""
    with full_listener() as port:
        tried = try_tcp(rig, port, patience_ms=200)
    assert tried.ways == [(Result.TIMEOUT, None, None)]
    assert tried.runs[0]["took_min_ns"] >= 200 * NS_PER_MS


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"SSH",
        b"x" * 600,
        pong(10**9),
        b"pong 1 2 3 nobody\n",
    ],
)
def test_foreign(rig: Rig, said: bytes) -> None:
    def script(peer: Peer) -> None:
        if peer.request() is not None:
            peer.send(said)
            peer.half_close()
            peer.request()

    with ScriptedTcp(script) as server:
        tried = try_tcp(rig, server.port)
    assert tried.ways == [(Result.FOREIGN, None, None)]


def test_an_answer_in_pieces_is_an_answer(rig: Rig) -> None:
    def script(peer: Peer) -> None:
        seq = peer.request()
        if seq is not None:
            whole = pong(seq)
            for start in range(0, len(whole), 40):
                peer.send(whole[start : start + 40])
                time.sleep(0.003)
            peer.request()

    with ScriptedTcp(script) as server:
        tried = try_tcp(rig, server.port, interval_ms=10)
    assert tried.ways == [(Result.ANSWERED, POD_A, None)]


def test_a_restart_is_seen_in_order(rig: Rig) -> None:
    old = rig.probe("pod-a", DRAIN_BEHAVIOR="exit-now")
    agent = rig.agent(probers=[trying(old.tcp_port), trying(old.udp_port, "udp")])
    for subject in ("tcp-new", "udp-new"):
        await_tried(agent, "answered", ENOUGH, subject)
    old.signal(signal.SIGTERM)
    old.wait()
    gone_ns = time.monotonic_ns()
    refused = await_tried(agent, "finished", 3 * ENOUGH)
    back_ns = time.monotonic_ns()
    new = restart(rig, old, "pod-b")
    for subject in ("tcp-new", "udp-new"):
        before = refused["probers"][subject]["finished"]
        await_tried(agent, "answered", before + ENOUGH, subject)
    part = rig.recorded(agent)
    for subject in ("tcp-new", "udp-new"):
        tried = Tried(part, subject)
        ways = tried.ways
        first = ways.index((Result.ANSWERED, old.responder, None))
        middle = ways.index((Result.REFUSED, None, "ECONNREFUSED"))
        last = ways.index((Result.ANSWERED, new.responder, None))
        assert first == 0 < middle < last
        refusals = [run for run in tried.runs if run["result"] == Result.REFUSED]
        assert any(run["first_ns"] < back_ns and run["last_ns"] > gone_ns for run in refusals)
        served = [run for run in tried.runs if run["responder"] == old.responder]
        assert served[-1]["last_ns"] < gone_ns
        assert min(run["first_ns"] for run in tried.runs if run["responder"] == new.responder) > (
            back_ns
        )


def test_a_server_that_stops_does_not_stop_the_attempts(rig: Rig) -> None:
    probe = rig.probe()
    agent = rig.agent(probers=[trying(probe.tcp_port, interval_ms=10, patience_ms=300)])
    await_tried(agent, "answered", ENOUGH)
    probe.signal(signal.SIGSTOP)
    stopped_ns = time.monotonic_ns()
    time.sleep(1.0)
    continued_ns = time.monotonic_ns()
    probe.signal(signal.SIGCONT)
    seen = agent.lines[-1]["probers"]["tcp-new"]["answered"]
    await_tried(agent, "answered", seen + 2 * ENOUGH)
    tried = Tried(rig.recorded(agent))
    unserved = [run for run in tried.runs if run["result"] == Result.NEVER_SERVED]
    assert unserved[0]["first_ns"] > stopped_ns - 300 * NS_PER_MS
    assert unserved[-1]["last_ns"] < continued_ns
    # 1 s at 100/s, without those that it answered late and those of slots missed here.
    assert sum(run["count"] for run in unserved) >= 60 - tried.summary["missed_slots"]
    assert tried.ways[0] == tried.ways[-1]


def test_an_agent_that_stops_blames_nobody(rig: Rig) -> None:
    probe = rig.probe()
    agent = rig.agent(probers=[trying(probe.tcp_port, patience_ms=300)])
    await_tried(agent, "answered", ENOUGH)
    agent.signal(signal.SIGSTOP)
    time.sleep(1.0)
    agent.signal(signal.SIGCONT)
    seen = agent.lines[-1]["probers"]["tcp-new"]["answered"]
    await_tried(agent, "answered", seen + 2 * ENOUGH)
    part = rig.recorded(agent)
    tried = Tried(part)
    assert tried.ways == [(Result.ANSWERED, probe.responder, None)]
    missed = tried.summary["missed_slots"]
    # 1 s of 5 ms slots; it tries once on waking, and a signal takes a moment to stop it.
    assert missed >= 180
    assert tried.summary["late_max_ns"] >= 900 * NS_PER_MS, "a missed slot is late"
    assert any(o.at.width > 900 * NS_PER_MS for o in part.all(Event.AGENT_STALLED))


def test_who_is_stopped_waits_for_the_results_of_what_is_open(rig: Rig) -> None:
    """The last second of a trial is one in which connections may have failed."""
    with mute_listener() as port:
        agent = rig.agent(probers=[trying(port, patience_ms=200)])
        await_tried(agent, "attempts", 10)
        tried = Tried(rig.recorded(agent))
    assert tried.ways == [(Result.NEVER_SERVED, None, None)]
    assert tried.summary["unfinished"] == 0


def test_what_is_open_for_longer_is_unfinished(rig: Rig) -> None:
    with mute_listener() as port:
        agent = rig.agent(probers=[trying(port, patience_ms=20_000)])
        await_tried(agent, "attempts", 10)
        tried = Tried(rig.recorded(agent))
    assert tried.ways[-1] == (Result.UNFINISHED, None, None)
    assert tried.summary["unfinished"] >= 10


def test_it_runs_beside_flows_and_the_status_tells(rig: Rig) -> None:
    probe = rig.probe()
    probers = [trying(probe.tcp_port), trying(probe.udp_port, "udp", interval_ms=50)]
    agent = rig.agent(tcp=(probe.tcp_port, 5), udp=(probe.udp_port, 5), probers=probers)
    await_tried(agent, "answered", 10, "udp-new")
    line = agent.holding(20)
    assert len(json.dumps(line)) < 4096, "a pipe takes that much whole"
    status = parse_status(json.dumps(line))
    assert status is not None
    assert set(status.probers) == {"tcp-new", "udp-new"}
    assert status.probers["tcp-new"].answered >= 1
    assert status.probers["tcp-new"].failed == 0
    part = rig.recorded(agent)
    assert len(part.all(Event.FLOW_OPEN_AT_END)) == 10
    opened_ns = max(o.at.hi for o in part.all(Event.FLOW_CONNECTED))
    for subject in ("tcp-new", "udp-new"):
        tried = Tried(part, subject)
        assert tried.ways == [(Result.ANSWERED, probe.responder, None)]
        assert tried.runs[0]["first_ns"] > opened_ns, "no attempt beside a storm of dials"


def test_a_status_without_probers_is_read_too() -> None:
    status = parse_status('{"phase": "holding"}')
    assert status is not None
    assert status.probers.get("tcp-new", ProberStatus()).answered == 0


def test_of_two_pods_each_is_named(rig: Rig) -> None:
    """Two of a kind behind one port: attempts go to one or the other, and both are counted."""
    names = ("pod-a/00aa", "pod-b/00bb")

    def script(peer: Peer) -> None:
        seq = peer.request()
        if seq is not None:
            peer.send(pong(seq, names[peer.number % 2]))
            peer.request()

    with ScriptedTcp(script) as server:
        tried = try_tcp(rig, server.port)
    found: Counter[str | None] = Counter()
    for run in tried.runs:
        found[run["responder"]] += run["count"]
    assert abs(found[names[0]] - found[names[1]]) <= 2


def test_the_probe_takes_resets_calmly(rig: Rig) -> None:
    """Closing with a reset is no trouble for the workload: nothing is logged, all are served."""
    probe: Probe = rig.probe()
    try_tcp(rig, probe.tcp_port, 1500, interval_ms=1)
    probe.signal(signal.SIGTERM)
    probe.wait()
    assert "accept_failed" not in probe.events()
    assert "fatal" not in probe.events()


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
