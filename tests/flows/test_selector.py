"""The selector: a true lower bound for every event, and its own watchdog."""

from __future__ import annotations

import asyncio
import select
import socket
import threading
import time

import pytest

from pytest_drainwatch.flows.selector import STALL_NS, StampingSelector


def test_what_is_reported_was_not_ready_at_quiet_ns() -> None:
    """Writes at known times: none may lie before the lower bound that its report gives."""
    selector = StampingSelector()
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    selector.register(reader.fileno(), 1)
    written: list[tuple[int, int]] = []
    read = threading.Semaphore(0)

    def write() -> None:
        for number in range(300):
            time.sleep((number % 7) * 0.0004)
            before = time.monotonic_ns()
            writer.send(b"x")
            written.append((before, time.monotonic_ns()))
            read.acquire()

    thread = threading.Thread(target=write)
    thread.start()
    bounds: list[tuple[int, int]] = []
    quiet_ns = 0
    while len(bounds) < 300:
        for _ in selector.select(1):
            lo = max(quiet_ns, selector.quiet_ns)
            reader.recv(10)
            hi = time.monotonic_ns()
            quiet_ns = time.monotonic_ns()
            with pytest.raises(BlockingIOError):
                reader.recv(10)
            bounds.append((lo, hi))
            read.release()
    thread.join()
    selector.close()
    reader.close()
    writer.close()
    for (lo, hi), (before, after) in zip(bounds, written, strict=True):
        assert lo <= after
        assert before <= hi


def test_it_serves_asyncio() -> None:
    async def main() -> bytes:
        server = await asyncio.start_server(_echo, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"hello\n")
        line = await reader.readline()
        writer.close()
        await writer.wait_closed()
        server.close()
        await asyncio.sleep(0.01)
        return line

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(StampingSelector())) as run:
        assert run.run(main()) == b"hello\n"


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.readline())
    await writer.drain()
    writer.close()


def test_a_handler_that_blocks_is_a_stall() -> None:
    selector = StampingSelector()
    stalls: list[tuple[int, int]] = []
    selector.on_stall = lambda lo, hi: stalls.append((lo, hi))
    selector.select(0)
    begun = time.monotonic_ns()
    time.sleep(2 * STALL_NS / 1e9)
    ended = time.monotonic_ns()
    selector.select(0)
    selector.close()
    assert [s for s in stalls if s[0] <= begun and s[1] >= ended], stalls


def test_a_timeout_returns_nothing() -> None:
    selector = StampingSelector()
    begun = time.monotonic_ns()
    assert selector.select(0.005) == []
    assert time.monotonic_ns() - begun >= 5_000_000
    selector.close()


def stalls_of(selector: StampingSelector) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    selector.on_stall = lambda lo, hi: found.append((lo, hi))
    return found


@pytest.mark.parametrize("ready", [True, False])
def test_a_wait_is_a_stall_only_if_something_may_have_been_missed(
    ready: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait longer than a stall, as it was meant: what ends it may have come at any time."""
    quantum_ns = STALL_NS * 3 // 2
    reader, writer = socket.socketpair()
    with reader, writer:
        selector = StampingSelector()
        selector.quantum_ns = quantum_ns
        selector.register(reader.fileno(), 1)
        stalls = stalls_of(selector)
        wait = select.select

        def woken(waiting: list[int], _w: object, _x: object, wait_s: float) -> object:
            time.sleep(wait_s)
            if ready:
                writer.send(b"x")
            return wait(waiting, [], [], 0)

        monkeypatch.setattr("pytest_drainwatch.flows.selector.select.select", woken)
        begun = time.monotonic_ns()
        assert bool(selector.select(quantum_ns / 1e9)) is ready
        ended = time.monotonic_ns()
        selector.close()
    if ready:
        assert any(hi - lo >= quantum_ns for lo, hi in stalls)
    else:
        assert not stalls or ended - begun > quantum_ns + STALL_NS, "unless it was late itself"


def test_a_wake_up_that_is_late_is_a_stall_even_if_nothing_was_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    selector = StampingSelector()
    stalls = stalls_of(selector)
    wait = select.select

    def late(waiting: list[int], _w: object, _x: object, wait_s: float) -> object:
        found = wait(waiting, [], [], wait_s)
        time.sleep(2 * STALL_NS / 1e9)
        return found

    monkeypatch.setattr("pytest_drainwatch.flows.selector.select.select", late)
    begun = time.monotonic_ns()
    assert selector.select(0.001) == []
    selector.close()
    assert any(lo >= begun and hi - lo >= 2 * STALL_NS - 1_000_000 for lo, hi in stalls), stalls
