"""What goes wrong on our own side ends one attempt at most, and never the prober."""

from __future__ import annotations

import asyncio
import errno
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.attempts import probers
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.flows.density import Densities
from pytest_drainwatch.flows.probing.config import ProberConfig
from pytest_drainwatch.flows.probing.prober import Prober
from pytest_drainwatch.flows.probing.tcp import TcpAttempt
from pytest_drainwatch.flows.probing.udp import UdpAttempt
from tests.loopback.tried import closed_port

SLOTS = 20
ODD_SLOT = 3


def run(
    config: ProberConfig, prepare: Callable[[Prober], None] = lambda prober: None
) -> tuple[list[Observation], list[dict[str, Any]]]:
    """What a prober recorded that had so many slots at least, and what its loop complained of."""
    seen: list[Observation] = []
    complaints: list[dict[str, Any]] = []

    async def hold() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        prober = Prober(config, Densities(time.monotonic_ns()), loop, seen.append)
        prepare(prober)
        prober.start(time.monotonic_ns() + NS_PER_MS)
        for _ in range(2000):
            await asyncio.sleep(0.01)
            if sum(prober._runs.counts.values()) >= SLOTS:
                break
        async with asyncio.timeout(20):
            await prober.end()
        prober.finish(time.monotonic_ns())

    asyncio.run(hold())
    return seen, complaints


def ways(seen: list[Observation]) -> dict[tuple[object, object], int]:
    """How many attempts had which result and errno."""
    (found,) = probers(seen)
    assert found.lost == 0
    counts: dict[tuple[object, object], int] = {}
    for one in found.runs:
        way = (one.result, one.errno)
        counts[way] = counts.get(way, 0) + one.count
    return counts


def trying(port: int, proto: str = "tcp", address: str = "127.0.0.1") -> ProberConfig:
    return ProberConfig(
        proto=proto, address=address, port=port, interval_ns=5 * NS_PER_MS, patience_ns=10**9
    )


@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_an_address_that_cannot_be_looked_up_is_our_own_limit(proto: str) -> None:
    """The configuration refuses it; the prober does not rely on that."""
    seen, complaints = run(trying(9, proto, "fe80::1%nosuch0"))
    assert complaints == []
    ((result, _),) = ways(seen)
    assert result is Result.CLIENT_LIMIT


class Exploding(TcpAttempt):
    """Fails in a way that nobody has thought of, once."""

    __slots__ = ()

    def begin(self) -> None:
        if self.slot == ODD_SLOT:
            raise RuntimeError("nobody has thought of this")
        super().begin()


def test_a_fault_that_nobody_thought_of_ends_no_prober() -> None:
    def explode(prober: Prober) -> None:
        prober._kind = Exploding

    seen, complaints = run(trying(closed_port()), explode)
    assert ways(seen)[(Result.REFUSED, "ECONNREFUSED")] >= SLOTS
    assert len(complaints) <= 1, "it is told once, if that slot was not missed"
    (found,) = probers(seen)
    taken = {slot for run in found.runs for slot in range(run.first_slot, run.last_slot + 1)}
    assert ODD_SLOT not in taken or sum(run.count for run in found.runs) < len(taken)
    assert found.missed_slots is not None
    assert found.missed_slots >= 1, "it is in the books as one that was not tried"


class Full:
    """An epoll descriptor that takes no more sockets for a while."""

    def __init__(self, real: Any, refusals: int) -> None:
        self._real = real
        self._left = refusals

    def register(self, fd: int, events: int) -> None:
        self._left -= 1
        if self._left >= 0:
            raise OSError(errno.ENOSPC, "max_user_watches")
        self._real.register(fd, events)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@pytest.mark.parametrize("kind", [TcpAttempt, UdpAttempt])
def test_a_socket_that_cannot_be_watched_is_our_own_limit(
    kind: type[TcpAttempt | UdpAttempt],
) -> None:
    def fill(prober: Prober) -> None:
        prober._epoll = Full(prober._epoll, 7)  # type: ignore[assignment]

    proto = "tcp" if kind is TcpAttempt else "udp"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
        mute.bind(("127.0.0.1", 0))
        with socket.create_server(("127.0.0.1", 0), backlog=512) as silent:
            port = (silent if proto == "tcp" else mute).getsockname()[1]
            seen, complaints = run(trying(port, proto), fill)
    assert complaints == []
    found = ways(seen)
    assert found.pop((Result.CLIENT_LIMIT, "ENOSPC")) == 7
    assert sum(found.values()) >= SLOTS - 7
    assert {o.event for o in seen} == {Event.NEW_CONNECTIONS, Event.PROBER_SUMMARY}
