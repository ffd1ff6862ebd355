"""One attempt, driven by hand: what a loop that is late finds, and what this machine lacks."""

from __future__ import annotations

import ctypes
import errno
import resource
import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.flows import icmp
from pytest_drainwatch.flows.probing.attempt import Attempt
from pytest_drainwatch.flows.probing.config import ProberConfig
from pytest_drainwatch.flows.probing.ports import SourcePorts
from pytest_drainwatch.flows.probing.tcp import TcpAttempt
from pytest_drainwatch.flows.probing.udp import UdpAttempt
from tests.loopback.servers import POD_A, pong
from tests.loopback.tried import closed_port, full_listener

PATIENCE_NS = 60 * NS_PER_MS
TCP_ESTABLISHED = 1
SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27
KINDS = {"tcp": TcpAttempt, "udp": UdpAttempt}


def config(
    port: int, proto: str = "tcp", address: str = "127.0.0.1", patience_ns: int = PATIENCE_NS
) -> ProberConfig:
    return ProberConfig(
        proto=proto,
        address=address,
        port=port,
        interval_ns=5 * NS_PER_MS,
        patience_ns=patience_ns,
    )


def made(asked: ProberConfig, slot: int = 0) -> Attempt:
    return KINDS[asked.proto](asked, slot, SourcePorts())


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
        with begun(made(config(server.getsockname()[1]), 6)) as attempt:
            sleep_past(attempt.deadline_ns)
            looked_ns = time.monotonic_ns()
            attempt.expire()
            assert not attempt.settled()
            assert attempt.deadline_ns >= looked_ns + PATIENCE_NS
            peer, _ = server.accept()
            with closing(peer):
                assert peer.recv(100) == b"ping 7\n"
                peer.sendall(pong(7))
                sleep_past(attempt.deadline_ns)
                attempt.expire()
        assert (attempt.result, attempt.responder) == (Result.ANSWERED, POD_A)


def test_accepted_only_by_a_repeated_syn_is_a_timeout() -> None:
    """Who is looked at late would else be answered, a second after the first SYN was lost."""
    # Its queue takes one connection; the attempt's SYN finds it full.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, socket.socket() as first:
        first.connect(server.getsockname())
        asked = config(server.getsockname()[1], patience_ns=1000 * NS_PER_MS)
        with begun(made(asked)) as attempt:
            server.accept()[0].close()
            await_established(attempt)
            time.sleep(0.06)
            attempt.expire()
            assert (attempt.result, attempt.errno) == (Result.TIMEOUT, None)
            assert attempt.took_ns >= asked.patience_ns
        peer, _ = server.accept()
        with closing(peer), suppress(ConnectionResetError):
            assert peer.recv(100) == b"", "it was never asked"


def test_a_repeated_request_is_another_matter() -> None:
    """The connection was accepted by the first SYN: the answer counts, whenever it comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked = config(server.getsockname()[1], patience_ns=10_000 * NS_PER_MS)
        with begun(made(asked)) as attempt:
            peer, _ = server.accept()
            with closing(peer):
                drop_all(peer)
                attempt.advance(readable=False)
                assert select.select([peer], (), (), 0.05)[0] == [], "the request was lost"
                peer.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
                assert peer.recv(100) == b"ping 1\n"
                peer.sendall(pong(1))
                assert attempt.sock is not None
                select.select([attempt.sock], (), ())
                attempt.advance(readable=True)
        assert attempt.result is Result.ANSWERED


def drop_all(sock: socket.socket) -> None:
    """A filter that lets nothing through to this socket."""
    ret_nothing = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))
    program = struct.pack("HP", 1, ctypes.addressof(ret_nothing))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)


def await_established(attempt: Attempt) -> None:
    assert attempt.sock is not None
    until = time.monotonic() + 10
    state = 0
    while state != TCP_ESTABLISHED:
        assert time.monotonic() < until, "the SYN was not sent again"
        time.sleep(0.01)
        state = attempt.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]


def test_the_request_goes_out_at_once_and_is_timed() -> None:
    """Nothing waits for more to send: a corked request would leave 200 ms later."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        before_ns = time.monotonic_ns()
        with begun(made(config(server.getsockname()[1], patience_ns=10**10))) as attempt:
            begun_by_ns = time.monotonic_ns()
            peer, _ = server.accept()
            with closing(peer):
                attempt.advance(readable=False)
                ready, _, _ = select.select([peer], (), (), 0.1)
                assert ready, "the request is still here"
                assert peer.recv(100) == b"ping 1\n"
                answered_ns = time.monotonic_ns()
                peer.sendall(pong(1))
                attempt.advance(readable=True)
                seen_by_ns = time.monotonic_ns()
    assert attempt.result is Result.ANSWERED
    assert before_ns <= attempt.begun_ns <= begun_by_ns
    assert answered_ns <= attempt.begun_ns + attempt.took_ns <= seen_by_ns


def test_one_look_sees_all_that_came() -> None:
    """Epoll tells of it once: what is left on the socket would wait for patience's end."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        begun(made(config(server.getsockname()[1], patience_ns=10**10))) as attempt,
    ):
        peer, _ = server.accept()
        with closing(peer):
            attempt.advance(readable=False)
            assert peer.recv(100) == b"ping 1\n"
            peer.sendall(b"bye 0 dra", socket.MSG_MORE)
            peer.shutdown(socket.SHUT_WR)
            assert attempt.sock is not None
            select.select([attempt.sock], (), ())
            attempt.advance(readable=True)
            assert attempt.result is Result.NEVER_SERVED


@pytest.mark.parametrize(
    ("kind", "code", "name"),
    [
        (3, 0, "ENETUNREACH"),
        (3, 1, "EHOSTUNREACH"),
        (3, 2, "ENOPROTOOPT"),
        (3, 5, icmp.errno_name(errno.EOPNOTSUPP)),
        (3, 7, "EHOSTDOWN"),
        (3, 8, "ENONET"),
        (3, 13, "EHOSTUNREACH"),
        (11, 0, "EHOSTUNREACH"),
        (12, 0, "EPROTO"),
    ],
)
def test_whatever_an_icmp_message_says_is_the_paths_doing(kind: int, code: int, name: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
        mute.bind(("127.0.0.1", 0))
        asked = config(mute.getsockname()[1], "udp", patience_ns=10**10)
        with begun(made(asked)) as attempt:
            assert attempt.sock is not None
            send_icmp(kind, code, attempt.sock)
            attempt.advance(readable=True)
    assert (attempt.result, attempt.errno) == (Result.UNREACHABLE, name)


def send_icmp(kind: int, code: int, about: socket.socket) -> None:
    """An ICMP error to loopback that quotes a datagram of this socket."""
    try:
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    except PermissionError:
        pytest.skip("needs the right to send ICMP messages")
    (source, sport), (remote, port) = about.getsockname(), about.getpeername()
    addresses = socket.inet_aton(source) + socket.inet_aton(remote)
    datagram = struct.pack("!BBHHHBBH", 0x45, 0, 35, 0, 0, 64, socket.IPPROTO_UDP, 0) + addresses
    datagram += struct.pack("!HHHH", sport, port, 15, 0)
    head = struct.pack("!BBHI", kind, code, 0, 0)
    total = sum(struct.unpack(f"!{len(head + datagram) // 2}H", head + datagram))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    with raw:
        raw.sendto(struct.pack("!BBHI", kind, code, total ^ 0xFFFF, 0) + datagram, (source, 0))


def test_but_not_for_ever() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with begun(made(config(server.getsockname()[1]), 0)) as attempt:
            for _ in range(2):
                sleep_past(attempt.deadline_ns)
                attempt.expire()
        assert attempt.result is Result.NEVER_SERVED
        assert attempt.took_ns >= 2 * PATIENCE_NS


def test_what_a_late_loop_finds_on_the_socket_counts() -> None:
    with begun(made(config(closed_port()), 0)) as attempt:
        sleep_past(attempt.deadline_ns)
        if attempt.result is None:
            attempt.expire()
        assert (attempt.result, attempt.errno) == (Result.REFUSED, "ECONNREFUSED")


def test_nothing_on_the_socket_is_a_timeout() -> None:
    with full_listener() as port, begun(made(config(port), 0)) as attempt:
        sleep_past(attempt.deadline_ns)
        attempt.expire()
        assert attempt.result is Result.TIMEOUT
        assert attempt.took_ns >= PATIENCE_NS


def test_a_udp_answer_that_a_late_loop_finds_is_an_answer() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        with begun(made(config(port, "udp"))) as attempt:
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
    attempt = made(asked)
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
    attempt = made(asked)
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
    with begun(made(asked)) as attempt:
        sleep_past(attempt.deadline_ns)
        if attempt.result is None:
            attempt.expire()
        assert (attempt.result, attempt.errno) == (Result.REFUSED, "ECONNREFUSED")
