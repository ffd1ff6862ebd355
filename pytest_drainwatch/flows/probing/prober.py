"""New connections on an open-loop schedule, and their books.

Which slots are tried is told in ``slots.py``. An attempt never waits for the one before it.
One timer serves the slots and the deadlines, and one epoll descriptor within the loop's own all
sockets: to the loop a prober is a timer and a reader, whatever the rate.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from time import monotonic_ns

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.probing.document import FAILED
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.flows.density import Densities
from pytest_drainwatch.flows.icmp import errno_name
from pytest_drainwatch.flows.lateness import Book
from pytest_drainwatch.flows.probing.attempt import Attempt
from pytest_drainwatch.flows.probing.config import ProberConfig
from pytest_drainwatch.flows.probing.plain import PlainTcpAttempt, PlainUdpAttempt
from pytest_drainwatch.flows.probing.ports import SourcePorts
from pytest_drainwatch.flows.probing.runs import Runs
from pytest_drainwatch.flows.probing.slots import Slots
from pytest_drainwatch.flows.probing.tcp import TcpAttempt
from pytest_drainwatch.flows.probing.udp import UdpAttempt

Emit = Callable[[Observation], None]

PER_TURN = 16  # results or deadlines; then the flows' sockets are polled again
# Probers of one interval, or of multiples of it, are not in step.
APART_NS = 1_250_000
LEAD_NS = 2 * NS_PER_MS
# Two patiences: one that was accepted late is given one of its own. Who stops us waits longer.
END_PATIENCE_S = 2.0
_KINDS: dict[tuple[str, bool], type[Attempt]] = {
    ("tcp", False): TcpAttempt,
    ("udp", False): UdpAttempt,
    ("tcp", True): PlainTcpAttempt,
    ("udp", True): PlainUdpAttempt,
}
_ANSWER = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET


class Prober:
    """Tries one address with one protocol."""

    def __init__(
        self,
        config: ProberConfig,
        densities: Densities,
        loop: asyncio.AbstractEventLoop,
        emit: Emit,
    ) -> None:
        self.config = config
        self._densities = densities
        self._loop = loop
        self._emit = emit
        self._runs = Runs(config.subject, emit)
        self._kind = _KINDS[config.proto, config.exchange is not None]
        self._ports = SourcePorts()
        self._epoll = select.epoll()
        self._by_fd: dict[int, Attempt] = {}
        # In slot order, from the oldest that waits for its result: results are booked in order.
        self._open: deque[Attempt] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._slots: Slots
        self._attempts = 0
        self._ended_ns: int | None = None  # since when nothing more is begun
        self._done = asyncio.Event()

    def start(self, epoch_ns: int) -> None:
        """Begin with slot 0 at ``epoch_ns``."""
        self._slots = Slots(
            self._densities,
            self.config.subject,
            epoch_ns=epoch_ns,
            interval_ns=self.config.interval_ns,
            every=self.config.sparse_every,
        )
        self._loop.add_reader(self._epoll.fileno(), self._on_ready)
        self._arm()

    def replanned(self) -> None:
        """There is a new plan."""
        if self._timer is not None:
            self._timer.cancel()
            self._slots.replanned()
            self._arm()

    async def end(self) -> None:
        """Begin no further attempt, and wait for the results of those that are open."""
        self._ended_ns = monotonic_ns()
        self._book()
        await self._done.wait()

    def finish(self, at_ns: int) -> None:
        """Write what is known by now; what is not is unfinished."""
        if self._timer is None:
            self._epoll.close()
            return
        self._timer.cancel()
        self._loop.remove_reader(self._epoll.fileno())
        for attempt in self._open:
            if attempt.result is None:
                attempt.abandon()
        self._book()
        self._runs.close()
        self._epoll.close()
        # A slot that was due just now is neither taken nor missed.
        ended_ns = self._ended_ns or at_ns
        self._slots.skip(ended_ns)
        epoch_ns, whole = self._slots.epoch_ns, Book()
        stretches = list(self._stretches(ended_ns, whole))
        told = whole.told()
        del told["sends"]
        self._emit(
            Observation(
                source=Source.CLIENT,
                event=Event.PROBER_SUMMARY,
                at=Interval(epoch_ns, max(ended_ns, epoch_ns)),
                subject=self.config.subject,
                data={
                    "proto": self.config.proto,
                    "period_ns": self.config.interval_ns,
                    "epoch_ns": epoch_ns,
                    "patience_ns": self.config.patience_ns,
                    "source": self.config.source_address,
                    "address": self.config.address,
                    "node": self.config.node,
                    "ports_round_ns": self._ports.round_ns(self.config.interval_ns),
                    "attempts": self._attempts,
                    "unfinished": self._runs.counts[Result.UNFINISHED],
                    **told,
                    "stretches": stretches,
                },
            )
        )

    def status(self) -> dict[str, object]:
        """For the conductor; what is finished and neither answered nor failed is our own."""
        counts = self._runs.counts
        return {
            "attempts": self._attempts,
            "answered": counts[Result.ANSWERED],
            "failed": sum(counts[result] for result in FAILED),
            "finished": counts.total(),
        }

    def _stretches(self, end_ns: int, whole: Book) -> Iterator[dict[str, object]]:
        """How each stretch was tried, which adds up to the ``whole``."""
        for stretch in self._densities.until(end_ns):
            lo_ns, hi_ns = max(stretch.lo_ns, self._slots.epoch_ns), min(stretch.hi_ns, end_ns)
            if lo_ns < hi_ns:
                book = stretch.book(self.config.subject)
                whole.add(book)
                told = book.told()
                yield {
                    "at": [lo_ns, hi_ns],
                    "every": self._slots.every(stretch),
                    "attempts": told.pop("sends"),
                    **told,
                }

    def _arm(self) -> None:
        # Once it is ending the timer still looks after the deadlines.
        due_ns = self._slots.next_ns
        if self._ended_ns is not None:
            due_ns = monotonic_ns() + self.config.interval_ns
        for attempt in self._open:
            if attempt.result is None:
                due_ns = min(due_ns, attempt.deadline_ns)
                # Those behind it are later, unless this one has been given more time.
                if attempt.deadline_ns == attempt.begun_ns + self.config.patience_ns:
                    break
        self._timer = self._loop.call_at(due_ns / NS_PER_S, self._on_time)

    def _on_time(self) -> None:
        now_ns = monotonic_ns()
        try:
            if self._ended_ns is None:
                turn = self._slots.take(now_ns)
                if turn is not None:
                    self._try(*turn)
            self._expire(monotonic_ns())
            self._book()
        finally:  # whatever became of this one, others follow
            self._arm()

    def _try(self, slot: int, every: int, book: Book) -> None:
        due_ns = self._slots.time_ns(slot)
        attempt = self._kind(self.config, slot, self._ports, every)
        late_ns = max(0, attempt.begun_ns - due_ns)
        try:
            attempt.begin()
        except Exception:
            book.miss(late_ns, self.config.interval_ns, 1)
            raise
        self._attempts += 1
        self._open.append(attempt)
        book.lateness.add(max(0, attempt.begun_ns - due_ns))
        if attempt.result is None:
            # On one machine the peer has often accepted by now, and a wake-up is saved.
            attempt.advance(readable=False)
        if attempt.result is None:
            try:
                # Once, for everything; a socket that is ready already is reported as well.
                flags = _ANSWER if attempt.asked else _ANSWER | select.EPOLLOUT
                self._epoll.register(attempt.fd, flags)
            except OSError as error:
                attempt.cannot(errno_name(error.errno))
            else:
                self._by_fd[attempt.fd] = attempt

    def _on_ready(self) -> None:
        for fd, flags in self._epoll.poll(0, PER_TURN):
            attempt = self._by_fd[fd]
            attempt.advance(readable=bool(flags & ~select.EPOLLOUT))
            if attempt.result is not None:
                del self._by_fd[fd]
        self._book()

    def _expire(self, now_ns: int) -> None:
        left = PER_TURN
        for attempt in self._open:
            if attempt.begun_ns + self.config.patience_ns > now_ns or not left:
                break
            if attempt.result is None and attempt.deadline_ns <= now_ns:
                left -= 1
                attempt.expire()
                if attempt.result is not None:
                    del self._by_fd[attempt.fd]

    def _book(self) -> None:
        """Book from the oldest on as long as results are known."""
        waiting = self._open
        while waiting and (settled := waiting[0].settled()) is not None:
            waiting.popleft()
            self._runs.add(settled)
        if self._ended_ns is not None and not waiting:
            self._done.set()


class Probers:
    """All probers of an agent."""

    def __init__(
        self,
        configs: Sequence[ProberConfig],
        densities: Densities,
        loop: asyncio.AbstractEventLoop,
        emit: Emit,
    ) -> None:
        self._grid_ns = densities.epoch_ns
        self._probers = [Prober(config, densities, loop, emit) for config in configs]

    def start(self) -> None:
        """Begin soon, on the grid that the flows' phases count from: no flow has phase 0."""
        grid_ns = self._grid_ns
        for number, prober in enumerate(self._probers):
            interval_ns = prober.config.interval_ns
            apart_ns = monotonic_ns() + LEAD_NS - grid_ns
            epoch_ns = grid_ns + -(-apart_ns // interval_ns) * interval_ns
            prober.start(epoch_ns + number * APART_NS)

    def replanned(self) -> None:
        """There is a new plan."""
        for prober in self._probers:
            prober.replanned()

    async def end(self) -> None:
        """Begin no further attempt, and wait for the results of those that are open: what
        was given up in the last second would else be neither answered nor failed.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_PATIENCE_S):
                await asyncio.gather(*(prober.end() for prober in self._probers))

    def finish(self, at_ns: int) -> None:
        """Write what is known by now."""
        for prober in self._probers:
            prober.finish(at_ns)

    def status(self) -> dict[str, dict[str, object]]:
        """By subject."""
        return {prober.config.subject: prober.status() for prober in self._probers}
