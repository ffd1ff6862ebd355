"""Sending on schedule: one timer on the event loop for all flows, and its books."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from time import monotonic_ns

from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.flows.config import AgentConfig
from pytest_drainwatch.flows.density import Densities
from pytest_drainwatch.flows.flow import Flow
from pytest_drainwatch.flows.lateness import Book
from pytest_drainwatch.flows.schedule import Cadence, Schedule

SENDS_PER_TURN = 64  # then the sockets are polled again
REPLANNED_PER_TURN = 256  # a new plan for thousands of flows must not be a stall


class Pacer:
    """Sends what is due, and never looks at what comes back."""

    def __init__(self, config: AgentConfig, loop: asyncio.AbstractEventLoop) -> None:
        self._config = config
        self._loop = loop
        self._schedule = Schedule(monotonic_ns())
        self._timer: asyncio.TimerHandle | None = None
        self._armed_ns = 0
        self._replanning = False

    @property
    def densities(self) -> Densities:
        """The stretches of the plan; the grids of all have their origin at its epoch."""
        return self._schedule.densities

    def cadence(self, proto: str) -> Cadence:
        """How far apart the slots of that transport's flows are."""
        dense, sparse = (self._config.rate_hz(proto, dense=dense) for dense in (True, False))
        return Cadence(round(NS_PER_S / dense), round(NS_PER_S / sparse))

    def add(self, flow: Flow) -> None:
        """Let the flow send from its next slot on."""
        self._schedule.add(flow, flow.index, monotonic_ns())
        self._arm()

    def plan(self, dense: Sequence[Interval]) -> None:
        """From now on send densely within ``dense``, else sparsely."""
        self._schedule.replan(dense, monotonic_ns())
        if not self._replanning:
            self._replan()

    def stop(self) -> None:
        """Send no more."""
        if self._timer is not None:
            self._timer.cancel()

    def books(self, end_ns: int) -> Iterator[Observation]:
        """What was sent up to ``end_ns``: per stretch and transport, then in all."""
        schedule, whole = self._schedule, Book()
        config = self._config
        ends = (("tcp", config.tcp), ("udp", config.udp), ("udp", config.udp_one_way))
        protos = dict.fromkeys(proto for proto, end in ends if end is not None and end.flows)
        for stretch in schedule.densities.until(end_ns):
            at = Interval(stretch.lo_ns, min(stretch.hi_ns, end_ns))
            for proto in protos:
                book = stretch.book(proto)
                whole.add(book)
                rate_hz = self._config.rate_hz(proto, dense=stretch.dense)
                told = {
                    "proto": proto,
                    "rate_hz": rate_hz,
                    "quantum_ns": stretch.quantum_ns,
                    "flows": book.flows,
                    **book.told(),
                }
                yield _observation(Event.AGENT_SENDING, at, told)
        yield _observation(Event.AGENT_SUMMARY, Interval(schedule.epoch_ns, end_ns), whole.told())

    def _arm(self) -> None:
        due_ns = self._schedule.next_ns
        if due_ns is None or (self._timer is not None and due_ns >= self._armed_ns):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed_ns = due_ns
        self._timer = self._loop.call_at(due_ns / NS_PER_S, self._send_due)

    def _send_due(self) -> None:
        self._timer = None
        schedule = self._schedule
        for _ in range(SENDS_PER_TURN):
            due = schedule.take(monotonic_ns())
            if due is None:
                break
            slot_ns, flow, book = due
            assert isinstance(flow, Flow)
            book.lateness.add(max(0, flow.send() - slot_ns))
        self._arm()

    def _replan(self) -> None:
        """Move some flows to their slots in the new plan; the others in the next turns."""
        self._replanning = not self._schedule.settle(REPLANNED_PER_TURN)
        self._arm()
        if self._replanning:
            self._loop.call_soon(self._replan)


def _observation(event: Event, at: Interval, data: dict[str, object]) -> Observation:
    return Observation(source=Source.CLIENT, event=event, at=at, data=data)
