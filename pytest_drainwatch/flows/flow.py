"""What TCP and UDP flows have in common: identity, books, sending on schedule."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from typing import Protocol

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.flows.clocks import Exchanges
from pytest_drainwatch.flows.dial import DialFailed
from pytest_drainwatch.flows.ledger import Ledger
from pytest_drainwatch.flows.plain import since_last_ack_ms
from pytest_drainwatch.flows.protocol import Adapter, Reply
from pytest_drainwatch.flows.schedule import Cadence
from pytest_drainwatch.flows.selector import DELIVERY_NS, StampingSelector

READS_PER_TURN = 256  # a peer that floods us must not starve the other flows


class Host(Protocol):
    """What a flow needs of the engine."""

    selector: StampingSelector
    exchanges: Exchanges
    tag: str  # what notes of this agent's flows are told from another's by

    def record(self, seen: Observation) -> None:
        """Write an observation."""

    def watch(self, flow: Flow) -> None:
        """Call ``flow.on_readable`` when its socket has something."""

    def unwatch(self, flow: Flow) -> None:
        """Stop that."""

    def soon(self, call: Callable[[], None]) -> None:
        """Call ``call`` once the sockets that are ready now have been read."""

    def start_sending(self, flow: Flow) -> None:
        """Give the flow its slots in the schedule."""

    def record_connect_failed(
        self, flow_id: str, proto: str, remote: str, failed: DialFailed
    ) -> None:
        """Write that a flow could not be opened."""

    def answered_first(self, flow: Flow) -> None:
        """The flow got its first reply."""

    def changed(self, flow: Flow, event: Event, at_ns: int) -> None:
        """The flow ended, moved or ran into an error."""


class Flow(ABC):
    """One flow. Its observations are held back until the engine keeps the flow."""

    proto = ""

    def __init__(
        self,
        host: Host,
        flow_id: str,
        index: int,
        sock: socket.socket,
        adapter: Adapter,
        connected: Interval,
        cadence: Cadence,
    ) -> None:
        self.host = host
        self.id = flow_id
        self.index = index
        self.sock = sock
        self.fd = sock.fileno()
        self.adapter = adapter
        self.ledger = Ledger(flow_id, self._emit, connected.lo)
        self.connected_ns = connected.hi
        self.cadence = cadence
        self.sending = True
        self.closed = False
        self.ended: Event | None = None
        self.held = False  # open, and nothing is said on it
        self.unsent = 0  # slots whose datagram or line the kernel did not take
        self._quiet_ns = connected.lo  # nothing was pending at this instant
        self._carried_lo_ns: int | None = None  # the last turn did not read to the end
        self._held: list[Observation] | None = []
        # Read and not looked at yet: bounds, and the bytes or the error.
        self._pulled: deque[tuple[int, int, bytes | OSError]] = deque()

    @property
    def responder_uid(self) -> str | None:
        """The pod UID of the first responder."""
        first = self.ledger.first_responder
        return None if first is None else first.partition("/")[0]

    @property
    def kept(self) -> bool:
        """Whether this flow is part of the recording."""
        return self._held is None

    def keep(self) -> None:
        """From now on this flow is part of the recording."""
        held, self._held = self._held, None
        for seen in held or ():
            self.host.record(seen)

    def hold(self) -> None:
        """Say nothing, and only keep it open."""
        self.held, self.sending = True, False

    def discard(self) -> None:
        """Close without a trace."""
        self._held = []
        self.close()

    def close(self) -> None:
        """Close the socket; nothing is sent or read any more."""
        if not self.closed:
            self.closed = True
            self.sending = False
            self.host.unwatch(self)
            self.sock.close()

    @abstractmethod
    def send(self) -> int:
        """Send the next request; returns when, for the schedule's books."""

    @abstractmethod
    def on_readable(self) -> None:
        """Read everything the socket has."""

    def finish(self, at_ns: int) -> None:
        """The agent stops: write where this flow stands, and close it."""
        if self.ended is None:
            ledger = self.ledger
            ledger.close(at_ns)
            ledger.event(
                Event.FLOW_OPEN_AT_END,
                at_ns,
                at_ns,
                sent=ledger.next_seq - 1,
                answered=ledger.answers,
                **asdict(ledger.totals),
                last_seq=ledger.highest or None,
                unsent=self.unsent,
                **self._acked(),
            )
        self.close()

    def _acked(self) -> dict[str, int]:
        """Of a flow that was merely held: when its peer's kernel was last heard of."""
        ago_ms = since_last_ack_ms(self.sock) if self.held else None
        return {} if ago_ms is None else {"last_ack_ms": ago_ms}

    def _request(self, at_ns: int) -> bytes:
        ledger = self.ledger
        known = ledger.responder is not None and self.host.exchanges.knows(ledger.responder)
        return self.adapter.request(ledger.next_seq, not known, at_ns)

    def _take_reply(self, reply: Reply, received_ns: int) -> None:
        ledger, host = self.ledger, self.host
        before = ledger.responder
        if reply.clock is not None:
            host.exchanges.learn(reply.responder, reply.clock)
        sent_ns = ledger.reply(reply, received_ns)
        if sent_ns is not None:
            stamps = (sent_ns, reply.received_ns, reply.sent_ns, received_ns)
            host.exchanges.offer(reply.responder, stamps)
        if ledger.responder != before:
            if before is None:
                host.answered_first(self)
            else:
                host.changed(self, Event.FLOW_RESPONDER, received_ns)

    def _quiet_since(self) -> int:
        """The latest instant at which this socket certainly had nothing to tell."""
        if self._carried_lo_ns is not None:
            lo_ns, self._carried_lo_ns = self._carried_lo_ns, None
            return lo_ns
        return max(self.host.selector.quiet_ns, self._quiet_ns) - DELIVERY_NS

    def _emit(self, seen: Observation) -> None:
        if self._held is None:
            self.host.record(seen)
        else:
            self._held.append(seen)
