"""A lane: one client with at most one pooled connection, as HTTP clients have.

A request goes over the pooled connection if it is there and not known to be closed; else, and
while a request is under way on it, a new one is dialled. So a slot never waits for an answer.
What has served is pooled if the pool is empty, and closed if not.
"""

from __future__ import annotations

from asyncio import TimerHandle
from collections import deque
from collections.abc import Callable
from time import monotonic_ns
from typing import Protocol

from pytest_drainwatch.core.http.ending import Ending, LaneKind, Pool
from pytest_drainwatch.core.http.fate import SERVED, Fate, fate
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.flows.http.connection import Connection
from pytest_drainwatch.flows.http.request import Request
from pytest_drainwatch.flows.http.runs import Runs
from pytest_drainwatch.flows.http.seams import Loop

OPENING = -1  # the slot of a request that is no part of the plan


class LaneHost(Loop, Protocol):
    """What a lane needs of the client."""

    def later(self, delay_ns: int, call: Callable[[], None]) -> TimerHandle:
        """Call ``call`` then."""

    def record(self, seen: Observation) -> None:
        """Write an observation."""

    def ended(self, lane: Lane, request: Request, what: Fate) -> None:
        """A request of the lane has ended so."""

    def unpooled(self, lane: Lane, why: Pool) -> None:
        """The lane's pooled connection was closed by the peer."""


class Lane:
    """One client; ``requests`` were planned and made, opening ones apart."""

    def __init__(self, host: LaneHost, kind: LaneKind, index: int) -> None:
        self.kind, self.index = kind, index
        self.name = f"{kind}-{index:02d}"
        self.requests = 0
        self.answered = False  # as expected, at least once
        self.identified = False  # whether the last answer named its responder
        self.last: Fate | None = None
        self.pooled: Connection | None = None
        self._host = host
        self._lost = Pool.EMPTY  # what became of the pooled connection, if it is gone
        self._waiting: deque[Request] = deque()  # to be booked in this order
        self.waiting = 0  # requests under way
        self._live: set[Connection] = set()
        self._runs = Runs(self.name, kind, host.record)
        self._connections = 0

    def ask(self, slot: int, path: str, patience_ns: int, *, opening: bool = False) -> Request:
        """Make the request of a slot, now."""
        close = self.kind is LaneKind.NEW
        request = Request(slot, monotonic_ns(), path, close=close, opening=opening)
        self._waiting.append(request)
        self.waiting += 1
        if not opening:
            self.requests += 1
        if self.waiting > self._host.config.open_per_lane:
            request.errno = "EAGAIN"  # our own bound on what may wait
            request.end(Ending.CLIENT_LIMIT, monotonic_ns())
            self._note(request)
            return request
        pooled = self._looked_at()
        if pooled is not None:
            self.pooled = None
            request.pool, request.connection = Pool.REUSED, pooled.number
            self._give_time(pooled, request, patience_ns)
            if pooled.ask(request):
                return request
            self._lost = pooled.gone
        request.pool, self._lost = self._lost, Pool.EMPTY
        self._dial(request, patience_ns)
        return request

    def not_sent(self, slot: int, at_ns: int) -> None:
        """A planned request is not made any more."""
        request = Request(slot, at_ns, "")
        request.end(Ending.NOT_SENT, at_ns)
        self._waiting.append(request)

    def finish(self) -> None:
        """The client stops: write what is known by now."""
        for connection in sorted(self._live, key=lambda one: one.number):
            connection.abandon()
        self._book()
        self._runs.close()

    # --- what connections tell (connection.Owner) -----------------------------------------

    def ended(self, connection: Connection, request: Request) -> None:
        if request.responder is None:
            request.responder = connection.responder  # whose connection it was
        if request.ended is Ending.RESPONSE and connection.usable:
            if self.kind is LaneKind.NEW or self.pooled is not None:
                connection.close()
            else:
                self.pooled, self._lost = connection, Pool.EMPTY
                connection.pooled = True
        elif request.said_close and self.pooled is None and self.kind is not LaneKind.NEW:
            self._lost = Pool.ANNOUNCED
        if not self._tells(connection):
            request.connection = None
        self._note(request)

    def closed(self, connection: Connection) -> None:
        self._live.discard(connection)
        if connection is self.pooled:
            self.pooled, self._lost = None, connection.gone
            self._host.unpooled(self, self._lost)
        if connection.opened_ns and self._tells(connection):
            self._host.record(self._end_of(connection))

    # --------------------------------------------------------------------------------------

    def _tells(self, connection: Connection) -> bool:
        """Whether a connection has a history of its own: one that served a single request, as all
        do where nobody listens or keeps them open, would be a line for each request.
        """
        if self.kind in (LaneKind.KEEPALIVE, LaneKind.NEW):
            return connection.pooled
        return connection.answered > 0

    def _looked_at(self) -> Connection | None:
        """The pooled connection, read to the end just now, if it may be written on."""
        if self.pooled is not None:
            self.pooled.look()  # tells closed() if it is over
        return self.pooled

    def _dial(self, request: Request, patience_ns: int) -> None:
        self._connections += 1
        connection = Connection(self._host, self, self._connections)
        self._live.add(connection)
        request.dialled, request.connection = True, connection.number
        self._give_time(connection, request, patience_ns)
        connection.dial(request)

    def _give_time(self, connection: Connection, request: Request, patience_ns: int) -> None:
        def expire() -> None:
            # One that was written late, by a loop that was, has as long as the others.
            if request.ended is None and not connection.give_up():
                self._give_time(connection, request, patience_ns)

        if request.timer is not None:
            request.timer.cancel()
        request.timer = self._host.later(patience_ns, expire)

    def _note(self, request: Request) -> None:
        assert request.ended is not None
        self.waiting -= 1
        what = fate(
            request.ended,
            pool=request.pool,
            status=request.status,
            expected=self._host.config.expect_status,
            written=request.written > 0,
        )
        self.last = what
        self.answered = self.answered or what in SERVED
        if request.ended is Ending.RESPONSE:
            self.identified = request.responder is not None
        self._host.ended(self, request, what)
        self._book()

    def _book(self) -> None:
        """Book from the oldest on as long as ends are known."""
        waiting = self._waiting
        while waiting and waiting[0].ended is not None:
            self._runs.add(waiting.popleft())

    def _end_of(self, connection: Connection) -> Observation:
        assert connection.over is not None
        told = {
            "connection": connection.number,
            "opened_ns": connection.opened_ns,
            "local": connection.local,
            "over": connection.over,
            "answered": connection.answered,
            "said_close": connection.said_close or None,
            "outstanding": True if connection.cut is not None else None,
            "unasked": connection.unasked or None,
            "responder": connection.responder,
            "errno": connection.errno,
        }
        return Observation(
            source=Source.CLIENT,
            event=Event.HTTP_CONNECTION,
            at=Interval(*connection.over_ns),
            subject=self.name,
            data={name: value for name, value in told.items() if value is not None},
        )
