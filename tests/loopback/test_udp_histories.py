"""What a UDP flow goes through, and that it keeps sending through all of it."""

from __future__ import annotations

import signal
import socket
import time
from typing import Any

import pytest

from pytest_drainwatch.core.observation import Event
from tests.loopback.rig import Rig, restart
from tests.loopback.servers import POD_A, POD_B, STRANGER, ScriptedUdp, pong

FLOW = "udp-0001"
FLOWS = 3


def test_a_closed_port_refuses_by_icmp_and_sending_goes_on(rig: Rig) -> None:
    probe = rig.probe(DRAIN_BEHAVIOR="exit-now")
    agent = rig.agent(udp=(probe.udp_port, FLOWS))
    agent.holding(10)
    probe.signal(signal.SIGTERM)
    probe.wait()
    agent.await_status(lambda s: s["udp"]["refused"] == FLOWS, "all flows refused")
    agent.await_status(lambda s: s["udp"]["quiet"] == FLOWS, "a second more of sending")
    part = rig.recorded(agent)
    for flow in part.flows():
        first, *repeats = [o for o in part.of(flow) if o.event is Event.FLOW_ICMP]
        assert (first.data["type"], first.data["code"]) == (3, 3)
        assert first.data["errno"] == "ECONNREFUSED"
        assert first.data["offender"] == "127.0.0.1"
        assert [o.data["count"] for o in repeats] == [repeats[0].data["count"]]
        lost = part.one(flow, Event.FLOW_UNANSWERED)
        last_answered = _int(part.one(flow, Event.FLOW_ANSWERED).data["last_seq"])
        assert lost.data["first_seq"] == last_answered + 1
        # every slot was used, also those in whose place the kernel reported an error
        assert part.one(flow, Event.FLOW_OPEN_AT_END).data["unsent"] == 0
        assert _int(lost.data["count"]) > 30
        assert part.verdict(flow) == ("severed", "refused")


def test_silence_is_not_refusal_and_recovery_is_no_move(rig: Rig) -> None:
    probe = rig.probe()
    agent = rig.agent(udp=(probe.udp_port, FLOWS))
    before = agent.holding(10)["udp"]["min_answers"]
    probe.signal(signal.SIGSTOP)
    agent.await_status(lambda s: s["udp"]["quiet"] == FLOWS, "all flows quiet")
    probe.signal(signal.SIGCONT)
    agent.await_status(
        lambda s: s["udp"]["quiet"] == 0 and s["udp"]["min_answers"] > before + 80, "recovery"
    )
    part = rig.recorded(agent)
    assert part.all(Event.FLOW_ICMP) == []
    for flow in part.flows():
        assert part.one(flow, Event.FLOW_RESPONDER).data["previous"] is None
        slowest = max(
            _int(o.data["rtt_max_ns"]) for o in part.of(flow) if o.event is Event.FLOW_ANSWERED
        )
        assert slowest > 900_000_000, "what waited in the probe's socket was answered late"
        assert part.verdict(flow) == ("survived-observation-window", "none")


def test_a_restart_on_the_same_port_is_another_responder(rig: Rig) -> None:
    probe = rig.probe("pod-a", DRAIN_BEHAVIOR="exit-now")
    agent = rig.agent(udp=(probe.udp_port, FLOWS))
    agent.holding(10)
    probe.signal(signal.SIGTERM)
    probe.wait()
    agent.await_status(lambda s: s["udp"]["refused"] == FLOWS, "all flows refused")
    again = restart(rig, probe, "pod-a")  # the same pod: only the nonce differs
    moved = agent.await_status(lambda s: s["udp"]["moved"] == FLOWS, "all flows moved")
    # Only the request after the first new answer asks for the new clock.
    agent.await_status(lambda s: bool(s["at_ns"] - moved["at_ns"] > 3e8), "a moment more")
    part = rig.recorded(agent)
    for flow in part.flows():
        first, second = [o for o in part.of(flow) if o.event is Event.FLOW_RESPONDER]
        assert first.data["responder"] == probe.responder
        assert second.data["responder"] == again.responder
        assert second.data["previous"] == probe.responder
        stretch = next(o for o in part.of(flow) if o.event is Event.FLOW_ANSWERED)
        assert second.data["last_seq"] == stretch.data["last_seq"]
        # between the last exchange that worked and the first reply of the new one
        assert second.at.lo == stretch.data["last_sent_ns"]
        assert part.verdict(flow, {"pod-a"}) == ("severed", "refused")
    # The new process names its clock as well: the client says hello to whom it does not know.
    assert {o.subject for o in part.all(Event.CLOCK_EXCHANGE)} >= {again.responder}


@pytest.mark.parametrize(
    ("newcomer", "verdict"),
    [
        (POD_B, ("severed", "rehomed")),
        (STRANGER, ("severed", "foreign-responder")),
        (POD_A, ("survived-observation-window", "none")),
    ],
)
def test_who_answers_from_the_tenth_request_on(
    rig: Rig, newcomer: str, verdict: tuple[str, str]
) -> None:
    def script(seq: int, peer: str) -> list[bytes]:
        return [pong(seq, POD_A if seq < 10 else newcomer)]

    with ScriptedUdp(script) as server:
        agent = rig.agent(udp=(server.port, 1))
        agent.holding(30)
        part = rig.recorded(agent)
    assert part.verdict(FLOW, {"pod-a", "pod-b"}) == verdict


def test_two_responders_to_one_request_are_both_recorded(rig: Rig) -> None:
    def script(seq: int, peer: str) -> list[bytes]:
        return [pong(seq), pong(seq, STRANGER)] if seq == 5 else [pong(seq)]

    with ScriptedUdp(script) as server:
        agent = rig.agent(udp=(server.port, 1))
        agent.holding(20)
        part = rig.recorded(agent)
    seen = [o.data["responder"] for o in part.of(FLOW) if o.event is Event.FLOW_RESPONDER]
    assert seen == [POD_A, STRANGER, POD_A]


def test_loss_duplicates_and_reordering_are_three_things(rig: Rig) -> None:
    def script(seq: int, peer: str) -> list[bytes]:
        if 10 <= seq <= 12 or seq in (40, 50):
            return []
        if seq == 20:
            return [pong(seq), pong(seq)]
        if seq == 41:
            return [pong(41), pong(40)]
        return [pong(seq)]

    with ScriptedUdp(script) as server:
        agent = rig.agent(udp=(server.port, 1))
        agent.holding(60)
        part = rig.recorded(agent)
    first, second = [o.data for o in part.of(FLOW) if o.event is Event.FLOW_ANSWERED]
    run = next(o.data for o in part.of(FLOW) if o.event is Event.FLOW_UNANSWERED)
    assert (first["first_seq"], first["last_seq"]) == (1, 9)
    assert (run["first_seq"], run["last_seq"], run["count"]) == (10, 12, 3)
    assert second["first_seq"] == 13
    assert (second["duplicates"], second["reordered"], second["late"]) == (1, 1, 0)
    assert (second["lost"], second["lost_first_seq"], second["lost_last_seq"]) == (1, 50, 50)
    ended = part.one(FLOW, Event.FLOW_OPEN_AT_END).data
    assert ended["sent"] == _int(ended["answered"]) + _int(ended["unanswered"])
    assert (ended["reordered"], ended["duplicates"], ended["late"]) == (1, 1, 0)


def test_garbage_and_replies_to_nothing(rig: Rig) -> None:
    def script(seq: int, peer: str) -> list[bytes]:
        if seq == 5:
            return [b"\x00\x01junk", pong(seq)]
        if seq == 8:
            return [pong(10**6), pong(seq)]
        return [pong(seq)]

    with ScriptedUdp(script) as server:
        agent = rig.agent(udp=(server.port, 1))
        agent.holding(20)
        part = rig.recorded(agent)
    junk, unasked = [o.data for o in part.of(FLOW) if o.event is Event.FLOW_GARBAGE]
    assert junk == {"length": 6, "starts": "..junk", "count": 1}
    assert unasked["unasked"] == 10**6


def test_ipv6(rig: Rig) -> None:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
            sock.bind(("::1", 0))
    except OSError:
        pytest.skip("this host has no IPv6 loopback")
    probe = rig.probe(BIND="::1", DRAIN_BEHAVIOR="exit-now")
    agent = rig.agent(tcp=(probe.tcp_port, 1), udp=(probe.udp_port, 1), address="::1")
    agent.holding()
    probe.signal(signal.SIGTERM)
    agent.await_status(lambda s: s["udp"]["refused"] == 1 and s["tcp"]["ended"] == 1, "both ended")
    part = rig.recorded(agent)
    refused = next(o for o in part.of(FLOW) if o.event is Event.FLOW_ICMP)
    assert (refused.data["type"], refused.data["code"]) == (1, 4)
    assert refused.data["offender"] == "::1"
    assert part.verdict(FLOW) == ("severed", "refused")
    assert part.verdict("tcp-0001") == ("severed", "rst")


def test_the_truth_about_a_refusal_lies_in_its_interval(rig: Rig) -> None:
    """The port closes between two stamps of ours: the first refusal comes after the first."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    sock.settimeout(5)
    agent = rig.agent(udp=(sock.getsockname()[1], 1))
    for _ in range(20):
        data, peer = sock.recvfrom(2048)
        sock.sendto(pong(int(data.split()[1])), peer)
    before_ns = time.monotonic_ns()
    sock.close()
    agent.await_status(lambda s: s["udp"]["refused"] == 1, "refusal")
    part = rig.recorded(agent)
    refused = next(o for o in part.of(FLOW) if o.event is Event.FLOW_ICMP)
    assert refused.at.hi >= before_ns
    assert refused.data["seq"] == 21


def _int(value: Any) -> int:
    assert isinstance(value, int)
    return value
