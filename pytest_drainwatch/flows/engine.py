"""The engine: fleets, pacer, probers, recorder and status on one event loop.

A timer drives all sends; a reader per socket takes what arrives. Nothing here
waits for a reply, and nothing decides what a reply means.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from time import monotonic_ns
from typing import TYPE_CHECKING

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.flows.clocks import Exchanges
from pytest_drainwatch.flows.config import AgentConfig
from pytest_drainwatch.flows.dial import DialFailed
from pytest_drainwatch.flows.errors import AgentError, first_of
from pytest_drainwatch.flows.fleet import Fleet
from pytest_drainwatch.flows.flow import Flow
from pytest_drainwatch.flows.health import Health
from pytest_drainwatch.flows.pacer import Pacer
from pytest_drainwatch.flows.probing.prober import Probers
from pytest_drainwatch.flows.recorder import Recorder
from pytest_drainwatch.flows.selector import StampingSelector
from pytest_drainwatch.flows.status import Census, Phase, StatusPipe, as_json
from pytest_drainwatch.flows.tempo import Tempo

if TYPE_CHECKING:
    from pytest_drainwatch.flows.http.client import HttpClient

POSTPONED_PER_TURN = 4
STATUS_S = 0.15
STATUS_MANY_S = 0.5
MANY_FLOWS = 1000
CHANGE_S = 0.02
COUNTED_PER_TURN = 512
HEALTH_S = 0.25
FIRST_ENDS = 5
CLOCKS = 8


class Engine:
    """Holds the flows from the first dial to the last record."""

    def __init__(
        self,
        config: AgentConfig,
        loop: asyncio.AbstractEventLoop,
        selector: StampingSelector,
        recorder: Recorder,
        status: StatusPipe,
        health: Health,
    ) -> None:
        self.selector = selector
        self.exchanges = Exchanges(recorder.write)
        self.tag = os.urandom(4).hex()
        self.phase = Phase.DIALLING
        self.error: AgentError | None = None
        self._config = config
        self._loop = loop
        self._recorder = recorder
        self._status = status
        self._health = health
        self._pacer = Pacer(config, loop)
        densities = self._pacer.densities
        self._tempo = Tempo(config, densities, selector, loop)
        self._probers = Probers(config.probers, densities, loop, recorder.write)
        self._http: HttpClient | None = None
        if config.http is not None:
            from pytest_drainwatch.flows.http.client import HttpClient

            self._http = HttpClient(
                config.http, densities, loop, selector, recorder.write, self.soon
            )
        self._change_due = False
        self._survey: Iterator[dict[str, object] | None] | None = None
        self._postponed: deque[Callable[[], None]] = deque()
        self._first_ends: list[dict[str, object]] = []
        self._stopping = asyncio.Event()
        self._fleets: dict[str, Fleet] = {}
        for proto, endpoint in (("tcp", config.tcp), ("udp", config.udp)):
            if endpoint is not None:
                self._fleets[proto] = Fleet(
                    self,
                    endpoint,
                    proto=proto,
                    cadence=self._pacer.cadence(proto),
                    source=config.source_address,
                    target=config.target,
                    max_extra=config.max_extra,
                    plain=config.plain,
                )
        if config.udp_one_way is not None:
            self._fleets["udp_one_way"] = Fleet(
                self,
                config.udp_one_way,
                proto="udp",
                cadence=self._pacer.cadence("udp"),
                source=config.source_address,
                target=None,
                max_extra=0,
                one_way=True,
            )
        selector.on_stall = self._stalled

    async def run(self) -> None:
        """Dial, hold until stopped, write the end. Never raises :class:`AgentError`."""
        self._tick()
        self._look_after_itself()
        filling = asyncio.create_task(self._fill())
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait((filling, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not filling.done():
            filling.cancel()
            await asyncio.wait((filling,))
        elif self.error is None:
            self.phase = Phase.HOLDING
            # Not before: attempts beside hundreds of dials would measure those.
            self._probers.start()
            if self._http is not None:
                self._http.start()
            self._write_status()
        if self.error is None:
            await stopping
        if self.phase is Phase.HOLDING and self.error is None:
            ends = [self._probers.end(), *([self._http.end()] if self._http is not None else [])]
            await asyncio.gather(*ends)
        stopping.cancel()
        self._finish()

    def stop(self) -> None:
        """End the run."""
        self._stopping.set()

    def fail(self, error: AgentError) -> None:
        """End the run because of ``error``; the first one counts."""
        self.error = self.error or error
        self._stopping.set()

    def plan(self, dense: Sequence[Interval], trigger_ns: int | None = None) -> None:
        """From now on send, try and look densely within ``dense``, else sparsely.

        HTTP requests are planned around ``trigger_ns``.
        """
        self._pacer.plan(dense)
        self._probers.replanned()
        if self._http is not None:
            self._http.replanned(trigger_ns)
        self._tempo.follow()

    def complain(self, error: AgentError) -> None:
        """Tell the conductor about an error that ends nothing."""
        self._status.write({**self._describe(), "error": error.told()})

    # --- what flows ask for (flow.Host) -------------------------------------------------

    def record(self, seen: Observation) -> None:
        self._recorder.write(seen)

    def watch(self, flow: Flow) -> None:
        self._loop.add_reader(flow.fd, flow.on_readable)

    def unwatch(self, flow: Flow) -> None:
        self._loop.remove_reader(flow.fd)

    def soon(self, call: Callable[[], None]) -> None:
        self._postponed.append(call)
        if len(self._postponed) == 1:
            self._loop.call_soon(self._catch_up)

    def start_sending(self, flow: Flow) -> None:
        self._pacer.add(flow)

    def answered_first(self, flow: Flow) -> None:
        self._fleets[flow.proto].answered_first(flow)

    def changed(self, flow: Flow, event: Event, at_ns: int) -> None:
        # What befalls a flow before its first answer is dialling, and no end.
        counts = flow.kept and (flow.ended is not None or flow.ledger.answers > 0)
        if counts and len(self._first_ends) < FIRST_ENDS:
            self._first_ends.append({"flow": flow.id, "event": str(event), "at_ns": at_ns})
        if not self._change_due:
            self._change_due = True
            self._loop.call_later(CHANGE_S, self._write_status)

    def record_connect_failed(
        self, flow_id: str, proto: str, remote: str, failed: DialFailed
    ) -> None:
        self._write(
            Event.FLOW_CONNECT_FAILED,
            failed.at,
            flow_id,
            proto=proto,
            remote=remote,
            attempts=failed.attempts,
            errno=failed.last,
            failed=failed.failed,
        )

    def _catch_up(self) -> None:
        """Some of what was postponed; then the sockets are polled again, so that one
        flow's books do not delay the stamps of another. A quarter of a long queue at
        once keeps it from growing without end."""
        postponed = self._postponed
        for _ in range(max(POSTPONED_PER_TURN, len(postponed) // 4)):
            if not postponed:
                return
            postponed.popleft()()
        if postponed:
            self._loop.call_soon(self._catch_up)

    # --- beginning, end, status ----------------------------------------------------------

    async def _fill(self) -> None:
        deadline_ns = monotonic_ns() + self._config.dial_timeout_ns
        try:
            async with asyncio.TaskGroup() as group:
                for fleet in self._fleets.values():
                    group.create_task(fleet.fill(deadline_ns))
        except* AgentError as errors:
            self.fail(first_of(errors))

    def _stalled(self, lo_ns: int, hi_ns: int) -> None:
        self._write(Event.AGENT_STALLED, Interval(lo_ns, hi_ns), late_ns=hi_ns - lo_ns)

    def _finish(self) -> None:
        at_ns = monotonic_ns()
        self.selector.on_stall = None  # closing thousands of sockets is no stall
        self._pacer.stop()
        self._probers.finish(at_ns)
        if self._http is not None:
            self._http.finish(at_ns)
        self.phase = Phase.STOPPED if self.error is None else Phase.FAILED
        self._health.check()
        status = self._describe()
        for fleet in self._fleets.values():
            fleet.finish(at_ns)
        self.exchanges.close()
        for told in self._pacer.books(at_ns):
            self._recorder.write(told)
        self._recorder.close()
        self._check_recorder()
        if self.error is not None:
            status.update(phase=Phase.FAILED, error=self.error.told())
        self._status.write(status, last=True)

    def _write(self, event: Event, at: Interval, subject: str = "", **data: object) -> None:
        self._recorder.write(
            Observation(source=Source.CLIENT, event=event, at=at, subject=subject, data=data)
        )

    def _tick(self) -> None:
        if self.phase in (Phase.STOPPED, Phase.FAILED):
            return
        self._write_status()
        self._check_recorder()
        if self._status.reader_gone:
            self.stop()
        many = self._config.wanted > MANY_FLOWS
        self._loop.call_later(STATUS_MANY_S if many else STATUS_S, self._tick)

    def _look_after_itself(self) -> None:
        if self.phase not in (Phase.STOPPED, Phase.FAILED):
            self._health.check()
            self._loop.call_later(HEALTH_S, self._look_after_itself)

    def _check_recorder(self) -> None:
        error = self._recorder.error
        if error is not None:
            self.fail(
                AgentError(
                    f"the recording part {self._config.record} cannot be written: {error}",
                    "room on the disk",
                    "free some, or choose another folder",
                )
            )

    def _write_status(self) -> None:
        """Now, or in the next turns if there are many flows to count."""
        self._change_due = False
        if self._survey is None:
            self._survey = self._look_at_all()
            self._go_on_surveying()

    def _go_on_surveying(self) -> None:
        if self._survey is None or self.phase in (Phase.STOPPED, Phase.FAILED):
            return
        status = next(self._survey)
        if status is None:
            self._loop.call_soon(self._go_on_surveying)
        else:
            self._survey = None
            self._status.write(status)

    def _describe(self) -> dict[str, object]:
        """The status, in one go."""
        return next(status for status in self._look_at_all() if status is not None)

    def _look_at_all(self) -> Iterator[dict[str, object] | None]:
        """None for each share of the flows, to pause after it; at last the status."""
        dialling = self.phase is Phase.DIALLING
        counts: dict[str, object] = {}
        for proto, fleet in self._fleets.items():
            census, flows = Census(self._config.target), list(fleet.flows.values())
            for start in range(0, len(flows), COUNTED_PER_TURN):
                if start:
                    yield None
                census.add(flows[start : start + COUNTED_PER_TURN], monotonic_ns())
            counts[proto] = as_json(census.counts(fleet.endpoint.flows, dialling=dialling))
        yield {
            "phase": self.phase,
            "at_ns": monotonic_ns(),
            "tcp": counts.get("tcp"),
            "udp": counts.get("udp"),
            "probers": self._probers.status(),
            "http": self._http.status() if self._http is not None else None,
            "first_ends": self._first_ends,
            "clocks": self.exchanges.clocks[:CLOCKS],
            "error": self.error.told() if self.error else None,
        }
