"""The agent's main program: configuration and commands in, status out.

stdin: one JSON line of configuration (:class:`~.config.AgentConfig`), then JSON
commands, one a line:

- ``{"do": "plan", "dense": [[lo_ns, hi_ns], …], "trigger_ns": ns}``: from now on send densely
  within these stretches of CLOCK_MONOTONIC, and sparsely elsewhere; replaces the plan before
  it. ``trigger_ns`` is when the trigger will be sent, which HTTP requests are planned around;
  it may be left out.
- ``{"do": "stop"}``. The end of stdin stops the agent as well: however its conductor
  dies, the pipe closes, and no agent is left behind.

stdout: JSON status lines, a few per second and at changes (:mod:`.status`).
Exit code: 0 stopped as told, 1 could not do its task, 2 bad configuration.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import signal
from contextlib import suppress
from dataclasses import asdict
from time import monotonic_ns

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.flows import limits
from pytest_drainwatch.flows.clockid import clock_id
from pytest_drainwatch.flows.config import AgentConfig, parse_config, parse_plan, parse_trigger
from pytest_drainwatch.flows.engine import Engine
from pytest_drainwatch.flows.errors import AgentError
from pytest_drainwatch.flows.fields import ConfigError
from pytest_drainwatch.flows.health import Health
from pytest_drainwatch.flows.recorder import Recorder
from pytest_drainwatch.flows.selector import StampingSelector
from pytest_drainwatch.flows.status import Phase, StatusPipe

STDIN, STDOUT = 0, 1


def main() -> int:
    """Run the agent."""
    # When to stop is the conductor's decision. Ctrl-C reaches it before it has a session of its
    # own, and if it leads its process group and so can have none.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(PermissionError):  # it leads one already
        os.setsid()  # a session of its own can be given a share of its own
    status = StatusPipe(STDOUT)
    lines = _Lines(STDIN)
    try:
        config = parse_config(lines.first())
    except ConfigError as error:
        what, _, expected = str(error).partition("; expected ")
        refused = AgentError(what, expected or "a valid configuration", "correct that field")
        _write_failure(status, refused)
        return 2
    descriptors = limits.raise_descriptors()
    try:
        limits.check(config, descriptors)
        return _run(config, descriptors, lines, status)
    except AgentError as error:
        _write_failure(status, error)
    except OSError as error:
        _write_failure(
            status, AgentError(f"{error}", f"a writable {config.record}", "choose another folder")
        )
    return 1


def _run(config: AgentConfig, descriptors: int, lines: _Lines, status: StatusPipe) -> int:
    if config.http is not None:  # before the loop runs: it takes some 20 ms
        _import_http()
    selector = StampingSelector()
    loop = asyncio.SelectorEventLoop(selector)
    recorder = Recorder(config.record, loop)
    health = Health(recorder.write)
    limits.tighten_timers()
    sparse = limits.stand(config.all_sends_per_s(dense=False))
    dense = limits.stand(config.all_sends_per_s(dense=True))  # until a plan comes
    now_ns = monotonic_ns()
    recorder.write(
        Observation(
            source=Source.CLIENT,
            event=Event.AGENT_STARTED,
            at=Interval(now_ns, now_ns),
            data={
                "pid": os.getpid(),
                "clock": clock_id(),
                "tcp_rate_hz": config.tcp_rate_hz,
                "udp_rate_hz": config.udp_rate_hz,
                "tcp_sparse_rate_hz": config.rate_hz("tcp", dense=False),
                "udp_sparse_rate_hz": config.rate_hz("udp", dense=False),
                "descriptors": descriptors,
                **asdict(dense),
                **{f"sparse_{name}": value for name, value in asdict(sparse).items()},
                "cpu_stat": health.cpu_stat,
            },
        )
    )
    # No collection may pause the loop; the flows make no cycles to collect.
    gc.collect()
    gc.freeze()
    gc.disable()
    engine = Engine(config, loop, selector, recorder, status, health)
    loop.add_signal_handler(signal.SIGTERM, engine.stop)
    loop.call_soon(_obey, engine, lines, loop)
    loop.run_until_complete(engine.run())
    return 0 if engine.error is None else 1


def _import_http() -> None:
    """Raises :class:`AgentError` where what it needs is not installed, as in a probe's image."""
    try:
        importlib.import_module("pytest_drainwatch.flows.http.client")
    except ImportError as error:
        raise AgentError(
            f"HTTP requests cannot be made: {error}",
            "the package h11 beside the flow agent",
            "pip install h11",
        ) from error


def _obey(engine: Engine, lines: _Lines, loop: asyncio.AbstractEventLoop) -> None:
    """Carry out the commands that are there, and watch for more."""
    if not lines.fill_from(loop):
        engine.stop()
    for line in lines.take():
        _carry_out(engine, line)
    if not lines.watched and not lines.ended:
        lines.watched = True
        try:
            loop.add_reader(STDIN, _obey, engine, lines, loop)
        except PermissionError:  # a regular file cannot be watched, and has ended anyway
            engine.stop()


class _Lines:
    """Lines of a descriptor, as they come."""

    def __init__(self, fd: int) -> None:
        self.watched = False
        self.ended = False
        self._fd = fd
        self._buffer = b""

    def first(self) -> str:
        """Wait for the first line."""
        while b"\n" not in self._buffer:
            data = os.read(self._fd, 65536)
            if not data:
                break
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace")

    def fill_from(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Read what is there; False at the end of the stream."""
        os.set_blocking(self._fd, False)
        try:
            data = os.read(self._fd, 65536)
        except BlockingIOError:
            return True
        if not data:
            self.ended = True
            loop.remove_reader(self._fd)
            return False
        self._buffer += data
        return True

    def take(self) -> list[str]:
        """The complete lines."""
        *lines, self._buffer = self._buffer.split(b"\n")
        return [line.decode(errors="replace") for line in lines if line.strip()]


def _carry_out(engine: Engine, line: str) -> None:
    """Do what the line says; what cannot be done is complained about and ends nothing."""
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError):
        raw = None
    match raw:
        case {"do": "stop"}:
            engine.stop()
        case {"do": "plan", "dense": dense, **rest} if not rest.keys() - {"trigger_ns"}:
            try:
                engine.plan(parse_plan(dense), parse_trigger(rest.get("trigger_ns")))
            except ConfigError as error:
                what, _, expected = str(error).partition("; expected ")
                engine.complain(AgentError(what, expected, "correct the plan"))
        case _:
            known = '{"do": "stop"} or {"do": "plan", "dense": [[lo_ns, hi_ns], …]}'
            engine.complain(AgentError(f"unknown command {line[:80]!r}", known, "correct it"))


def _write_failure(status: StatusPipe, error: AgentError) -> None:
    status.write(
        {
            "phase": Phase.FAILED,
            "at_ns": monotonic_ns(),
            "tcp": None,
            "udp": None,
            "probers": {},
            "http": None,
            "first_ends": [],
            "clocks": [],
            "error": error.told(),
        },
        last=True,
    )
