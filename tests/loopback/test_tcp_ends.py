"""How a TCP flow ends: each way provoked for real, each beside the way it must not be taken for."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from pytest_drainwatch.core.observation import Event
from tests.loopback.rig import Rig
from tests.loopback.servers import POD_A, STRANGER, Peer, ScriptedTcp, pong

FLOWS = 3


def test_a_drain_is_announced_and_then_closed(rig: Rig) -> None:
    probe = rig.probe(DRAIN_SECONDS="0.3")
    agent = rig.agent(tcp=(probe.tcp_port, FLOWS))
    agent.holding()
    probe.signal(signal.SIGTERM)
    agent.ended("tcp", FLOWS)
    assert probe.wait() == 0
    part = rig.recorded(agent)
    for flow in part.flows():
        assert part.events(flow)[-3:] == [
            Event.FLOW_ANSWERED,
            Event.FLOW_ANNOUNCED,
            Event.FLOW_FIN,
        ]
        said, fin = part.one(flow, Event.FLOW_ANNOUNCED), part.one(flow, Event.FLOW_FIN)
        assert said.data["reason"] == "drain-deadline"
        assert said.data["seq"] == part.of(flow)[-3].data["last_seq"]
        assert fin.data["bytes_pending"] == 0
        # one batch: neither may claim to know that the other came first
        assert said.at.lo <= fin.at.hi
        assert part.verdict(flow) == ("drained-clean-close", "announced-fin")


def test_a_killed_server_sends_an_unannounced_fin(rig: Rig) -> None:
    probe = rig.probe()
    # Seldom enough that no unread request makes the kernel reset instead.
    agent = rig.agent(tcp=(probe.tcp_port, FLOWS), tcp_rate_hz=2)
    agent.holding(1)
    probe.signal(signal.SIGKILL)
    agent.ended("tcp", FLOWS)
    part = rig.recorded(agent)
    for flow in part.flows():
        assert Event.FLOW_ANNOUNCED not in part.events(flow)
        assert part.verdict(flow) == ("severed", "fin-unannounced")


def test_exit_now_resets(rig: Rig) -> None:
    probe = rig.probe(DRAIN_BEHAVIOR="exit-now")
    agent = rig.agent(tcp=(probe.tcp_port, FLOWS))
    agent.holding()
    probe.signal(signal.SIGTERM)
    agent.ended("tcp", FLOWS)
    assert probe.wait() == 0
    part = rig.recorded(agent)
    for flow in part.flows():
        last = part.of(flow)[-1]
        assert last.event in (Event.FLOW_RESET, Event.FLOW_WRITE_ERROR)
        assert last.data["errno"] == "ECONNRESET"
        assert Event.FLOW_FIN not in part.events(flow)
        assert part.verdict(flow) == ("severed", "rst")


def test_exit_now_without_reset_is_a_fin(rig: Rig) -> None:
    probe = rig.probe(DRAIN_BEHAVIOR="exit-now", EXIT_NOW_RESET="false")
    agent = rig.agent(tcp=(probe.tcp_port, FLOWS), tcp_rate_hz=2)
    agent.holding(1)
    probe.signal(signal.SIGTERM)
    agent.ended("tcp", FLOWS)
    assert probe.wait() == 0
    part = rig.recorded(agent)
    assert {part.verdict(flow) for flow in part.flows()} == {("severed", "fin-unannounced")}


def test_ignore_lets_every_flow_live(rig: Rig) -> None:
    probe = rig.probe(DRAIN_BEHAVIOR="ignore")
    agent = rig.agent(tcp=(probe.tcp_port, FLOWS))
    before = agent.holding()
    probe.signal(signal.SIGTERM)
    probe.event("sigterm_ignored")
    agent.holding(before["tcp"]["min_answers"] + 5)
    part = rig.recorded(agent)
    for flow in part.flows():
        end = part.one(flow, Event.FLOW_OPEN_AT_END)
        assert end.data["answered"] == part.one(flow, Event.FLOW_ANSWERED).data["count"]
        assert part.verdict(flow) == ("survived-observation-window", "none")


def test_an_announced_reset_is_neither_a_drain_nor_a_plain_reset(rig: Rig) -> None:
    def script(peer: Peer) -> None:
        peer.serve(3)
        peer.send(b"bye 3 drain-deadline\n")
        time.sleep(0.05)
        peer.reset()

    with ScriptedTcp(script) as server:
        agent = rig.agent(tcp=(server.port, 1), tcp_rate_hz=50)
        agent.ended("tcp", 1)
        part = rig.recorded(agent)
    assert part.verdict("tcp-0001") == ("severed", "announced-rst")


@pytest.mark.parametrize(
    ("reads_on", "verdict"),
    [
        (False, ("severed", "announced-rst")),
        (True, ("drained-clean-close", "announced-fin")),
    ],
)
def test_a_close_with_unread_requests_is_a_reset(
    rig: Rig, reads_on: bool, verdict: tuple[str, str]
) -> None:
    """The kernel's rule: what lies unread at close() turns the FIN into an RST."""

    def script(peer: Peer) -> None:
        peer.serve(3)
        time.sleep(0.2)  # at 50 Hz some ten requests arrive and are not read
        peer.send(b"bye 3 drain-deadline\n")
        if reads_on:
            peer.half_close()
            while peer.request() is not None:
                pass

    with ScriptedTcp(script) as server:
        agent = rig.agent(tcp=(server.port, 1), tcp_rate_hz=50)
        agent.ended("tcp", 1)
        part = rig.recorded(agent)
    assert part.verdict("tcp-0001") == verdict


def test_a_cut_off_announcement_does_not_count(rig: Rig) -> None:
    def script(peer: Peer) -> None:
        peer.serve(3)
        peer.send(b"bye 3 drain-dea")
        peer.half_close()
        peer.serve(-1)

    with ScriptedTcp(script) as server:
        agent = rig.agent(tcp=(server.port, 1), tcp_rate_hz=50)
        agent.ended("tcp", 1)
        part = rig.recorded(agent)
    assert part.one("tcp-0001", Event.FLOW_FIN).data["bytes_pending"] == 15
    assert part.verdict("tcp-0001") == ("severed", "fin-unannounced")


def test_a_half_close_ends_the_flow_and_nothing_more_is_sent(rig: Rig) -> None:
    after: list[int] = []

    def script(peer: Peer) -> None:
        peer.serve(3)
        peer.half_close()
        while (seq := peer.request()) is not None:
            after.append(seq)

    with ScriptedTcp(script) as server:
        agent = rig.agent(tcp=(server.port, 1), tcp_rate_hz=50)
        agent.ended("tcp", 1)
        part = rig.recorded(agent)
    assert len(after) <= 1, "at most the request that crossed the FIN"
    assert part.verdict("tcp-0001") == ("severed", "fin-unannounced")


def test_lines_may_come_in_any_pieces(rig: Rig) -> None:
    def script(peer: Peer) -> None:
        while (seq := peer.request()) is not None:
            line = pong(seq)
            for cut in (line[:3], line[3:-5], line[-5:]):
                peer.send(cut)
                time.sleep(0.002)

    with ScriptedTcp(script) as server:
        agent = rig.agent(tcp=(server.port, 1), tcp_rate_hz=50)
        agent.holding(10)
        part = rig.recorded(agent)
    assert part.one("tcp-0001", Event.FLOW_RESPONDER).data["responder"] == POD_A
    assert part.all(Event.FLOW_GARBAGE) == []
    assert part.verdict("tcp-0001") == ("survived-observation-window", "none")


def test_garbage_is_recorded_once_and_counted(rig: Rig) -> None:
    def script(peer: Peer) -> None:
        while peer.request() is not None:
            peer.send(b"HTTP/1.1 400 Bad Request\n")

    with ScriptedTcp(script) as server:
        agent = rig.agent(tcp=(server.port, 1), tcp_rate_hz=50)
        agent.await_line(lambda s: s["phase"] == "holding", "holding")
        time.sleep(0.3)
        part = rig.recorded(agent)
    first, *repeats = [o for o in part.of("tcp-0001") if o.event is Event.FLOW_GARBAGE]
    assert first.data == {"length": 24, "starts": "HTTP/1.1 400 Bad Request", "count": 1}
    assert len(repeats) == 1
    assert part.verdict("tcp-0001") == ("severed", "foreign-responder")


def test_an_over_long_line_is_garbage_and_the_next_line_counts_again(rig: Rig) -> None:
    def script(peer: Peer) -> None:
        peer.serve(3)
        peer.send(b"x" * 5000 + b"\n")
        peer.serve(-1)

    with ScriptedTcp(script) as server:
        agent = rig.agent(tcp=(server.port, 1), tcp_rate_hz=50)
        agent.holding(10)
        part = rig.recorded(agent)
    assert part.one("tcp-0001", Event.FLOW_GARBAGE).data["length"] == 5000
    stretches = [o for o in part.of("tcp-0001") if o.event is Event.FLOW_ANSWERED]
    assert [o.data["first_seq"] for o in stretches] == [1, 4]


def test_a_foreign_responder_is_recorded_with_its_identity(rig: Rig) -> None:
    with ScriptedTcp(lambda peer: peer.serve(-1, STRANGER)) as server:
        agent = rig.agent(tcp=(server.port, 1), tcp_rate_hz=50)
        agent.holding()
        part = rig.recorded(agent)
    assert part.one("tcp-0001", Event.FLOW_RESPONDER).data["responder"] == STRANGER
    assert part.verdict("tcp-0001", {"pod-a"}) == ("severed", "foreign-responder")
    assert part.verdict("tcp-0001", {"stranger"}) == ("survived-observation-window", "none")


def test_accepted_and_never_served(rig: Rig) -> None:
    def script(peer: Peer) -> None:
        while peer.request() is not None:
            asked.set()

    asked = threading.Event()
    with ScriptedTcp(script) as server:
        agent = rig.agent(tcp=(server.port, 1), tcp_rate_hz=50)
        status = agent.await_line(lambda s: s["phase"] == "holding", "holding")
        assert status["tcp"]["answered"] == 0
        assert asked.wait(10)
        part = rig.recorded(agent)
    events = part.events("tcp-0001")
    assert events == [Event.FLOW_CONNECTED, Event.FLOW_UNANSWERED, Event.FLOW_OPEN_AT_END]
    assert part.one("tcp-0001", Event.FLOW_OPEN_AT_END).data["answered"] == 0


def test_the_truth_about_each_end_lies_in_its_interval(rig: Rig) -> None:
    """The server knows when it closed: before its call returned and after it was made."""
    count = 100

    def script(peer: Peer) -> None:
        peer.serve(2 + peer.number % 7)
        time.sleep(peer.number * 0.003)
        if peer.number % 2:
            peer.reset()
        else:
            peer.half_close()
            peer.serve(-1)

    with ScriptedTcp(script) as server:
        agent = rig.agent(tcp=(server.port, count), tcp_rate_hz=20)
        agent.ended("tcp", count)
        part = rig.recorded(agent)
    by_port = {
        _port(part.one(flow, Event.FLOW_CONNECTED).data["local"]): flow for flow in part.flows()
    }
    assert len(by_port) == count
    for peer in server.peers:
        ended = peer.closed_ns
        assert ended is not None
        flow = by_port[peer.port]
        end = part.of(flow)[-1]
        assert end.event in (Event.FLOW_FIN, Event.FLOW_RESET, Event.FLOW_WRITE_ERROR)
        assert end.at.lo <= ended[1], f"{flow} ended at {ended}, said {end.at}"
        assert end.at.hi >= ended[0], f"{flow} ended at {ended}, said {end.at}"


def _port(text: object) -> int:
    return int(str(text).rpartition(":")[2])
