"""Flows and new connections to servers that speak a protocol of their own."""

from __future__ import annotations

import socket
import time

import pytest

from pytest_drainwatch.core.observation import Event
from tests.loopback.rig import Agent, Rig
from tests.loopback.servers import Peer, ScriptedTcp, ScriptedUdp
from tests.loopback.tried import trying

PING = {"send": "PING\r\n", "expect": r"\+PONG\r\n"}
SECRET = "hunter2"


def redis(peer: Peer) -> None:
    """Greets nobody, answers each PING, and says something of its own now and then."""
    buffer = b""
    while data := peer.sock.recv(4096):
        *lines, buffer = (buffer + data).split(b"\r\n")
        for line in lines:
            assert line == b"PING"
            peer.sock.sendall(b"+PONG\r\n")


def greets(peer: Peer) -> None:
    """Speaks first, and never again."""
    peer.sock.sendall(f"220 ready {SECRET}\r\n".encode())
    while peer.sock.recv(4096):
        pass


def after(agent: Agent, count: int) -> None:
    agent.await_line(
        lambda s: s["phase"] == "holding" and bool(s["tcp"]) and s["tcp"]["alive"] >= count,
        "all flows held",
    )


def test_requests_are_answered_until_the_peer_ends(rig: Rig) -> None:
    with ScriptedTcp(redis) as server:
        agent = rig.agent(tcp=(server.port, 2), plain=PING)
        agent.holding(min_answers=5)
        for peer in list(server.peers):
            peer.sock.shutdown(socket.SHUT_RDWR)
        agent.ended("tcp", 2)
    part = rig.recorded(agent)
    for flow in part.flows():
        opened = part.one(flow, Event.FLOW_CONNECTED)
        assert opened.data["anonymous"] is True
        assert "held" not in opened.data
        answered = [o for o in part.of(flow) if o.event is Event.FLOW_ANSWERED]
        assert sum(int(str(o.data["count"])) for o in answered) >= 5
        assert {o.data["responder"] for o in answered} == {""}
        assert part.of(flow)[-1].event is Event.FLOW_FIN


def test_a_connection_on_which_nothing_is_said_is_held_and_asked_after(rig: Rig) -> None:
    with ScriptedTcp(greets) as server:
        agent = rig.agent(tcp=(server.port, 2), plain={})
        after(agent, 2)
        time.sleep(1.5)  # a keepalive or two
        server.peers[0].sock.shutdown(socket.SHUT_RDWR)
        agent.ended("tcp", 1)
        part = rig.recorded(agent)
    ends = {part.of(flow)[-1].event: part.of(flow)[-1] for flow in part.flows()}
    assert set(ends) == {Event.FLOW_FIN, Event.FLOW_OPEN_AT_END}
    stays = ends[Event.FLOW_OPEN_AT_END].data
    assert stays["sent"] == 0
    assert 0 <= int(str(stays["last_ack_ms"])) < 1_500
    assert all(part.one(flow, Event.FLOW_CONNECTED).data["held"] for flow in part.flows())
    assert SECRET not in str(part.seen), "what a peer says is nobody's business"


def test_datagrams_say_which_of_them_is_answered(rig: Rig) -> None:
    def every_other(seq: int, peer: str) -> list[bytes]:
        return [b"pong %d" % seq] if seq % 2 else []

    exchange = {"send": "ping {seq}", "expect": r"pong (?P<seq>\d+)"}
    with ScriptedUdp(every_other) as server:
        agent = rig.agent(udp=(server.port, 1), plain=exchange)
        agent.holding(min_answers=10)
        part = rig.recorded(agent)
    (flow,) = part.flows()
    answered = [o for o in part.of(flow) if o.event is Event.FLOW_ANSWERED]
    lost = sum(int(str(o.data.get("lost", 0))) for o in answered)
    assert lost >= 8, "half of them were not answered, and that is seen"


@pytest.mark.parametrize(
    ("script", "exchange", "result"),
    [
        (redis, PING, "answered"),
        (greets, {}, "answered"),  # to be accepted is all that is asked for
        (greets, PING, "accepted-never-served"),
    ],
)
def test_new_connections_ask_what_they_are_told_to(
    script: object, exchange: dict[str, str], result: str, rig: Rig
) -> None:
    with ScriptedTcp(script) as server:  # type: ignore[arg-type]
        agent = rig.agent(
            probers=[trying(server.port, interval_ms=50, patience_ms=200, exchange=exchange)]
        )
        agent.await_line(
            lambda s: (s["probers"].get("tcp-new") or {}).get("finished", 0) >= 5, "5 attempts"
        )
        part = rig.recorded(agent)
    runs = part.all(Event.NEW_CONNECTIONS)
    assert {run.data["result"] for run in runs} - {"unfinished"} == {result}
    assert all("responder" not in run.data for run in runs)


def test_new_datagrams_wait_for_what_matches(rig: Rig) -> None:
    def chatty(seq: int, peer: str) -> list[bytes]:
        return [b"news", b"pong %d" % seq]

    exchange = {"send": "ping {seq}", "expect": r"pong (?P<seq>\d+)"}
    with ScriptedUdp(chatty) as server:
        agent = rig.agent(
            probers=[trying(server.port, "udp", interval_ms=50, patience_ms=300, exchange=exchange)]
        )
        agent.await_line(
            lambda s: (s["probers"].get("udp-new") or {}).get("finished", 0) >= 5, "5 attempts"
        )
        part = rig.recorded(agent)
    assert {run.data["result"] for run in part.all(Event.NEW_CONNECTIONS)} == {"answered"}
