"""The agent as a program: what it refuses, what ends it, what must not."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.flows.engine import COUNTED_PER_TURN
from pytest_drainwatch.flows.process import ProtoStatus, parse_status
from tests.loopback.rig import Agent, Rig
from tests.loopback.servers import POD_A, POD_B, Peer, ScriptedTcp, ScriptedUdp, pong

TCP = {"address": "127.0.0.1", "port": 7001, "flows": 1}


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ("{", "not JSON"),
        ("[]", "an object"),
        ({"tcp": TCP}, "record"),
        ({"record": "/nowhere/at/all/part", "tcp": TCP}, "existing folder"),
        ({"record": "RECORD"}, "neither tcp nor udp"),
        ({"record": "RECORD", "tcp": {**TCP, "flows": 0}}, "0 flows"),
        ({"record": "RECORD", "tcp": {**TCP, "flows": -1}}, "tcp.flows is -1"),
        ({"record": "RECORD", "tcp": {**TCP, "flows": True}}, "tcp.flows is True"),
        ({"record": "RECORD", "tcp": {**TCP, "port": 0}}, "tcp.port is 0"),
        ({"record": "RECORD", "tcp": {**TCP, "address": "localhost"}}, "tcp.address"),
        ({"record": "RECORD", "tcp": {"port": 1}}, "tcp lacks address, flows"),
        ({"record": "RECORD", "tcp": TCP, "tpc": TCP}, "unknown field 'tpc'"),
        ({"record": "RECORD", "tcp": TCP, "tcp_rate_hz": 0}, "tcp_rate_hz is 0"),
        ({"record": "RECORD", "tcp": TCP, "tcp_sparse_rate_hz": 21}, "tcp_sparse_rate_hz is 21"),
        (
            {"record": "RECORD", "tcp": TCP, "udp_rate_hz": 5, "udp_sparse_rate_hz": 6},
            "a number 0.01..5",
        ),
        ({"record": "RECORD", "tcp": TCP, "dial_timeout_ns": 1.5}, "dial_timeout_ns is 1.5"),
        ({"record": "RECORD", "tcp": TCP, "source_address": "::1"}, "both IPv4 or both IPv6"),
        ({"record": "RECORD", "tcp": TCP, "target": ""}, "target"),
    ],
)
def test_a_bad_configuration_is_refused_by_name(
    config: str | dict[str, Any], named: str, tmp_path: Path
) -> None:
    text = config if isinstance(config, str) else json.dumps(config)
    agent = Agent(text.replace("RECORD", str(tmp_path / "part")))
    try:
        assert agent.wait() == 2
        (status,) = agent.lines
    finally:
        agent.close()
    assert status["phase"] == "failed"
    assert named in " ".join(status["error"].values())
    assert not (tmp_path / "part").exists()


def test_sigint_is_the_conductors_business(rig: Rig) -> None:
    probe = rig.probe()
    agent = rig.agent(tcp=(probe.tcp_port, 2), udp=(probe.udp_port, 2))
    before = agent.holding()["tcp"]["min_answers"]
    agent.signal(signal.SIGINT)
    agent.holding(before + 5)
    assert agent.stop() == 0
    assert agent.lines[-1]["phase"] == "stopped"
    assert len(rig.recorded(agent).all(Event.FLOW_OPEN_AT_END)) == 4


def test_sigterm_stops_it_in_order(rig: Rig) -> None:
    probe = rig.probe()
    agent = rig.agent(tcp=(probe.tcp_port, 2))
    agent.holding()
    agent.signal(signal.SIGTERM)
    assert agent.wait() == 0
    assert len(rig.recorded(agent).all(Event.AGENT_SUMMARY)) == 1


def test_it_ends_with_its_conductor(rig: Rig) -> None:
    probe = rig.probe()
    agent = rig.agent(tcp=(probe.tcp_port, 2))
    agent.holding()
    agent.drop_lifeline()
    assert agent.wait() == 0
    part = rig.recorded(agent)
    assert len(part.all(Event.FLOW_OPEN_AT_END)) == 2
    summary = part.all(Event.AGENT_SUMMARY)[0].data
    assert set(summary) == {"sends", "missed_slots", "late_p50_ns", "late_p99_ns", "late_max_ns"}


def test_an_unknown_command_is_answered_and_ends_nothing(rig: Rig) -> None:
    probe = rig.probe()
    agent = rig.agent(tcp=(probe.tcp_port, 1))
    agent.holding()
    agent.say('{"do": "dance"}')
    status = agent.await_line(lambda s: bool(s["error"]), "complaint")
    assert "dance" in status["error"]["what"]
    agent.await_status(lambda s: s["phase"] == "holding" and not s["error"], "holding on")


def test_nonsense_without_end_is_answered_too(rig: Rig) -> None:
    probe = rig.probe()
    agent = rig.agent(tcp=(probe.tcp_port, 1))
    agent.holding()
    agent.say("[" * 100_000)
    status = agent.await_line(lambda s: bool(s["error"]), "complaint")
    assert "unknown command" in status["error"]["what"]
    agent.await_status(lambda s: s["phase"] == "holding" and not s["error"], "holding on")


def test_a_configuration_without_end_is_refused() -> None:
    agent = Agent("[" * 100_000)
    try:
        assert agent.wait() == 2
        assert "not JSON" in agent.lines[-1]["error"]["what"]
    finally:
        agent.close()


def test_a_stall_of_its_own_is_recorded(rig: Rig) -> None:
    probe = rig.probe()
    agent = rig.agent(tcp=(probe.tcp_port, 2), udp=(probe.udp_port, 2))
    agent.holding()
    quiet_from_ns = time.monotonic_ns()
    agent.signal(signal.SIGSTOP)
    stopped_ns = time.monotonic_ns()
    time.sleep(0.3)
    continued_ns = time.monotonic_ns()
    agent.signal(signal.SIGCONT)
    before = agent.lines[-1]["tcp"]["min_answers"]
    agent.await_status(lambda s: s["tcp"]["min_answers"] > before + 5, "going on")
    part = rig.recorded(agent)
    covering = [
        o
        for o in part.all(Event.AGENT_STALLED)
        if o.at.lo <= stopped_ns and o.at.hi >= continued_ns
    ]
    assert len(covering) == 1, "one stall covers the time in which it could not run"
    assert covering[0].at.hi > quiet_from_ns
    assert covering[0].data["late_ns"] == covering[0].at.width
    missed = part.all(Event.AGENT_SUMMARY)[0].data["missed_slots"]
    assert isinstance(missed, int)
    # 2 flows at 20 Hz, 2 at 60 Hz; each sends once on waking, and nothing is made up for
    assert missed >= 2 * (5 - 1) + 2 * (17 - 1)


def test_it_waits_for_a_server_that_comes_late(rig: Rig) -> None:
    holder = socket.create_server(("127.0.0.1", 0))
    port = holder.getsockname()[1]
    holder.close()
    agent = rig.agent(tcp=(port, 2), tcp_rate_hz=50)
    time.sleep(0.4)
    listener = socket.create_server(("127.0.0.1", port))
    peers: list[socket.socket] = []

    def accept() -> None:
        for _ in range(2):
            sock, _ = listener.accept()
            peers.append(sock)
            threading.Thread(target=lambda s=sock: Peer(s, 0).serve(-1), daemon=True).start()

    thread = threading.Thread(target=accept)
    thread.start()
    agent.holding()
    thread.join()
    part = rig.recorded(agent)
    listener.close()
    for sock in peers:
        sock.close()
    for flow in part.flows():
        connected = part.one(flow, Event.FLOW_CONNECTED).data
        attempts = connected["attempts"]
        assert isinstance(attempts, int)
        assert attempts >= 2
        assert connected["failed"] == {"ECONNREFUSED": attempts - 1}


def test_it_gives_up_on_a_server_that_never_comes(rig: Rig) -> None:
    holder = socket.create_server(("127.0.0.1", 0))
    port = holder.getsockname()[1]
    holder.close()
    agent = rig.agent(tcp=(port, 1), dial_timeout_ns=300_000_000)
    assert agent.wait() == 1
    status = agent.lines[-1]
    assert status["phase"] == "failed"
    assert "could not connect" in status["error"]["what"]
    failed = rig.recorded(agent).one("tcp-0001", Event.FLOW_CONNECT_FAILED).data
    assert failed["errno"] == "ECONNREFUSED"


def test_a_descriptor_limit_is_named_before_dialling(rig: Rig) -> None:
    agent = rig.agent(tcp=(1, 100), prefix=("sh", "-c", 'ulimit -n 64; exec "$@"', "sh"))
    assert agent.wait() == 1
    error = agent.lines[-1]["error"]
    assert "RLIMIT_NOFILE" in error["what"]
    assert error["expected"] == "at most 32 flows"


def test_running_out_of_descriptors_while_dialling_names_them(rig: Rig) -> None:
    """The check allows what other descriptors of the process then take."""
    with ScriptedTcp(lambda peer: peer.serve(-1)) as server:
        prefix = ("sh", "-c", 'ulimit -n 64; for i in 3 4 5 6 7 8 9; do eval "exec $i</dev/null";'
                  ' done; exec "$@"', "sh")  # fmt: skip
        agent = rig.agent(
            tcp=(server.port, 32), target="nobody", max_extra=100, prefix=prefix,
        )  # fmt: skip
        assert agent.wait() == 1
    assert "EMFILE" in agent.lines[-1]["error"]["what"]


def test_a_full_disk_fails_the_run(rig: Rig) -> None:
    probe = rig.probe()
    agent = rig.agent(tcp=(probe.tcp_port, 1), record="/dev/full")
    assert agent.wait() == 1
    assert "No space left" in agent.lines[-1]["error"]["what"]


@pytest.mark.parametrize("max_extra", [0, 2])
def test_it_dials_until_the_target_has_enough(rig: Rig, max_extra: int) -> None:
    identities = (POD_B, POD_B, POD_A)

    def serve(peer: Peer) -> None:
        if peer.number % 5 != 4:  # every fifth is accepted and closed
            peer.serve(-1, identities[peer.number % 3])

    seen: dict[str, str] = {}

    def answer(seq: int, peer: str) -> list[bytes]:
        seen.setdefault(peer, identities[len(seen) % 3])
        return [pong(seq, seen[peer])]

    with ScriptedTcp(serve) as tcp, ScriptedUdp(answer) as udp:
        agent = rig.agent(tcp=(tcp.port, 4), udp=(udp.port, 4), target="pod-a", max_extra=max_extra)
        status = agent.holding()
        part = rig.recorded(agent)
    for proto in ("tcp", "udp"):
        assert status[proto]["on_target"] == status[proto]["target_alive"] == 4
        flows = [flow for flow in part.flows() if flow.startswith(proto)]
        who = [part.one(flow, Event.FLOW_RESPONDER).data["responder"] for flow in flows]
        assert who.count(POD_A) == 4
        assert who.count(POD_B) == max_extra
    assert status["first_ends"] == [], "candidates that were not kept are no ends"


def test_a_target_that_never_answers_is_an_error(rig: Rig) -> None:
    with ScriptedUdp(lambda seq, peer: [pong(seq, POD_B)]) as server:
        agent = rig.agent(udp=(server.port, 2), target="pod-a", dial_timeout_ns=500_000_000)
        assert agent.wait() == 1
    error = agent.lines[-1]["error"]
    assert "0 of 2 UDP flows are answered by the target pod-a" in error["what"]


def test_status_says_what_the_conductor_reads(rig: Rig) -> None:
    probe = rig.probe()
    agent = rig.agent(tcp=(probe.tcp_port, 2), udp=(probe.udp_port, 1), target="pod-a")
    status = agent.holding(2)
    for proto in ("tcp", "udp"):
        assert {f.name for f in fields(ProtoStatus)} <= status[proto].keys()
    read = parse_status(json.dumps(status))
    assert read is not None
    assert (read.phase, read.tcp.on_target, read.udp.on_target) == ("holding", 2, 1)
    assert read.clocks == (probe.event("listening")["clock"],)


def test_many_flows_are_counted_in_several_turns(rig: Rig) -> None:
    """More than one turn takes; each flow counts once."""
    probe, flows = rig.probe(), 2 * COUNTED_PER_TURN + 7
    agent = rig.agent(udp=(probe.udp_port, flows), target="pod-a", udp_rate_hz=1)
    status = agent.await_status(
        lambda s: s["phase"] == "holding" and s["udp"]["answered"] == flows, "all answered"
    )
    told = status["udp"]
    names = ("wanted", "dialled", "answered", "on_target", "alive", "target_alive")
    assert {name: told[name] for name in names} == dict.fromkeys(names, flows)
    assert (told["moved"], told["ended"], told["refused"]) == (0, 0, 0)


def test_a_clocks_exchanges_are_few_and_in_causal_order(rig: Rig) -> None:
    probe = rig.probe()
    agent = rig.agent(tcp=(probe.tcp_port, 3), udp=(probe.udp_port, 3))
    agent.holding(20)
    part = rig.recorded(agent)
    exchanges = part.all(Event.CLOCK_EXCHANGE)
    assert 1 <= len(exchanges) <= 3
    for exchange in exchanges:
        stamps = [exchange.data[name] for name in ("t1", "t2", "t3", "t4")]
        assert stamps == sorted(stamps)  # type: ignore[type-var]
        assert exchange.subject == probe.responder
