"""All lanes of an agent: one timer for what is due, and a reader for each socket.

Nothing here waits for an answer, and nothing decides what one means for the workload.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections.abc import Callable
from time import monotonic_ns

from pytest_drainwatch.core.http.ending import LaneKind, Pool
from pytest_drainwatch.core.http.fate import FAILED, GONE, SERVED, Fate
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.flows.density import Densities
from pytest_drainwatch.flows.http.config import HttpConfig
from pytest_drainwatch.flows.http.due import OPENING_APART_NS, Due, Once, Periodic
from pytest_drainwatch.flows.http.lane import Lane
from pytest_drainwatch.flows.http.request import Request
from pytest_drainwatch.flows.lateness import Book
from pytest_drainwatch.flows.probing.ports import SourcePorts
from pytest_drainwatch.flows.selector import StampingSelector

PER_TURN = 16  # requests; then the sockets are polled again
LEAD_NS = 2 * NS_PER_MS
END_PATIENCE_S = 2.0  # for what is under way when nothing more is asked
RESPONDERS_TOLD = 8


class HttpClient:
    """The lanes, and what their connections need of the loop."""

    def __init__(
        self,
        config: HttpConfig,
        densities: Densities,
        loop: asyncio.AbstractEventLoop,
        selector: StampingSelector,
        emit: Callable[[Observation], None],
        soon: Callable[[Callable[[], None]], None],
    ) -> None:
        self.config = config
        self.ports = SourcePorts()
        self.soon = soon
        self.record = emit
        self._densities, self._loop, self._selector = densities, loop, selector
        self._lanes = [
            Lane(self, kind, index)
            for kind, number in config.numbers.items()
            for index in range(number)
        ]
        self._due: dict[Lane, Due] = {}
        self._heap: list[tuple[int, int, Due]] = []
        self._pushes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._trigger_ns: int | None = None
        self._begun_ns: int | None = None
        self._ended_ns: int | None = None
        self._idle = asyncio.Event()  # nothing is under way, once it is ending
        self._served = self._failed = self._finished = 0
        self._responders: dict[str, None] = {}
        self._problem: str | None = None

    def start(self) -> None:
        """Begin soon, each lane at its own time."""
        self._begun_ns = from_ns = monotonic_ns() + LEAD_NS
        for number, lane in enumerate(self._lanes, 1):
            if lane.kind in (LaneKind.KEEPALIVE, LaneKind.NEW):
                due: Due = Periodic(lane, self.config, self._densities, from_ns, number)
            else:
                due = Once(lane, self.config, from_ns + number * OPENING_APART_NS)
            self._due[lane] = due
            self._push(due)
        if self._trigger_ns is not None:
            self.replanned(self._trigger_ns)
        self._arm()

    def replanned(self, trigger_ns: int | None) -> None:
        """There is a new plan; the trigger is to be sent then, if it is known when."""
        self._trigger_ns = trigger_ns
        if self._begun_ns is None or self._ended_ns is not None:
            return
        now_ns = monotonic_ns()
        self._heap = []
        for due in self._due.values():
            due.plan(trigger_ns, now_ns)
            self._push(due)
        self._arm()

    async def end(self) -> None:
        """Ask nothing more, and wait a little for what is under way."""
        self._ended_ns = monotonic_ns()
        self._stop_timer()
        self._look_whether_idle()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_PATIENCE_S):
                await self._idle.wait()

    def finish(self, at_ns: int) -> None:
        """Write what is known by now; what is not is unfinished."""
        self._stop_timer()
        if self._begun_ns is None:
            return
        ended_ns = self._ended_ns = self._ended_ns or at_ns
        whole, told = Book(), []
        for lane, due in self._due.items():
            due.end(ended_ns)
            lane.finish()
            book = due.book(ended_ns)
            whole.add(book)
            told.append(self._lane(lane, due, book))
        late = whole.told()
        config = self.config
        self.record(
            Observation(
                source=Source.CLIENT,
                event=Event.HTTP_SUMMARY,
                at=Interval(self._begun_ns, max(ended_ns, self._begun_ns)),
                data={
                    "method": config.method,
                    "expect_status": config.expect_status,
                    "timeout_ns": config.timeout_ns,
                    "in_flight_ns": config.in_flight_ns if config.in_flight else None,
                    "identity": config.identity_header is not None,
                    "trigger_ns": self._trigger_ns,
                    "lanes": told,
                    **{name: late[name] for name in ("late_p50_ns", "late_p99_ns", "late_max_ns")},
                },
            )
        )

    def status(self) -> dict[str, object]:
        """For the conductor: one small object, however many lanes."""
        lanes, named = self._lanes, self.config.identity_header is not None
        return {
            "lanes": len(lanes),
            "ready": sum(lane.answered for lane in lanes),
            "identified": sum(lane.identified for lane in lanes) if named else None,
            "responders": list(self._responders)[:RESPONDERS_TOLD],
            "requests": self._finished,
            "served": self._served,
            "failed": self._failed,
            "due": sum(due.planned for due in self._due.values()),
            "waiting": sum(due.lane.waiting for due in self._due.values() if due.once),
            "failing": sum(
                due.lane.last in FAILED and due.next_ns is not None for due in self._due.values()
            ),
            "old": sum(self._is_old(lane) for lane in lanes),
            "problem": self._problem,
        }

    # --- what lanes and connections ask for (lane.LaneHost) ---------------------------------

    @property
    def quiet_ns(self) -> int:
        return self._selector.quiet_ns

    def watch(self, fd: int, read: Callable[[], None]) -> None:
        self._loop.add_reader(fd, read)

    def watch_writes(self, fd: int, write: Callable[[], None]) -> None:
        self._loop.add_writer(fd, write)

    def unwatch(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        self._loop.remove_writer(fd)

    def unwatch_writes(self, fd: int) -> None:
        self._loop.remove_writer(fd)

    def later(self, delay_ns: int, call: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(delay_ns / NS_PER_S, call)

    def ended(self, lane: Lane, request: Request, what: Fate) -> None:
        self._finished += 1
        self._served += what in SERVED
        self._failed += what in FAILED
        if request.responder is not None and len(self._responders) < RESPONDERS_TOLD:
            self._responders[request.responder] = None
        self._problem = self._said(request, what) or self._problem
        due = self._due[lane]
        if request.opening and what not in SERVED and isinstance(due, Once):
            self._reopen(due)
        if self._ended_ns is not None:
            self._loop.call_soon(self._look_whether_idle)

    def unpooled(self, lane: Lane, why: Pool) -> None:
        """An idle connection is to be idle when the trigger comes, and not gone before."""
        due = self._due[lane]
        if isinstance(due, Once) and why in GONE:
            self._reopen(due)

    # --------------------------------------------------------------------------------------

    def _reopen(self, due: Once) -> None:
        if self._ended_ns is None and due.reopen(monotonic_ns()):
            self._push(due)
            self._arm()

    def _is_old(self, lane: Lane) -> bool:
        opened_ns = lane.pooled.opened_ns if lane.pooled is not None else None
        trigger_ns = self._trigger_ns
        return opened_ns is not None and trigger_ns is not None and opened_ns < trigger_ns

    def _said(self, request: Request, what: Fate) -> str | None:
        """What was wrong with it, for whoever waits for lanes to be ready."""
        config = self.config
        if what in SERVED:
            if config.identity_header is not None and request.responder is None:
                return f"no header {config.identity_header} in a response"
            return None
        if request.status is not None:
            return f"status {request.status}, expected {config.expect_status}"
        return f"{what} ({request.errno})" if request.errno else str(what)

    def _lane(self, lane: Lane, due: Due, book: Book) -> dict[str, object]:
        told: dict[str, object] = {
            "lane": lane.name,
            "kind": lane.kind,
            "requests": lane.requests,
            "missed_slots": book.missed,
        }
        if isinstance(due, Periodic):
            told |= {"epoch_ns": due.epoch_ns, "period_ns": self.config.period_ns}
        return told

    def _push(self, due: Due) -> None:
        next_ns = due.next_ns
        if next_ns is not None:
            self._pushes += 1  # breaks ties, so that lanes are never compared
            heapq.heappush(self._heap, (next_ns, self._pushes, due))

    def _arm(self) -> None:
        self._stop_timer()
        if self._heap and self._ended_ns is None:
            self._timer = self._loop.call_at(self._heap[0][0] / NS_PER_S, self._on_time)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        self._timer = None
        try:
            for _ in range(PER_TURN):
                now_ns = monotonic_ns()
                if not self._heap or self._heap[0][0] > now_ns:
                    break
                due_ns, _, due = heapq.heappop(self._heap)
                if due.next_ns == due_ns:  # else a later plan, or an entry beside it, has it
                    due.fire(now_ns)
                    self._push(due)
        finally:  # whatever became of this one, others follow
            self._arm()

    def _look_whether_idle(self) -> None:
        if not any(lane.waiting for lane in self._lanes):
            self._idle.set()
