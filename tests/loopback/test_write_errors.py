"""A write error is judged after the receive buffer was read to its end.

The race is set up by hand: a flow without an event loop, whose peer has closed
before the flow looks.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable

import pytest

from pytest_drainwatch.core.flow.classify import classify
from pytest_drainwatch.core.flow.life import live
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.flows import icmp
from pytest_drainwatch.flows.clocks import Exchanges
from pytest_drainwatch.flows.dial import DialFailed
from pytest_drainwatch.flows.flow import Flow
from pytest_drainwatch.flows.protocol import LineDatagram, LineStream
from pytest_drainwatch.flows.schedule import Cadence
from pytest_drainwatch.flows.selector import StampingSelector
from pytest_drainwatch.flows.tcp import TcpFlow
from pytest_drainwatch.flows.udp import UdpFlow
from tests.loopback.servers import pong

CADENCE = Cadence(1_000_000, 1_000_000)
BOOKS = {
    Event.FLOW_CONNECTED,
    Event.FLOW_RESPONDER,
    Event.FLOW_ANSWERED,
    Event.FLOW_UNANSWERED,
}


class Bench:
    """The engine's part, without a loop."""

    def __init__(self) -> None:
        self.selector = StampingSelector()
        self.seen: list[Observation] = []
        self.exchanges = Exchanges(self.seen.append)
        self.tag = "f00d"

    def record(self, seen: Observation) -> None:
        self.seen.append(seen)

    def watch(self, flow: Flow) -> None: ...

    def unwatch(self, flow: Flow) -> None: ...

    def soon(self, call: Callable[[], None]) -> None:
        call()

    def start_sending(self, flow: Flow) -> None: ...

    def record_connect_failed(
        self, flow_id: str, proto: str, remote: str, failed: DialFailed
    ) -> None: ...

    def answered_first(self, flow: Flow) -> None: ...

    def changed(self, flow: Flow, event: Event, at_ns: int) -> None: ...


def run(farewell: bytes, *, reset: bool) -> list[Observation]:
    """Send, be answered, let the peer say ``farewell`` and close, then only ever send."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        lo = time.monotonic_ns()
        client = socket.create_connection(listener.getsockname())
        peer, _ = listener.accept()
    client.setblocking(False)
    bench = Bench()
    at = Interval(lo, time.monotonic_ns())
    flow = TcpFlow(bench, "tcp-0001", 1, client, LineStream(), at, CADENCE)
    flow.keep()
    flow.ledger.event(Event.FLOW_CONNECTED, at.lo, at.hi, proto="tcp")
    flow.send()
    peer.recv(100)
    peer.sendall(pong(1) + farewell)
    if reset:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    poller = select.poll()
    poller.register(client, select.POLLHUP)
    for _ in range(200):  # the first send meets a closed peer, which resets
        flow.send()
        if flow.ended:
            break
        poller.poll(10)
    bench.selector.close()
    return [o for o in bench.seen if o.event.startswith("flow_")]


@pytest.mark.parametrize(
    ("farewell", "reset", "events", "verdict"),
    [
        (
            b"bye 1 drain-deadline\n",
            False,
            [Event.FLOW_ANNOUNCED, Event.FLOW_FIN, Event.FLOW_WRITE_ERROR],
            ("drained-clean-close", "announced-fin"),
        ),
        (b"", False, [Event.FLOW_FIN, Event.FLOW_WRITE_ERROR], ("severed", "fin-unannounced")),
        (
            b"bye 1 drain-deadline\n",
            True,
            [Event.FLOW_ANNOUNCED, Event.FLOW_WRITE_ERROR],
            ("severed", "announced-rst"),
        ),
        (b"", True, [Event.FLOW_WRITE_ERROR], ("severed", "rst")),
    ],
)
def test_what_lay_in_the_buffer_counts(
    farewell: bytes, reset: bool, events: list[Event], verdict: tuple[str, str]
) -> None:
    seen = run(farewell, reset=reset)
    assert [o.event for o in seen if o.event not in BOOKS] == events
    assert seen[-1].data["errno"] == ("ECONNRESET" if reset else "EPIPE")
    assert classify(live(Proto.TCP, seen, frozenset())) == verdict


def test_a_datagram_whose_send_reported_an_older_error_is_sent_again() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        address = server.getsockname()
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    icmp.enable(client)
    client.connect(address)
    client.setblocking(False)
    bench = Bench()
    now = time.monotonic_ns()
    flow = UdpFlow(bench, "udp-0001", 1, client, LineDatagram(), Interval(now, now), CADENCE)
    flow.keep()
    flow.send()  # refused, which nobody reads
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(address)
        server.settimeout(5)
        flow.send()  # the kernel reports that refusal instead of sending
        assert server.recv(100) == b"hello 2\n"
    flow.finish(time.monotonic_ns())
    bench.selector.close()
    refused, lost, end = bench.seen
    assert (refused.event, refused.data["seq"]) == (Event.FLOW_ICMP, 1)
    assert (lost.event, lost.data["count"]) == (Event.FLOW_UNANSWERED, 2)
    told = {"sent": 2, "answered": 0, "unanswered": 2, "last_seq": None, "unsent": 0}
    assert told.items() <= end.data.items()


class Broken:
    """A socket whose recv fails with a given errno."""

    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        return 0

    def recv(self, size: int) -> bytes:
        raise OSError(self._number, "as the test wants it")

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("number", "event", "name", "verdict"),
    [
        (104, Event.FLOW_RESET, "ECONNRESET", ("severed", "rst")),
        (110, Event.FLOW_READ_ERROR, "ETIMEDOUT", ("read-timeout", "silence")),
        (113, Event.FLOW_READ_ERROR, "EHOSTUNREACH", ("severed", "unreachable")),
        (111, Event.FLOW_READ_ERROR, "ECONNREFUSED", ("severed", "rst")),
    ],
)
def test_each_errno_is_an_event_of_its_own(
    number: int, event: Event, name: str, verdict: tuple[str, str]
) -> None:
    bench = Bench()
    now = time.monotonic_ns()
    flow = TcpFlow(
        bench,
        "tcp-0001",
        1,
        Broken(number),  # type: ignore[arg-type]
        LineStream(),
        Interval(now, now),
        CADENCE,
    )
    flow.keep()
    flow.ledger.event(Event.FLOW_CONNECTED, now, now, proto="tcp")
    flow.on_readable()
    bench.selector.close()
    assert flow.ended is event
    assert bench.seen[-1].event is event
    assert bench.seen[-1].data["errno"] == name
    assert classify(live(Proto.TCP, bench.seen, frozenset())) == verdict
