"""RESPONSE_DELAY, what is in flight at SIGTERM, and the hook that the probe answers."""

from __future__ import annotations

import http.client
import signal
import socket
import struct
import threading
import time
from pathlib import Path

import pytest

from tests.loopback.rig import LOOPBACK, Rig
from tests.probe.test_wire import lines, tcp, udp

DELAY_NS = 400_000_000


def seqs(got: list[bytes]) -> list[tuple[str, int]]:
    return [(line.split()[0].decode(), int(line.split()[1])) for line in got]


def test_each_tcp_request_is_answered_so_much_later_and_in_order(rig: Rig) -> None:
    probe = rig.probe(RESPONSE_DELAY="400ms")
    with tcp(probe) as sock:
        sock.sendall(b"ping 1\nhello 2\n")
        time.sleep(0.1)
        sock.sendall(b"ping 3\n")
        got = lines(sock, 3)
    assert seqs(got) == [("pong", 1), ("pong", 2), ("pong", 3)]
    assert b" clock=" in got[1]
    for line in got:
        received, sent = map(int, line.split()[2:4])
        assert sent - received >= DELAY_NS
    # The third was not answered with the first two: each has a delay of its own.
    assert int(got[2].split()[3]) - int(got[0].split()[3]) >= 50_000_000


def test_udp_is_answered_at_once(rig: Rig) -> None:
    probe = rig.probe(RESPONSE_DELAY="30")
    assert udp(probe, b"ping 1\n") is not None


def test_nonsense_is_refused_at_once(rig: Rig) -> None:
    probe = rig.probe(RESPONSE_DELAY="30")
    with tcp(probe) as sock:
        sock.sendall(b"ping 1\nnonsense\n")
        assert lines(sock, 1) == []
    assert probe.event("tcp_line_refused")["reason"] == "malformed"


@pytest.mark.parametrize("behavior", ["drain", "ignore"])
def test_sigterm_tells_what_is_in_flight(rig: Rig, behavior: str) -> None:
    """Replies say when their requests were read: the oldest's age is exact."""
    probe = rig.probe(RESPONSE_DELAY="2", DRAIN_BEHAVIOR=behavior)
    with tcp(probe) as one, tcp(probe) as other:
        one.sendall(b"ping 1\nping 2\n")
        other.sendall(b"ping 1\n")
        _until_read(one, other)
        probe.signal(signal.SIGTERM)
        said = probe.event("sigterm_received")
        read_ns = [int(line.split()[2]) for line in [*lines(one, 2), *lines(other, 1)]]
    assert said["in_flight"] == 3
    assert said["oldest_in_flight_ns"] == said["mono_ns"] - min(read_ns)


def test_what_was_answered_is_not_in_flight(rig: Rig) -> None:
    probe = rig.probe(RESPONSE_DELAY="2", DRAIN_BEHAVIOR="ignore")
    with tcp(probe) as sock:
        sock.sendall(b"ping 1\n")
        lines(sock, 1)
        sock.sendall(b"ping 2\nping 3\n")
        _until_read(sock)
        probe.signal(signal.SIGTERM)
        assert probe.event("sigterm_received")["in_flight"] == 2


def test_nothing_in_flight_has_no_age(rig: Rig) -> None:
    probe = rig.probe(DRAIN_BEHAVIOR="ignore")
    with tcp(probe) as sock:
        sock.sendall(b"ping 1\n")
        lines(sock, 1)
        probe.signal(signal.SIGTERM)
        said = probe.event("sigterm_received")
    assert (said["in_flight"], said["oldest_in_flight_ns"]) == (0, None)


def test_a_drain_answers_what_is_in_flight_before_it_says_goodbye(rig: Rig) -> None:
    """Its deadline passes while two are not answered yet; one that comes later is not taken."""
    probe = rig.probe(RESPONSE_DELAY="700ms", DRAIN_SECONDS="200ms")
    with tcp(probe) as sock:
        sock.sendall(b"ping 1\n")
        probe.signal(signal.SIGTERM)
        probe.event("drain_started")
        sock.sendall(b"ping 2\n")
        probe.event("drain_deadline_reached")
        sock.sendall(b"ping 3\n")
        got = lines(sock, 3)
        assert seqs(got) == [("pong", 1), ("pong", 2), ("bye", 2)]
        assert sock.recv(10) == b"", "a FIN and no reset"
    assert probe.wait() == 0
    closed = probe.event("tcp_flows_closed")
    assert (closed["how"], closed["open_at_exit"]) == ("fin", 0)


def test_exit_now_resets_whatever_is_in_flight(rig: Rig) -> None:
    probe = rig.probe(RESPONSE_DELAY="3600", DRAIN_BEHAVIOR="exit-now")
    with tcp(probe) as sock:
        sock.sendall(b"ping 1\n")
        _until_read(sock)
        probe.signal(signal.SIGTERM)
        assert probe.wait() == 0
        assert probe.event("sigterm_received")["in_flight"] == 1
        with pytest.raises(ConnectionResetError):
            sock.recv(10)


def test_a_client_that_leaves_takes_its_requests_along(rig: Rig) -> None:
    probe = rig.probe(RESPONSE_DELAY="3600", DRAIN_SECONDS="3600")
    with tcp(probe) as stays, tcp(probe) as leaves:
        stays.sendall(b"ping 1\n")
        leaves.sendall(b"ping 1\n")
        probe.signal(signal.SIGTERM)
        probe.event("drain_started")
        leaves.close()
        stays.close()
    assert probe.wait() == 0
    assert probe.events()[-2:] == ["drain_complete", "exiting"]


def test_a_client_that_floods_is_read_no_further(rig: Rig) -> None:
    """Every answer comes, though far more were asked for than are held at a time."""
    probe = rig.probe(RESPONSE_DELAY="50ms")
    asked = 20_000
    with tcp(probe) as sock:
        flood = b"".join(b"ping %d\n" % seq for seq in range(1, asked + 1))
        sender = threading.Thread(target=sock.sendall, args=(flood,))
        sender.start()
        got = lines(sock, asked)
        sender.join()
    assert [int(line.split()[1]) for line in got] == list(range(1, asked + 1))


def test_the_hooks_request_is_answered_so_much_later_and_logged(rig: Rig) -> None:
    probe = rig.probe()
    assert _prestop(probe.http_port, "/prestop?ms=300") == 200
    called, answered = probe.event("prestop_called"), probe.event("prestop_answered")
    assert called["delay_ns"] == 300_000_000
    assert answered["mono_ns"] - called["mono_ns"] >= 300_000_000


def test_a_hook_without_a_delay_and_ones_that_are_none(rig: Rig) -> None:
    probe = rig.probe()
    assert _prestop(probe.http_port, "/prestop") == 200
    for path in ("/prestop?ms=", "/prestop?ms=-1", "/prestop?ms=1&x", "/prestop/x"):
        assert _prestop(probe.http_port, path) == 404
    assert probe.events().count("prestop_called") == 1


def test_it_serves_while_the_hook_waits(rig: Rig) -> None:
    probe = rig.probe()
    hook = threading.Thread(target=_prestop, args=(probe.http_port, "/prestop?ms=500"))
    hook.start()
    probe.event("prestop_called")
    with tcp(probe) as sock:
        sock.sendall(b"ping 1\n")
        assert lines(sock, 1)[0].startswith(b"pong 1 ")
    assert "prestop_answered" not in probe.events()
    hook.join()


def _prestop(port: int, path: str) -> int:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def _until_read(*socks: socket.socket) -> None:
    """Until the kernel holds nothing of what was sent for the probe to read."""
    ends = {_hexadecimal(sock) for sock in socks}
    deadline = time.monotonic() + 20
    while True:
        rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        waiting = {row[2]: int(row[4].split(":")[1], 16) for row in rows}
        if all(waiting.get(end) == 0 for end in ends):
            time.sleep(0.05)  # it stamps them a moment after it took them
            return
        assert time.monotonic() < deadline, "the probe read nothing"
        time.sleep(0.01)


def _hexadecimal(sock: socket.socket) -> str:
    """Our end of a connection as the probe's row in /proc/net/tcp names it."""
    address, port = sock.getsockname()
    (number,) = struct.unpack("=I", socket.inet_aton(address))
    return f"{number:08X}:{port:04X}"
