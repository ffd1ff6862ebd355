"""A lane: how many of its requests may be under way at once."""

from __future__ import annotations

from asyncio import TimerHandle
from collections.abc import Callable

import pytest

from pytest_drainwatch.core.http.ending import Ending, LaneKind, Pool
from pytest_drainwatch.core.http.fate import Fate
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.core.scenario.http import Http
from pytest_drainwatch.flows.http import lane as lanes
from pytest_drainwatch.flows.http.config import HttpConfig
from pytest_drainwatch.flows.http.lane import Lane
from pytest_drainwatch.flows.http.request import Request
from pytest_drainwatch.flows.probing.ports import SourcePorts


class Host:
    """What a lane needs of the client, without a loop."""

    quiet_ns = 0

    def __init__(self) -> None:
        self.config = HttpConfig.of(
            Http(rate_hz=1, timeout_ns=NS_PER_S), address="192.0.2.1", port=80
        )
        self.ports = SourcePorts()
        self.fates: list[Fate] = []
        self.recorded: list[Observation] = []

    def ended(self, lane: Lane, request: Request, what: Fate) -> None:
        self.fates.append(what)

    def record(self, seen: Observation) -> None:
        self.recorded.append(seen)

    def later(self, delay_ns: int, call: Callable[[], None]) -> TimerHandle | None:
        return None

    def unpooled(self, lane: Lane, why: Pool) -> None: ...
    def watch(self, fd: int, read: Callable[[], None]) -> None: ...
    def watch_writes(self, fd: int, write: Callable[[], None]) -> None: ...
    def unwatch(self, fd: int) -> None: ...
    def unwatch_writes(self, fd: int) -> None: ...
    def soon(self, call: Callable[[], None]) -> None: ...


class Refused:
    """A connection that is refused at once, but for the first, on which nothing is heard."""

    opened_ns, over, responder, usable, pooled, answered = 0, None, None, False, False, 0

    def __init__(self, host: Host, owner: Lane, number: int) -> None:
        self._owner, self.number = owner, number

    def dial(self, request: Request) -> None:
        if self.number > 1:
            request.end(Ending.REFUSED, request.begun_ns)
            self._owner.ended(self, request)  # type: ignore[arg-type]
            self._owner.closed(self)  # type: ignore[arg-type]


def test_those_that_have_ended_do_not_count_though_an_older_one_is_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes, "Connection", Refused)
    host = Host()
    lane = Lane(host, LaneKind.NEW, 0)  # type: ignore[arg-type]
    assert host.config.open_per_lane == 3
    for slot in range(10):
        lane.ask(slot, "/", NS_PER_S)
    assert host.fates == [Fate.REFUSED] * 9
    assert lane.waiting == 1
    assert not host.recorded  # they are booked in the order of their slots
