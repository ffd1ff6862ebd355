"""New connections while the probe drains: refused, or served until its window ends."""

from __future__ import annotations

import contextlib
import signal
import socket
import struct
import time

import pytest

from tests.loopback.rig import LOOPBACK, Probe, Rig
from tests.probe.test_wire import lines, tcp, udp

RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def try_once(probe: Probe) -> bool:
    """One short connection, ended by a reset; whether it was answered."""
    try:
        sock = socket.create_connection((LOOPBACK, probe.tcp_port), timeout=5)
    except ConnectionRefusedError:
        return False
    with contextlib.closing(sock):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        sock.sendall(b"hello 1\n")
        return sock.recv(200).startswith(b"pong 1 ")


def test_a_probe_that_keeps_accepting_serves_until_its_window_ends(rig: Rig) -> None:
    probe = rig.probe(DRAIN_SECONDS="700ms", ACCEPT_ON_DRAIN="keep")
    with tcp(probe) as held:
        held.sendall(b"ping 1\n")
        lines(held, 1)
        probe.signal(signal.SIGTERM)
        probe.event("drain_started")
        with tcp(probe) as new:
            new.sendall(b"ping 1\n")
            assert lines(new, 1)[0].startswith(b"pong 1 ")
            assert lines(held, 1) == [b"bye 1 drain-deadline"]
            assert lines(new, 1) == [b"bye 1 drain-deadline"], "it too is closed in order"
            assert new.recv(10) == held.recv(10) == b""
    assert probe.wait() == 0
    assert not try_once(probe), "and nobody after the window"
    assert probe.events()[2:] == [
        "sigterm_received",
        "readyz_now_503",
        "drain_started",
        "stopped_accepting",
        "drain_deadline_reached",
        "tcp_flows_closed",
        "exiting",
    ]
    assert probe.event("tcp_flows_closed")["count"] == 2


def test_who_waits_in_the_backlog_at_the_end_is_taken_leave_of(rig: Rig) -> None:
    probe = rig.probe(DRAIN_SECONDS="300ms", ACCEPT_ON_DRAIN="keep")
    probe.signal(signal.SIGTERM)
    probe.event("drain_started")
    probe.signal(signal.SIGSTOP)
    with tcp(probe) as late:
        late.sendall(b"ping 1\n")
        time.sleep(0.5)  # the window ends while nothing can be accepted
        probe.signal(signal.SIGCONT)
        assert [line.split()[0] for line in lines(late, 2)] == [b"pong", b"bye"]
        assert late.recv(10) == b""
    assert probe.wait() == 0


def test_a_probe_that_keeps_accepting_waits_for_those_who_may_still_come(rig: Rig) -> None:
    """Between two short connections nobody is connected, and its window is not over."""
    probe = rig.probe(DRAIN_SECONDS="600ms", ACCEPT_ON_DRAIN="keep")
    probe.signal(signal.SIGTERM)
    probe.event("drain_started")
    assert try_once(probe)
    time.sleep(0.2)
    assert try_once(probe)
    assert probe.wait() == 0
    lasted = probe.event("drain_deadline_reached")["mono_ns"]
    assert lasted - probe.event("sigterm_received")["mono_ns"] >= 600_000_000


@pytest.mark.parametrize("accept", ["close", "keep"])
def test_many_short_connections_leave_nothing_behind(rig: Rig, accept: str) -> None:
    """Each is closed by a reset: none may stay in the books, or end the probe."""
    probe = rig.probe(DRAIN_SECONDS="400ms", ACCEPT_ON_DRAIN=accept, RESPONSE_DELAY="1ms")
    with tcp(probe) as held:
        held.sendall(b"ping 1\n")
        lines(held, 1)
        for _ in range(300):
            assert try_once(probe)
        # Some leave without waiting for their answer.
        for _ in range(50):
            with tcp(probe) as hasty:
                hasty.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
                hasty.sendall(b"hello 1\n")
        held.sendall(b"ping 2\n")
        lines(held, 1)
        time.sleep(0.1)
        probe.signal(signal.SIGTERM)
        received = probe.event("sigterm_received")
        assert (received["connections"], received["in_flight"]) == (1, 0)
        probe.event("drain_started")
        assert try_once(probe) is (accept == "keep")
        assert lines(held, 1) == [b"bye 2 drain-deadline"]
    assert probe.wait() == 0
    assert "accept_failed" not in probe.events()


def test_a_short_connection_that_leaves_does_not_end_the_window_of_udp_peers(rig: Rig) -> None:
    probe = rig.probe(DRAIN_SECONDS="500ms")
    assert udp(probe, b"ping 1\n") is not None
    with tcp(probe) as short:
        short.sendall(b"ping 1\n")
        lines(short, 1)
        probe.signal(signal.SIGTERM)
        probe.event("drain_started")
    assert udp(probe, b"ping 2\n") is not None
    assert probe.wait() == 0
    assert "drain_complete" not in probe.events()


def test_first_requests_in_flight_are_told_apart(rig: Rig) -> None:
    """A prober's are in flight like any other, and are not those of flows that are held."""
    probe = rig.probe(DRAIN_SECONDS="900ms", RESPONSE_DELAY="500ms")
    with contextlib.ExitStack() as stack:
        held = stack.enter_context(tcp(probe))
        held.sendall(b"ping 1\n")
        lines(held, 1)
        held.sendall(b"ping 2\nping 3\n")
        for _ in range(3):
            stack.enter_context(tcp(probe)).sendall(b"hello 1\n")
        time.sleep(0.2)
        probe.signal(signal.SIGTERM)
        received = probe.event("sigterm_received")
        assert (received["in_flight"], received["in_flight_new"]) == (5, 3)
        assert received["connections"] == 4
