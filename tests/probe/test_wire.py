"""What the probe answers, and what it makes of nonsense."""

from __future__ import annotations

import http.client
import os
import re
import resource
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.loopback.rig import LOOPBACK, Probe, Rig


@contextmanager
def tcp(probe: Probe) -> Iterator[socket.socket]:
    with socket.create_connection((LOOPBACK, probe.tcp_port), timeout=10) as sock:
        yield sock


def lines(sock: socket.socket, count: int) -> list[bytes]:
    """So many lines, or fewer at the end of the stream."""
    data = b""
    while data.count(b"\n") < count and (more := sock.recv(65536)):
        data += more
    return data.split(b"\n")[:-1]


def udp(probe: Probe, request: bytes, timeout_s: float = 5) -> bytes | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(timeout_s)
        sock.sendto(request, (LOOPBACK, probe.udp_port))
        try:
            return sock.recv(2048)
        except TimeoutError:
            return None


def test_a_reply_names_its_responder_and_is_stamped_in_between(rig: Rig) -> None:
    probe = rig.probe()
    before = time.monotonic_ns()
    with tcp(probe) as sock:
        sock.sendall(b"ping 7\n")
        (line,) = lines(sock, 1)
    after = time.monotonic_ns()
    word, seq, received, sent, responder = line.decode().split(" ")
    assert (word, seq, responder) == ("pong", "7", probe.responder)
    assert before <= int(received) <= int(sent) <= after


@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_hello_asks_for_the_clock_and_ping_does_not(rig: Rig, proto: str) -> None:
    probe = rig.probe()
    clock = probe.event("listening")["clock"].encode()
    answers = []
    for request in (b"hello 1\n", b"ping 2\n"):
        if proto == "udp":
            answers.append(udp(probe, request))
        else:
            with tcp(probe) as sock:
                sock.sendall(request)
                answers.append(lines(sock, 1)[0])
    hello, ping = answers
    assert hello is not None
    assert ping is not None
    assert hello.strip().endswith(b" clock=" + clock)
    assert b"clock" not in ping
    inode = re.sub(r"\D", "", str(Path("/proc/self/ns/time").readlink()))
    assert clock.decode().split("/")[1] == inode


def test_requests_may_come_in_any_pieces(rig: Rig) -> None:
    probe = rig.probe()
    with tcp(probe) as sock:
        for piece in (b"pi", b"ng 1\nping ", b"2\nhello 3", b"\n"):
            sock.sendall(piece)
            time.sleep(0.01)
        assert [line.split()[1] for line in lines(sock, 3)] == [b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "malformed"),
        (b"ping\n", "malformed"),
        (b"ping -1\n", "malformed"),
        (b"ping 1 \n", "malformed"),
        (b"ping 1\r\n", "malformed"),
        (b"\n", "malformed"),
        (b"\xff\x00\n", "malformed"),
        (b"ping " + b"1" * 400 + b"\n", "malformed"),
        (b"x" * 600, "over-long"),
    ],
)
def test_nonsense_closes_that_connection_and_is_logged(rig: Rig, sent: bytes, reason: str) -> None:
    probe = rig.probe()
    with tcp(probe) as good, tcp(probe) as bad:
        bad.sendall(sent)
        assert _closed(bad)
        assert probe.event("tcp_line_refused")["reason"] == reason
        good.sendall(b"ping 1\n")
        assert lines(good, 1)[0].startswith(b"pong 1 ")


@pytest.mark.parametrize(
    "sent", [b"", b"ping 1", b"ping x\n", b"ping 1\nping 2\n", b"\xff" * 2000, b"x" * 600 + b"\n"]
)
def test_nonsense_datagrams_are_ignored(rig: Rig, sent: bytes) -> None:
    probe = rig.probe()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.sendto(sent, (LOOPBACK, probe.udp_port))
        sock.sendto(b"ping 9\n", (LOOPBACK, probe.udp_port))
        assert sock.recv(2048).startswith(b"pong 9 ")


def test_a_client_that_does_not_read_harms_nobody(rig: Rig) -> None:
    probe = rig.probe()
    with tcp(probe) as deaf, tcp(probe) as good:
        deaf.settimeout(1)
        asked = _flood(deaf)  # until nothing more is taken
        good.sendall(b"ping 1\n")
        assert lines(good, 1)[0].startswith(b"pong 1 ")
        deaf.settimeout(10)
        got = 0
        while got < asked - 1:  # the last one may be cut
            got += deaf.recv(1 << 20).count(b"\n")


def test_running_out_of_descriptors_does_not_end_accepting(rig: Rig) -> None:
    probe = rig.probe()
    pid = probe.process.pid
    used = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 2, hard))
    held = [socket.create_connection((LOOPBACK, probe.tcp_port), timeout=10) for _ in range(4)]
    try:
        assert probe.event("accept_failed")["errno"] == "EMFILE"
        for sock in held[:2]:
            sock.close()
        for sock in held[2:]:
            sock.sendall(b"ping 1\n")
            assert lines(sock, 1)[0].startswith(b"pong 1 ")
    finally:
        for sock in held:
            sock.close()


def test_http(rig: Rig) -> None:
    probe = rig.probe(DRAIN_SECONDS="60")
    assert _get(probe, "/readyz") == (200, "ready\n")
    assert _get(probe, "/healthz?verbose") == (200, "ok\n")
    assert _get(probe, "/") == (404, "not found\n")
    with tcp(probe):
        probe.signal(signal.SIGTERM)
        probe.event("drain_started")
        assert _get(probe, "/readyz") == (503, "draining\n")
        assert _get(probe, "/healthz") == (200, "ok\n")


def test_readiness_can_be_kept(rig: Rig) -> None:
    probe = rig.probe(DRAIN_SECONDS="60", READINESS_ON_DRAIN="keep")
    with tcp(probe):
        probe.signal(signal.SIGTERM)
        probe.event("drain_started")
        assert _get(probe, "/readyz") == (200, "ready\n")
    assert "readyz_now_503" not in probe.events()


def test_nothing_is_logged_per_request(rig: Rig) -> None:
    probe = rig.probe()
    with tcp(probe) as sock:
        sock.sendall(b"".join(b"ping %d\n" % seq for seq in range(1, 1001)))
        assert len(lines(sock, 1000)) == 1000
    assert probe.events() == ["probe_started", "listening"]


def test_it_serves_without_a_reader_of_its_log(rig: Rig) -> None:
    probe = rig.probe(DRAIN_BEHAVIOR="ignore")
    assert probe.process.stdout is not None
    os.close(os.dup(probe.process.stdout.fileno()))
    probe.signal(signal.SIGTERM)
    with tcp(probe) as sock:
        sock.sendall(b"ping 1\n")
        assert lines(sock, 1)[0].startswith(b"pong 1 ")


def _flood(sock: socket.socket) -> int:
    asked = 0
    while True:
        try:
            asked += sock.send(b"ping 1234567\n" * 500)
        except TimeoutError:
            return asked // 13


def _closed(sock: socket.socket) -> bool:
    try:
        return sock.recv(100) == b""
    except ConnectionResetError:
        return True


def _get(probe: Probe, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(LOOPBACK, probe.http_port, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        assert response.getheader("Connection") == "close"
        return response.status, response.read().decode()
    finally:
        connection.close()
