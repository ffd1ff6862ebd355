"""One attempt, driven by hand: what a loop that is late finds, and what this machine lacks."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.flows.probing.attempt import Attempt, TcpAttempt, UdpAttempt
from pytest_drainwatch.flows.probing.config import ProberConfig
from pytest_drainwatch.flows.probing.ports import SourcePorts
from tests.loopback.servers import POD_A, pong
from tests.loopback.tried import closed_port, full_listener

PATIENCE_NS = 60 * NS_PER_MS


def config(port: int, proto: str = "tcp", address: str = "127.0.0.1") -> ProberConfig:
    return ProberConfig(
        proto=proto,
        address=address,
        port=port,
        interval_ns=5 * NS_PER_MS,
        patience_ns=PATIENCE_NS,
    )


def sleep_past(deadline_ns: int) -> None:
    time.sleep(max(0, deadline_ns - time.monotonic_ns() + NS_PER_MS) / 1e9)


@contextmanager
def begun(attempt: Attempt) -> Iterator[Attempt]:
    """An attempt that ends with its test."""
    attempt.begin()
    try:
        yield attempt
    finally:
        if attempt.sock is not None:
            attempt.sock.close()


def test_accepted_before_a_late_loop_looked_is_asked_and_waited_for() -> None:
    """The peer was never asked in time: that it did not answer is no fault of its own."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        with begun(TcpAttempt(config(server.getsockname()[1]), 6)) as attempt:
            sleep_past(attempt.deadline_ns)
            attempt.expire()
            assert not attempt.settled()
            assert attempt.deadline_ns > time.monotonic_ns()
            peer, _ = server.accept()
            with closing(peer):
                assert peer.recv(100) == b"ping 7\n"
                peer.sendall(pong(7))
                sleep_past(attempt.deadline_ns)
                attempt.expire()
        assert (attempt.result, attempt.responder) == (Result.ANSWERED, POD_A)


def test_but_not_for_ever() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with begun(TcpAttempt(config(server.getsockname()[1]), 0)) as attempt:
            for _ in range(2):
                sleep_past(attempt.deadline_ns)
                attempt.expire()
        assert attempt.result is Result.NEVER_SERVED
        assert attempt.took_ns >= 2 * PATIENCE_NS


def test_what_a_late_loop_finds_on_the_socket_counts() -> None:
    with begun(TcpAttempt(config(closed_port()), 0)) as attempt:
        sleep_past(attempt.deadline_ns)
        if attempt.result is None:
            attempt.expire()
        assert (attempt.result, attempt.errno) == (Result.REFUSED, "ECONNREFUSED")


def test_nothing_on_the_socket_is_a_timeout() -> None:
    with full_listener() as port, begun(TcpAttempt(config(port), 0)) as attempt:
        sleep_past(attempt.deadline_ns)
        attempt.expire()
        assert attempt.result is Result.TIMEOUT
        assert attempt.took_ns >= PATIENCE_NS


def test_a_udp_answer_that_a_late_loop_finds_is_an_answer() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        with begun(UdpAttempt(config(port, "udp"), 0, SourcePorts())) as attempt:
            request, peer = server.recvfrom(100)
            assert request == b"ping 1\n"
            server.sendto(pong(1), peer)
            sleep_past(attempt.deadline_ns)
            attempt.expire()
        assert (attempt.result, attempt.responder) == (Result.ANSWERED, POD_A)


@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_no_descriptor_left_is_our_own_limit(proto: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    asked = config(closed_port(), proto)
    attempt = TcpAttempt(asked, 0) if proto == "tcp" else UdpAttempt(asked, 0, SourcePorts())
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        attempt.begin()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (attempt.result, attempt.errno) == (Result.CLIENT_LIMIT, "EMFILE")


@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_a_source_that_is_not_ours_is_our_own_limit(proto: str) -> None:
    asked = ProberConfig(
        proto=proto,
        address="127.0.0.1",
        port=9,
        interval_ns=5 * NS_PER_MS,
        source_address="192.0.2.1",
    )
    attempt = TcpAttempt(asked, 0) if proto == "tcp" else UdpAttempt(asked, 0, SourcePorts())
    attempt.begin()
    assert (attempt.result, attempt.errno) == (Result.CLIENT_LIMIT, "EADDRNOTAVAIL")


@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_ipv6_works_as_well(proto: str) -> None:
    kind = socket.SOCK_STREAM if proto == "tcp" else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET6, kind) as gone:
        try:
            gone.bind(("::1", 0))
        except OSError as error:
            pytest.skip(f"no IPv6 here: {error}")
        port = gone.getsockname()[1]
    asked = config(port, proto, "::1")
    made = TcpAttempt(asked, 0) if proto == "tcp" else UdpAttempt(asked, 0, SourcePorts())
    with begun(made) as attempt:
        sleep_past(attempt.deadline_ns)
        if attempt.result is None:
            attempt.expire()
        assert (attempt.result, attempt.errno) == (Result.REFUSED, "ECONNREFUSED")
