"""A real probe and a real agent on loopback, and what the agent wrote down."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pytest_drainwatch.core.flow.classify import classify
from pytest_drainwatch.core.flow.life import live
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.recording import parse_observation
from pytest_drainwatch.core.stall import stalls_of

TOP = Path(__file__).resolve().parents[2]
PROBE = TOP / "probe_image" / "probe.py"
LOOPBACK = "127.0.0.1"
PATIENCE_S = 20.0  # for a loaded machine; nothing is asserted about how long things take


class RigError(AssertionError):
    """The rig itself did not get where the test needs it."""


class _Child:
    """A child process whose stdout is JSON lines, read by a thread as they come."""

    def __init__(self, argv: list[str], env: Mapping[str, str], stdin: int) -> None:
        self.process = subprocess.Popen(
            argv,
            env=dict(env),
            cwd=TOP,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.lines: list[dict[str, Any]] = []
        self._news = threading.Condition()
        self._closed = False
        assert self.process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, stream: IO[bytes]) -> None:
        for line in stream:
            with self._news:
                self.lines.append(json.loads(line))
                self._news.notify_all()
        with self._news:
            self._closed = True
            self._news.notify_all()

    def await_line(self, wanted: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """The first line that is wanted, now or soon."""
        until = time.monotonic() + PATIENCE_S
        looked_at = 0
        with self._news:
            while True:
                for line in self.lines[looked_at:]:
                    if wanted(line):
                        return line
                looked_at = len(self.lines)
                left = until - time.monotonic()
                if self._closed or left <= 0:
                    raise RigError(f"no {what}; last lines {self.lines[-3:]}; {self.errors()}")
                self._news.wait(left)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """The exit code."""
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code

    def errors(self) -> str:
        """What it wrote to stderr, once it has ended."""
        if self.process.poll() is None or self.process.stderr is None:
            return "still running"
        return self.process.stderr.read().decode() if not self.process.stderr.closed else ""

    def close(self) -> None:
        """Whatever state it is in: end it and release its pipes."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


class Probe(_Child):
    """probe.py with ephemeral ports on 127.0.0.1."""

    def __init__(
        self, uid: str | None = "pod-a", prefix: Sequence[str] = (), **settings: str
    ) -> None:
        env = {
            "PATH": os.environ.get("PATH", ""),
            **({} if uid is None else {"POD_UID": uid}),
            "BIND": LOOPBACK,
            "TCP_PORT": "0",
            "UDP_PORT": "0",
            "HTTP_PORT": "0",
            **settings,
        }
        super().__init__([*prefix, sys.executable, str(PROBE)], env, subprocess.DEVNULL)
        self.uid = uid

    def listening(self) -> Probe:
        line = self.event("listening")
        self.tcp_port: int = line["tcp_port"]
        self.udp_port: int = line["udp_port"]
        self.http_port: int = line["http_port"]
        self.nonce: str = line["nonce"]
        return self

    def event(self, name: str) -> dict[str, Any]:
        """The first log line of that event."""
        return self.await_line(lambda line: line["event"] == name, f"probe event {name!r}")

    def events(self) -> list[str]:
        return [line["event"] for line in self.lines]

    @property
    def responder(self) -> str:
        return f"{self.uid}/{self.nonce}"


class Agent(_Child):
    """The flow agent with its stdin held open: the lifeline."""

    def __init__(self, config: Mapping[str, object] | str, prefix: Sequence[str] = ()) -> None:
        env = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(TOP)}
        argv = [*prefix, sys.executable, "-m", "pytest_drainwatch.flows"]
        super().__init__(argv, env, subprocess.PIPE)
        self.say(config if isinstance(config, str) else json.dumps(config))

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def stop(self) -> int:
        self.say('{"do": "stop"}')
        return self.wait()

    def drop_lifeline(self) -> None:
        """What the kernel does to the pipe when the conductor dies."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def holding(self, min_answers: int = 3) -> dict[str, Any]:
        """Wait until every flow was answered so many times."""

        def ready(status: dict[str, Any]) -> bool:
            counts = [status[p] for p in ("tcp", "udp") if status[p]]
            return status["phase"] == "holding" and all(
                c["min_answers"] >= min_answers for c in counts
            )

        return self.await_line(ready, "status with all flows answered")

    def ended(self, proto: str, count: int) -> dict[str, Any]:
        """Wait until so many flows have ended."""
        return self.await_line(
            lambda s: bool(s[proto]) and s[proto]["ended"] >= count, f"{count} {proto} flows ended"
        )

    def await_status(self, wanted: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """Wait for a status from now on."""
        seen = len(self.lines)

        def fresh(status: dict[str, Any]) -> bool:
            return self.lines.index(status) >= seen and wanted(status)

        return self.await_line(fresh, what)


@dataclass(slots=True)
class Part:
    """What the agent recorded."""

    seen: list[Observation] = field(default_factory=list)

    def of(self, flow: str) -> list[Observation]:
        return [o for o in self.seen if o.subject == flow]

    def events(self, flow: str) -> list[Event]:
        return [o.event for o in self.of(flow)]

    def note(self, flow: str) -> str:
        """What the datagrams of a one-way flow are signed with."""
        return str(self.one(flow, Event.FLOW_CONNECTED).data["note"])

    def flows(self) -> list[str]:
        """The ids of all flows."""
        return sorted({o.subject for o in self.seen if o.event.startswith("flow_")})

    def verdict(self, flow: str, workload: Set[str] = frozenset()) -> tuple[str, str]:
        """What the core makes of it."""
        proto = Proto.UDP if flow.startswith("udp") else Proto.TCP
        life = live(proto, self.of(flow), workload, stalls_of(self.seen))
        outcome, mechanism = classify(life)
        return str(outcome), str(mechanism)

    def one(self, flow: str, event: Event) -> Observation:
        """The only such observation."""
        found = [o for o in self.of(flow) if o.event is event]
        assert len(found) == 1, f"expected one {event} of {flow}, got {self.events(flow)}"
        return found[0]

    def all(self, event: Event) -> list[Observation]:
        return [o for o in self.seen if o.event is event]


class Rig:
    """Starts probes and agents, and ends them all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: list[_Child] = []
        self._parts = 0

    def probe(self, uid: str = "pod-a", prefix: Sequence[str] = (), **settings: str) -> Probe:
        probe = Probe(uid, prefix, **settings)
        self._children.append(probe)
        return probe.listening()

    def agent(
        self,
        tcp: tuple[int, int] | None = None,
        udp: tuple[int, int] | None = None,
        prefix: Sequence[str] = (),
        **config: object,
    ) -> Agent:
        """An agent with flows of ``(port, count)`` to loopback."""
        self._parts += 1
        whole: dict[str, object] = {"record": str(self._folder / f"part-{self._parts}.jsonl")}
        address = config.pop("address", LOOPBACK)
        for proto, end in (("tcp", tcp), ("udp", udp)):
            if end is not None:
                whole[proto] = {"address": address, "port": end[0], "flows": end[1]}
        agent = Agent({**whole, **config}, prefix)
        self._children.append(agent)
        return agent

    def recorded(self, agent: Agent) -> Part:
        """The agent's part, after it was told to stop."""
        if agent.process.poll() is None:
            code = agent.stop()
            assert code == 0, agent.lines[-1:]
        number = [c for c in self._children if isinstance(c, Agent)].index(agent) + 1
        text = (self._folder / f"part-{number}.jsonl").read_text()
        return Part([parse_observation(line, i) for i, line in enumerate(text.splitlines(), 1)])

    def close(self) -> None:
        for child in self._children:
            child.close()


def restart(rig: Rig, probe: Probe, uid: str) -> Probe:
    """Another probe, with another identity, on the ports of ``probe``, which must be gone."""
    return rig.probe(
        uid,
        TCP_PORT=str(probe.tcp_port),
        UDP_PORT=str(probe.udp_port),
        HTTP_PORT=str(probe.http_port),
    )
