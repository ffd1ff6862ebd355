"""The UDP prober against real peers."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.probing.result import Result
from tests.loopback.rig import Rig
from tests.loopback.servers import POD_A, ScriptedUdp, pong
from tests.loopback.tried import Tried, await_tried, closed_port, trying

ENOUGH = 40


def try_udp(rig: Rig, port: int, count: int = ENOUGH, **more: Any) -> Tried:
    agent = rig.agent(probers=[trying(port, "udp", **more)])
    await_tried(agent, "finished", count, "udp-new")
    return Tried(rig.recorded(agent), "udp-new")


def test_udp_answered_each_time_from_another_port(rig: Rig) -> None:
    ports: list[str] = []

    def answer(seq: int, peer: str) -> list[bytes]:
        ports.append(peer)
        return [pong(seq)]

    with ScriptedUdp(answer) as server:
        tried = try_udp(rig, server.port)
    assert tried.ways == [(Result.ANSWERED, POD_A, None)]
    assert len(ports) == len(set(ports)) == tried.summary["attempts"]


def test_udp_refused(rig: Rig) -> None:
    tried = try_udp(rig, closed_port(socket.SOCK_DGRAM))
    assert tried.ways == [(Result.REFUSED, None, "ECONNREFUSED")]


def test_udp_silence(rig: Rig) -> None:
    with ScriptedUdp(lambda seq, peer: []) as server:
        tried = try_udp(rig, server.port, patience_ms=150)
    assert tried.ways == [(Result.TIMEOUT, None, None)]
    assert tried.runs[0]["took_min_ns"] >= 150 * NS_PER_MS


@pytest.mark.parametrize("said", [b"", b"what?", pong(10**9), pong(1)[:-1], pong(1) + pong(1)])
def test_udp_foreign(rig: Rig, said: bytes) -> None:
    with ScriptedUdp(lambda seq, peer: [said]) as server:
        tried = try_udp(rig, server.port)
    assert tried.ways == [(Result.FOREIGN, None, None)]
