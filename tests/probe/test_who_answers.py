"""Asking over a new connection who answers: a pod's UID, or why nobody did."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from pytest_drainwatch.flows import ask
from tests.loopback.rig import LOOPBACK, Probe, Rig
from tests.loopback.servers import Peer, ScriptedTcp, ScriptedUdp, pong

OTHER_LOOPBACK = "127.0.0.9"


def port(probe: Probe, proto: str) -> int:
    return probe.tcp_port if proto == "tcp" else probe.udp_port


@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_the_pod_that_answers_is_named(rig: Rig, proto: str) -> None:
    one, other = rig.probe("pod-a"), rig.probe("pod-b")
    assert ask.who_answers(LOOPBACK, port(one, proto), proto, None) == "pod-a"
    assert ask.who_answers(LOOPBACK, port(other, proto), proto, LOOPBACK) == "pod-b"


@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_nobody_is_an_error_that_names_what_was_asked(
    proto: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask, "PAUSE_S", 0.0)
    with socket.socket() as closed:
        closed.bind((LOOPBACK, 0))  # taken, and nobody listens
        number = closed.getsockname()[1]
        with pytest.raises(ask.NobodyAnswered, match=rf"{proto} {LOOPBACK} port {number}.*refused"):
            ask.who_answers(LOOPBACK, number, proto, None)


def test_it_asks_from_the_address_that_matters_and_trusts_no_stranger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is pinned is an address; who does not speak the probe's protocol is no pod."""
    monkeypatch.setattr(ask, "PAUSE_S", 0.0)
    peers: list[str] = []
    with socket.create_server((LOOPBACK, 0)) as server:

        def serve() -> None:
            for _ in range(ask.ATTEMPTS):
                sock, peer = server.accept()
                peers.append(peer[0])
                sock.recv(100)
                sock.sendall(b"SSH-2.0\n")
                sock.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(ask.NobodyAnswered, match="an answer that is none"):
            ask.who_answers(LOOPBACK, server.getsockname()[1], "tcp", OTHER_LOOPBACK)
        thread.join()
    assert set(peers) == {OTHER_LOOPBACK}


@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_an_answer_to_another_question_is_none(proto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "PAUSE_S", 0.0)
    other = pong(ask.SEQ + 1)
    tcp = proto == "tcp"
    served = ScriptedTcp(_answering(other)) if tcp else ScriptedUdp(lambda seq, peer: [other])
    with served as server, pytest.raises(ask.NobodyAnswered, match="is none"):
        ask.who_answers(LOOPBACK, server.port, proto, None)


def _answering(line: bytes) -> Callable[[Peer], None]:
    def script(peer: Peer) -> None:
        if peer.request() is not None:
            peer.send(line)
            peer.request()

    return script


def test_another_protocol_is_refused() -> None:
    with pytest.raises(ValueError, match="proto is 'sctp'; expected tcp or udp"):
        ask.who_answers(LOOPBACK, 7001, "sctp", None)


@pytest.mark.parametrize(
    "words",
    [
        [],
        [LOOPBACK, "7001"],
        [LOOPBACK, "7001", "sctp"],
        [LOOPBACK, "http", "tcp"],
        [LOOPBACK, "0", "tcp"],
        [LOOPBACK, "65536", "tcp"],
        [LOOPBACK, "7001", "tcp", LOOPBACK, "more"],
    ],
)
def test_asked_wrongly_it_says_how_to_ask(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask.main(words) == 2
    told = capsys.readouterr()
    assert "expected ADDRESS PORT tcp|udp [SOURCE]" in told.err
    assert told.out == ""


def test_as_a_program_it_prints_the_uid(rig: Rig) -> None:
    probe = rig.probe("pod-a")
    command = [sys.executable, "-m", "pytest_drainwatch.flows.ask", LOOPBACK]
    asked = subprocess.run(
        [*command, str(probe.tcp_port), "tcp"], capture_output=True, text=True, check=False
    )
    assert (asked.returncode, asked.stdout) == (0, "pod-a\n")
