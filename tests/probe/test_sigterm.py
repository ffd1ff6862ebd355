"""What SIGTERM does, behaviour by behaviour, and in which order the log says so."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.loopback.rig import LOOPBACK, Probe, Rig
from tests.probe.test_wire import lines, tcp, udp


def test_drain_in_order(rig: Rig) -> None:
    probe = rig.probe(DRAIN_SECONDS="500ms")
    with tcp(probe) as sock:
        sock.sendall(b"ping 1\n")
        lines(sock, 1)
        probe.signal(signal.SIGTERM)
        probe.event("drain_started")
        # still served, on both transports, and nobody new
        sock.sendall(b"ping 2\n")
        assert lines(sock, 1)[0].startswith(b"pong 2 ")
        assert udp(probe, b"ping 3\n") is not None
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((LOOPBACK, probe.tcp_port), timeout=5)
        assert lines(sock, 2) == [b"bye 2 drain-deadline"]
        assert sock.recv(10) == b"", "a FIN and no reset"
    assert probe.wait() == 0
    assert probe.events() == [
        "probe_started",
        "listening",
        "sigterm_received",
        "readyz_now_503",
        "stopped_accepting",
        "drain_started",
        "drain_deadline_reached",
        "tcp_flows_closed",
        "exiting",
    ]
    stamps = [line["mono_ns"] for line in probe.lines]
    assert stamps == sorted(stamps)
    lasted = probe.event("drain_deadline_reached")["mono_ns"]
    assert lasted - probe.event("sigterm_received")["mono_ns"] >= 500_000_000
    closed = probe.event("tcp_flows_closed")
    assert (closed["count"], closed["how"]) == (1, "fin")


# What a SIGTERM is that arrives as the loop goes to sleep: noted, and no system call ends of it.
UNINTERRUPTED = """
import runpy, signal, sys, threading
threading.Thread(target=signal.pause, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
runpy.run_path(sys.argv[2], run_name="__main__")
"""


def test_a_signal_that_interrupts_nothing_is_acted_on_at_once(rig: Rig) -> None:
    """It once lay until the next packet came, which may be never."""
    probe = rig.probe(prefix=(sys.executable, "-c", UNINTERRUPTED))
    probe.signal(signal.SIGTERM)
    assert probe.wait() == 0
    assert probe.events()[2] == "sigterm_received"


def test_a_request_that_is_pending_at_the_deadline_is_answered_first(rig: Rig) -> None:
    """Unread data would also turn the close into a reset."""
    probe = rig.probe(DRAIN_SECONDS="300ms")
    with tcp(probe) as sock:
        sock.sendall(b"ping 1\n")
        lines(sock, 1)
        probe.signal(signal.SIGTERM)
        probe.event("drain_started")
        probe.signal(signal.SIGSTOP)
        sock.sendall(b"ping 2\nping 3\n")
        time.sleep(0.5)  # the deadline passes while nothing can be read
        probe.signal(signal.SIGCONT)
        got = lines(sock, 3)
        assert [line.split()[:2] for line in got] == [
            [b"pong", b"2"],
            [b"pong", b"3"],
            [b"bye", b"3"],
        ]
        sock.sendall(b"ping 4\n")  # crosses the FIN: discarded, not met with a reset
        assert sock.recv(10) == b""
    assert probe.wait() == 0


def test_connections_in_the_backlog_are_served(rig: Rig) -> None:
    probe = rig.probe(DRAIN_SECONDS="500ms")
    with ExitStack() as stack:
        first = stack.enter_context(tcp(probe))
        first.sendall(b"ping 1\n")
        lines(first, 1)
        probe.signal(signal.SIGSTOP)
        waiting = [stack.enter_context(tcp(probe)) for _ in range(20)]
        probe.signal(signal.SIGTERM)
        probe.signal(signal.SIGCONT)
        for sock in waiting:
            sock.sendall(b"ping 1\n")
        for sock in waiting:
            got = lines(sock, 2)
            assert [line.split()[0] for line in got] == [b"pong", b"bye"]
    assert probe.wait() == 0
    assert probe.event("stopped_accepting")["connections"] == 21


def test_drain_ends_early_when_the_last_client_has_left(rig: Rig) -> None:
    probe = rig.probe(DRAIN_SECONDS="3600")
    with tcp(probe) as one, tcp(probe) as other:
        for sock in (one, other):
            sock.sendall(b"ping 1\n")
            lines(sock, 1)
        probe.signal(signal.SIGTERM)
        probe.event("drain_started")
        one.close()
        other.sendall(b"ping 2\n")
        assert lines(other, 1)[0].startswith(b"pong 2 "), "one client is still here"
    assert probe.wait() == 0
    assert probe.events()[-2:] == ["drain_complete", "exiting"]


def test_without_clients_there_is_nothing_to_wait_for(rig: Rig) -> None:
    probe = rig.probe(DRAIN_SECONDS="3600")
    probe.signal(signal.SIGTERM)
    assert probe.wait() == 0
    assert probe.events()[-2:] == ["drain_complete", "exiting"]


def test_udp_peers_alone_keep_the_drain_window(rig: Rig) -> None:
    probe = rig.probe(DRAIN_SECONDS="400ms")
    assert udp(probe, b"ping 1\n") is not None
    probe.signal(signal.SIGTERM)
    probe.event("drain_started")
    assert udp(probe, b"ping 2\n") is not None
    assert probe.wait() == 0
    assert "drain_complete" not in probe.events()
    assert probe.event("tcp_flows_closed")["count"] == 0


def test_a_udp_peer_that_falls_silent_keeps_it_no_longer(rig: Rig) -> None:
    """Nobody says so: the probe must look, or it would wait for the deadline."""
    probe = rig.probe(DRAIN_SECONDS="3600")
    with tcp(probe) as sock:
        assert udp(probe, b"ping 1\n") is not None
        heard_ns = time.monotonic_ns()
        sock.sendall(b"ping 1\n")
        lines(sock, 1)
        probe.signal(signal.SIGTERM)
        probe.event("drain_started")
    # The TCP client has left; this one speaks once more.
    time.sleep(1)
    assert udp(probe, b"ping 2\n") is not None
    assert probe.wait() == 0
    assert probe.events()[-2:] == ["drain_complete", "exiting"]
    assert probe.event("drain_complete")["mono_ns"] - heard_ns >= 6_000_000_000


def test_a_client_that_never_closes_cannot_keep_it(rig: Rig) -> None:
    probe = rig.probe(DRAIN_SECONDS="0")
    with tcp(probe) as sock:
        sock.sendall(b"ping 1\n")
        lines(sock, 1)
        probe.signal(signal.SIGTERM)
        assert probe.wait() == 0
    assert probe.event("tcp_flows_closed")["open_at_exit"] == 1


@pytest.mark.parametrize(("reset", "how"), [("true", "reset"), ("false", "exit")])
def test_exit_now(rig: Rig, reset: str, how: str) -> None:
    probe = rig.probe(DRAIN_BEHAVIOR="exit-now", EXIT_NOW_RESET=reset)
    with tcp(probe) as sock:
        sock.sendall(b"ping 1\n")
        lines(sock, 1)
        probe.signal(signal.SIGTERM)
        assert probe.wait() == 0
        if reset == "true":
            with pytest.raises(ConnectionResetError):
                sock.recv(10)
        else:
            assert sock.recv(10) == b""
    assert probe.events()[2:] == ["sigterm_received", "tcp_flows_closed", "exiting"]
    assert probe.event("tcp_flows_closed")["how"] == how


def test_ignore_keeps_everything(rig: Rig) -> None:
    probe = rig.probe(DRAIN_BEHAVIOR="ignore")
    with tcp(probe) as sock:
        probe.signal(signal.SIGTERM)
        probe.event("sigterm_ignored")
        sock.sendall(b"ping 1\n")
        assert lines(sock, 1)[0].startswith(b"pong 1 ")
        with tcp(probe) as new:
            new.sendall(b"ping 1\n")
            assert lines(new, 1)[0].startswith(b"pong 1 ")
    assert probe.process.poll() is None


@pytest.mark.parametrize("behavior", ["drain", "ignore"])
def test_a_repeated_sigterm_changes_nothing(rig: Rig, behavior: str) -> None:
    probe = rig.probe(DRAIN_BEHAVIOR=behavior, DRAIN_SECONDS="700ms")
    with tcp(probe) as sock:
        sock.sendall(b"ping 1\n")
        lines(sock, 1)
        probe.signal(signal.SIGTERM)
        probe.event("sigterm_received")
        time.sleep(0.2)
        probe.signal(signal.SIGTERM)
        assert probe.event("sigterm_repeated")["count"] == 2
        sock.sendall(b"ping 2\n")
        assert lines(sock, 1)[0].startswith(b"pong 2 ")
        if behavior == "drain":
            assert lines(sock, 1)[0].startswith(b"bye 2 ")
    if behavior == "drain":
        assert probe.wait() == 0
        # the deadline still counts from the first
        since = probe.event("drain_deadline_reached")["mono_ns"]
        assert since - probe.event("drain_started")["mono_ns"] >= 700_000_000
        assert probe.events().count("drain_started") == 1
    assert probe.events().count("sigterm_received") == 1


SLOW_IMPORT = """
import importlib, os, sys, time
os.write(1, b'{"event": "importing"}\\n')
time.sleep(0.3)
sys.path.remove(os.path.dirname(__file__))
del sys.modules["resource"]
sys.modules["resource"] = importlib.import_module("resource")
"""


def test_a_sigterm_in_the_first_moments_is_not_lost(tmp_path: Path) -> None:
    """It comes while the probe is still importing, long before it listens."""
    (tmp_path / "resource.py").write_text(SLOW_IMPORT)
    probe = Probe(DRAIN_BEHAVIOR="ignore", PYTHONPATH=str(tmp_path))
    try:
        probe.event("importing")
        probe.signal(signal.SIGTERM)
        received, listening = probe.event("sigterm_received"), probe.event("listening")
        assert received["mono_ns"] < listening["mono_ns"], "stamped when it came"
        probe.event("sigterm_ignored")
        assert probe.process.poll() is None
        assert "sigterm_repeated" not in probe.events()
    finally:
        probe.close()


def test_as_pid_1(rig: Rig) -> None:
    """Where a signal without a handler is dropped by the kernel."""
    unshare = ["unshare", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to make a PID namespace")
    probe = rig.probe(DRAIN_BEHAVIOR="exit-now", prefix=unshare)
    assert probe.event("probe_started")["pid"] == 1
    parent = probe.process.pid
    child = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0]
    os.kill(int(child), signal.SIGTERM)
    assert probe.wait() == 0
    assert probe.events()[-1] == "exiting"
