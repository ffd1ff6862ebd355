"""RESPONSE_DELAY, what is in flight at SIGTERM, and the hook that the probe answers."""

from __future__ import annotations

import fcntl
import http.client
import signal
import socket
import struct
import termios
import threading
import time
from contextlib import suppress
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


def test_a_client_that_resets_takes_its_requests_along(rig: Rig) -> None:
    probe = rig.probe(RESPONSE_DELAY="3600", DRAIN_SECONDS="3600")
    with tcp(probe) as one, tcp(probe) as other:
        for sock in (one, other):
            sock.sendall(b"ping 1\n")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        probe.signal(signal.SIGTERM)
        probe.event("drain_started")
    assert probe.wait() == 0
    assert probe.events()[-2:] == ["drain_complete", "exiting"]


def test_a_client_that_closes_is_answered_and_then_gone(rig: Rig) -> None:
    """A FIN says only that it sends no more: whether it still reads shows when we answer."""
    probe = rig.probe(RESPONSE_DELAY="500ms", DRAIN_SECONDS="3600")
    with tcp(probe) as sock:
        sock.sendall(b"ping 1\n")
        probe.signal(signal.SIGTERM)
        probe.event("drain_started")
    assert probe.wait() == 0
    assert probe.events()[-2:] == ["drain_complete", "exiting"]


def test_a_client_that_half_closes_gets_its_answers(rig: Rig) -> None:
    probe = rig.probe(RESPONSE_DELAY="300ms")
    with tcp(probe) as sock:
        sock.sendall(b"ping 1\n")
        time.sleep(0.1)
        sock.sendall(b"ping 2\n")
        sock.shutdown(socket.SHUT_WR)
        assert seqs(lines(sock, 2)) == [("pong", 1), ("pong", 2)]
        assert sock.recv(10) == b"", "then it closes"


def test_a_half_closed_client_is_told_goodbye_after_its_answers(rig: Rig) -> None:
    probe = rig.probe(RESPONSE_DELAY="700ms", DRAIN_SECONDS="100ms")
    with tcp(probe) as sock:
        sock.sendall(b"ping 1\n")
        sock.shutdown(socket.SHUT_WR)
        _until_read(sock)
        probe.signal(signal.SIGTERM)
        assert seqs(lines(sock, 2)) == [("pong", 1), ("bye", 1)]
        assert sock.recv(10) == b""
    assert probe.wait() == 0


def test_at_the_deadline_a_client_that_does_not_read_is_read_no_further(rig: Rig) -> None:
    """What it sent and nobody reads stays unanswered, or all others would wait for it."""
    probe = rig.probe(DRAIN_SECONDS="500ms")
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect((LOOPBACK, probe.tcp_port))
        sock.settimeout(0.5)
        with suppress(TimeoutError):  # then it holds us back: the buffers of both are full
            while True:
                sock.send(b"ping 1\n" * 1000)
        held_back = _under_way(sock)
        assert held_back > 10 * 65536, "more than a few reads take"
        probe.signal(signal.SIGTERM)
        probe.event("drain_deadline_reached")
        assert _under_way(sock) > held_back / 2
    assert probe.wait() == 0


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
    deadline = time.monotonic() + 20
    while True:
        if all(_unread(sock) == 0 for sock in socks):
            time.sleep(0.05)  # it stamps them a moment after it took them
            return
        assert time.monotonic() < deadline, "the probe read nothing"
        time.sleep(0.01)


def _unread(sock: socket.socket) -> int | None:
    """How many bytes wait for the probe to read them; None: it has no such connection.

    Of a stream that was ended, the kernel counts the end as one byte until it is read.
    """
    end = _hexadecimal(sock)
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return next((int(row[4].split(":")[1], 16) for row in rows if row[2] == end), None)


def _under_way(sock: socket.socket) -> int:
    """How many bytes were sent and not read, on either side."""
    (unsent,) = struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)))
    return int(unsent) + (_unread(sock) or 0)


def _hexadecimal(sock: socket.socket) -> str:
    """Our end of a connection as the probe's row in /proc/net/tcp names it."""
    address, port = sock.getsockname()
    (number,) = struct.unpack("=I", socket.inet_aton(address))
    return f"{number:08X}:{port:04X}"
