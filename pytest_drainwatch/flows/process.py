"""The conductor's handle on a running flow agent: start it, read its status, stop it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.flows.config import AgentConfig, parse_plan
from pytest_drainwatch.flows.fields import ConfigError
from pytest_drainwatch.priority import run_soon

STOP_TIMEOUT_S = 10.0
STDERR_LINES = 20


class AgentFailed(Exception):
    """The flow agent ended or reported an error; the text holds what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtoStatus:
    """How the flows of one transport stand; the fields are those of :class:`.status.Counts`."""

    wanted: int = 0
    dialled: int = 0
    answered: int = 0
    on_target: int = 0
    alive: int = 0
    target_alive: int = 0
    target_answering: int = 0
    refused: int = 0
    quiet: int = 0
    moved: int = 0
    ended: int = 0
    min_answers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProberStatus:
    """What a prober did so far: attempts begun, and results that are known.

    What is ``finished`` and neither ``answered`` nor ``failed`` tells nothing of the workload.
    """

    attempts: int = 0
    answered: int = 0
    failed: int = 0
    finished: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpStatus:
    """How the HTTP requests stand.

    ``ready`` of the ``lanes`` were answered as expected at least once; the last answer of
    ``identified`` named its responder (None: no header was asked for). ``requests`` ended.
    ``due`` were planned around the trigger and are still to be made, ``waiting`` of these are
    under way; the last request of ``failing`` lanes, which will ask again, failed. ``old``
    pooled connections are from before the trigger. ``problem``: what was last wrong.
    """

    lanes: int = 0
    ready: int = 0
    identified: int | None = None
    responders: tuple[str, ...] = ()
    requests: int = 0
    served: int = 0
    failed: int = 0
    due: int = 0
    waiting: int = 0
    failing: int = 0
    old: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStatus:
    """The agent's last word."""

    phase: str = "starting"
    tcp: ProtoStatus = field(default_factory=ProtoStatus)
    udp: ProtoStatus = field(default_factory=ProtoStatus)
    probers: Mapping[str, ProberStatus] = field(default_factory=dict)  # by subject
    http: HttpStatus | None = None
    first_ends: tuple[str, ...] = ()
    clocks: tuple[str, ...] = ()
    error: str | None = None

    @property
    def target_alive(self) -> int:
        """Flows of the target that have neither ended nor moved."""
        return self.tcp.target_alive + self.udp.target_alive

    @property
    def target_answering(self) -> int:
        """Of those, the ones that the target still answers."""
        return self.tcp.target_answering + self.udp.target_answering

    @property
    def answering(self) -> int:
        """Flows of any pod that are answered."""
        return sum(max(0, p.alive - p.quiet - p.refused) for p in (self.tcp, self.udp))

    @property
    def undecided(self) -> int:
        """Flows of any pod that wait for an answer, or saw an error since the last one."""
        return sum(proto.quiet + proto.refused for proto in (self.tcp, self.udp))


class FlowAgent:
    """One agent process. It ends with this object's process: its stdin is its lifeline."""

    def __init__(self, command: Callable[[Sequence[str]], list[str]], config: AgentConfig) -> None:
        self.part = Path(config.record)
        self._status = AgentStatus()
        self._changed = threading.Condition()
        self._stopping = False
        self._stderr: list[str] = []
        self._process = subprocess.Popen(
            command([sys.executable, "-m", "pytest_drainwatch.flows"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._readers = [
            threading.Thread(target=self._read_status, name="agent-status", daemon=True),
            threading.Thread(target=self._read_stderr, name="agent-stderr", daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        self._tell({k: v for k, v in asdict(config).items() if v is not None})

    @property
    def pid(self) -> int:
        """The agent's process id."""
        return self._process.pid

    def status(self) -> AgentStatus:
        """The last status received."""
        with self._changed:
            return self._status

    def wait_changed(self, timeout_s: float) -> None:
        """Return at the next status, or after ``timeout_s``."""
        with self._changed:
            self._changed.wait(timeout_s)

    def check_alive(self) -> None:
        """Raise :class:`AgentFailed` if the agent has ended by itself or reports an error."""
        error = self.status().error
        if error is not None:
            raise AgentFailed(f"the flow agent reports: {error}")
        if self._process.poll() is not None and not self._stopping:
            raise AgentFailed(
                f"the flow agent ended with exit code {self._process.returncode}; expected it to "
                f"live until it is stopped. Its last lines: {self._last_words()}"
            )

    def plan(self, dense: Iterable[Interval], trigger_ns: int | None = None) -> None:
        """Send densely within ``dense`` (CLOCK_MONOTONIC; in order, apart), else sparsely.

        HTTP requests are planned around ``trigger_ns``, when the trigger will be sent.
        Replaces the plan before it from now on; after :meth:`stop` it changes nothing.
        Raises :class:`AgentFailed` if it is none that the agent accepts.
        """
        pairs = [[at.lo, at.hi] for at in dense]
        try:
            parse_plan(pairs)
        except ConfigError as error:
            raise AgentFailed(f"the flow agent would refuse this plan: {error}") from error
        if not self._stopping:
            told = {} if trigger_ns is None else {"trigger_ns": trigger_ns}
            self._tell({"do": "plan", "dense": pairs, **told})

    def stop(self) -> None:
        """Tell it to write its last records and end; a second call does nothing.

        Raises :class:`AgentFailed` unless it ends by itself and says that all is well:
        otherwise its recording may be torn.
        """
        if self._stopping:
            return
        ended_before = self._process.poll() is not None
        self._stopping = True
        with suppress(OSError, ValueError):
            self._tell({"do": "stop"})
            assert self._process.stdin
            self._process.stdin.close()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AgentFailed(
                f"the flow agent did not stop within {STOP_TIMEOUT_S:g} s and was killed: its "
                "recording is incomplete. Look at: the machine's load"
            ) from None
        finally:
            for reader in self._readers:
                reader.join(2.0)
            for pipe in (self._process.stdout, self._process.stderr):
                if pipe is not None:
                    pipe.close()
        error = self.status().error
        if ended_before or self._process.returncode != 0 or error is not None:
            raise AgentFailed(
                f"the flow agent ended {'by itself ' if ended_before else ''}with exit code "
                f"{self._process.returncode}: {error or self._last_words()}; expected it to stop "
                "when told and to report no error"
            )

    def _tell(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        with suppress(BrokenPipeError):  # check_alive() says why
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def _read_status(self) -> None:
        run_soon()
        assert self._process.stdout
        for line in self._process.stdout:
            status = parse_status(line)
            if status is not None:
                with self._changed:
                    self._status = status
                    self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def _read_stderr(self) -> None:
        run_soon()
        assert self._process.stderr
        for line in self._process.stderr:
            self._stderr = [*self._stderr, line.rstrip()][-STDERR_LINES:]

    def _last_words(self) -> str:
        return " | ".join(self._stderr) or "none"


def parse_status(line: str) -> AgentStatus | None:
    """A status line; None for anything else."""
    try:
        raw = json.loads(line)
        ends = tuple(f"{end['flow']}: {end['event']}" for end in raw.get("first_ends") or ())
        return AgentStatus(
            phase=str(raw["phase"]),
            tcp=_proto(raw.get("tcp")),
            udp=_proto(raw.get("udp")),
            probers={name: _prober(told) for name, told in (raw.get("probers") or {}).items()},
            http=_http(raw.get("http")),
            first_ends=ends,
            clocks=tuple(raw.get("clocks") or ()),
            error=_error(raw.get("error")),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _proto(raw: dict[str, int] | None) -> ProtoStatus:
    known = {f.name for f in fields(ProtoStatus)}
    return ProtoStatus(**{k: v for k, v in (raw or {}).items() if k in known and v is not None})


def _prober(raw: dict[str, Any]) -> ProberStatus:
    known = {f.name for f in fields(ProberStatus)}
    return ProberStatus(**{k: v for k, v in raw.items() if k in known})


def _http(raw: dict[str, Any] | None) -> HttpStatus | None:
    if raw is None:
        return None
    known = {f.name for f in fields(HttpStatus)} - {"responders"}
    told = {name: value for name, value in raw.items() if name in known}
    return HttpStatus(**told, responders=tuple(raw.get("responders") or ()))


def _error(raw: dict[str, str] | None) -> str | None:
    if raw is None:
        return None
    return f"{raw['what']}; expected {raw['expected']}. Next: {raw['next']}"
