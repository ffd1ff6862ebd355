"""What does trying new connections cost the flows, and this machine?

    python -m bench.prober [--seconds 8] [--rounds 3] [--interval-ms 5] [--agents 1]

On loopback, against a real probe: agents of 20 TCP flows at 60 Hz, as they are, with a
prober beside them, and with twice the flows, in turn within one run, so that all meet the
same machine. With ``--agents`` so many run at once, as with pytest-xdist: how many does a
machine bear? Prints one JSON line per figure. The probe and the agents share the cores, so
lateness here is what they leave. Exit code: 0 measured, 3 could not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.arguments import positive
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.probing.attempts import probers
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.recording import parse_observation
from pytest_drainwatch.flows.commands import probe_program
from pytest_drainwatch.flows.config import AgentConfig, Endpoint
from pytest_drainwatch.flows.limits import REALTIME_SENDS_PER_S_AND_CORE
from pytest_drainwatch.flows.probing.config import ProberConfig
from pytest_drainwatch.flows.process import AgentFailed, FlowAgent

DONE, CANNOT = 0, 3
LOOPBACK = "127.0.0.1"
FLOWS, RATE_HZ = 20, 60
READY_S = 20
CORES_A_CORE = 0.25  # what limits.py lets a real-time agent take of each core
NS_PER_US = 1000
# An attempt that is late by an interval leaves a gap as wide as two. What a window's bounds
# are good for is the worst one, which a stall makes, and a stall is told apart.
ATTEMPTS_LATE = {"late_p50": "<= 0.5", "late_p99": "<= 2", "late_max": "<= 20"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What one agent did while it was looked at."""

    cpu_ns: int
    seconds: float
    sends_late_p99_ns: int
    sends_missed: int
    prober: dict[str, Any] | None
    results: Counter[str]

    @property
    def cores(self) -> float:
        """The share of one core that it took."""
        return self.cpu_ns / (self.seconds * NS_PER_S)


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.prober", description="what trying new connections costs"
    )
    parser.add_argument("--seconds", type=float, default=8, help="per agent (%(default)s)")
    parser.add_argument("--rounds", type=positive, default=3, help="of three agents (%(default)s)")
    parser.add_argument("--interval-ms", type=int, default=5, help="of attempts (%(default)s)")
    parser.add_argument("--agents", type=positive, default=1, help="at once (%(default)s)")
    arguments = parser.parse_args(argv)
    interval_ns = arguments.interval_ms * NS_PER_MS
    plain: list[Held] = []
    probing: list[Held] = []
    more: list[Held] = []
    try:
        with probe() as (port, _), tempfile.TemporaryDirectory() as folder:
            parts = [Path(folder) / f"part-{number}" for number in range(arguments.agents)]
            for _ in range(arguments.rounds):
                plain += _hold(parts, port, FLOWS, None, arguments.seconds)
                probing += _hold(parts, port, FLOWS, interval_ns, arguments.seconds)
                more += _hold(parts, port, 2 * FLOWS, None, arguments.seconds)
    except (AgentFailed, OSError, RuntimeError) as error:
        print(f"could not measure: {error}", file=sys.stderr)
        return CANNOT
    for figure in figures(plain, probing, more, interval_ns):
        print(json.dumps(figure), flush=True)
    return DONE


def figures(
    plain: Sequence[Held], probing: Sequence[Held], more: Sequence[Held], interval_ns: int
) -> Iterator[dict[str, object]]:
    """Medians over agents and rounds; costs are differences to the plain agent of the round."""
    without = [held.sends_late_p99_ns / NS_PER_MS for held in plain]
    beside = [held.sends_late_p99_ns / NS_PER_MS for held in probing]
    told = [held.prober for held in probing if held.prober is not None]
    yield _figure("sends_late_p99_ms_without_prober", median(without), "ms")
    yield _figure("sends_late_p99_ms_with_prober", median(beside), "ms", "<= 2")
    ratios = [b / a for a, b in zip(without, beside, strict=True)]
    yield _figure("sends_late_p99_ratio", median(ratios), "with / without")
    yield _figure("sends_missed_with_prober", sum(held.sends_missed for held in probing), "slots")
    for name, goal in ATTEMPTS_LATE.items():
        worst = max(prober[f"{name}_ns"] for prober in told) / NS_PER_MS
        yield _figure(f"attempts_{name}_worst_ms", worst, "ms", goal)
    yield _figure("attempts_missed", sum(p["missed_slots"] for p in told), "slots", "== 0")
    answered = sum(held.results[Result.ANSWERED] for held in probing)
    attempts = sum(prober["attempts"] for prober in told)
    yield _figure("attempts_answered", answered / attempts, "share")
    rate = NS_PER_S / interval_ns
    attempt_us = median(
        (b.cores - a.cores) * NS_PER_S / rate / NS_PER_US
        for a, b in zip(plain, probing, strict=True)
    )
    send_us = median(
        (b.cores - a.cores) * NS_PER_S / (FLOWS * RATE_HZ) / NS_PER_US
        for a, b in zip(plain, more, strict=True)
    )
    # What limits.py takes either to cost at most.
    unit_us = CORES_A_CORE * NS_PER_S / REALTIME_SENDS_PER_S_AND_CORE / NS_PER_US
    yield _figure("cpu_per_attempt_us", attempt_us, "us", f"<= {unit_us:.0f}")
    yield _figure("cpu_per_exchange_us", send_us, "us", f"<= {unit_us:.0f}")
    sends_per_s = FLOWS * RATE_HZ + rate  # of one agent
    budget = CORES_A_CORE * sends_per_s / REALTIME_SENDS_PER_S_AND_CORE
    cores = median(held.cores for held in probing)
    yield _figure("agent_cores_with_prober", cores, "cores", f"<= {budget:.2f}")
    yield _figure("load", os.getloadavg()[0], "processes")


@contextmanager
def probe() -> Iterator[tuple[int, int]]:
    """A probe on loopback; its ports, for TCP and UDP. Raises :class:`RuntimeError`."""
    program = probe_program()
    if program is None:
        raise RuntimeError("probe.py was not found; expected probe_image/probe.py")
    env = {**os.environ, "POD_UID": "bench", "BIND": LOOPBACK}
    env.update(TCP_PORT="0", UDP_PORT="0", HTTP_PORT="0")
    with subprocess.Popen(
        [sys.executable, str(program)], env=env, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        try:
            for line in running.stdout:
                if (told := json.loads(line))["event"] == "listening":
                    yield int(told["tcp_port"]), int(told["udp_port"])
                    return
            raise RuntimeError("the probe ended before it listened")
        finally:
            running.kill()


def _hold(
    parts: Sequence[Path], port: int, flows: int, interval_ns: int | None, seconds: float
) -> list[Held]:
    """What agents did that ran at once, one for each of ``parts``."""
    configs = [_config(part, port, flows, interval_ns, len(parts)) for part in parts]
    with ExitStack() as stack:
        agents = []
        for config in configs:
            Path(config.record).unlink(missing_ok=True)
            agents.append(FlowAgent(list, config))
            stack.callback(agents[-1].stop)
        until = time.monotonic() + READY_S
        for agent in agents:
            while agent.status().tcp.min_answers < RATE_HZ // 2:
                agent.check_alive()
                if time.monotonic() > until:
                    raise RuntimeError(f"flows are not answered within {READY_S} s")
                agent.wait_changed(0.1)
        before, begun = [cpu_ns(agent.pid) for agent in agents], time.monotonic()
        time.sleep(seconds)
        after, took = [cpu_ns(agent.pid) for agent in agents], time.monotonic() - begun
    spent = [b - a for a, b in zip(before, after, strict=True)]
    return [_held(part, taken_ns, took) for part, taken_ns in zip(parts, spent, strict=True)]


def _config(part: Path, port: int, flows: int, interval_ns: int | None, agents: int) -> AgentConfig:
    prober = () if interval_ns is None else (
        ProberConfig(proto="tcp", address=LOOPBACK, port=port, interval_ns=interval_ns),
    )  # fmt: skip
    return AgentConfig(
        record=str(part),
        tcp=Endpoint(address=LOOPBACK, port=port, flows=flows),
        tcp_rate_hz=RATE_HZ,
        probers=prober,
        agents=agents,
    )


def _held(part: Path, cpu_ns: int, seconds: float) -> Held:
    """What an agent recorded."""
    lines = part.read_text(encoding="utf-8").splitlines()
    seen = [parse_observation(line, number) for number, line in enumerate(lines, 1)]
    summary: Any = next(o.data for o in seen if o.event is Event.AGENT_SUMMARY)
    results = Counter[str]()
    for prober in probers(seen):
        for run in prober.runs:
            results[run.result] += run.count
    return Held(
        cpu_ns=cpu_ns,
        seconds=seconds,
        sends_late_p99_ns=summary["late_p99_ns"],
        sends_missed=summary["missed_slots"],
        prober=next((dict(o.data) for o in seen if o.event is Event.PROBER_SUMMARY), None),
        results=results,
    )


def cpu_ns(pid: int) -> int:
    """How long it has run."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def _figure(name: str, value: float, unit: str, goal: str | None = None) -> dict[str, object]:
    return {"figure": name, "value": round(value, 4), "unit": unit, "goal": goal}


if __name__ == "__main__":
    sys.exit(main())
