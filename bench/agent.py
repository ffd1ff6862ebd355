"""What does one agent take of a core where the plan is dense, and where it is sparse?

    python -m bench.agent [--seconds 5] [--rounds 3]

On loopback, against a real probe: the flows and the new connections of a scenario that asks for
nothing else. Prints one JSON line per figure, medians over the rounds: the share of one core,
how often it was woken, and how late its sends were. Exit code: 0 measured, 3 could not.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.arguments import positive
from bench.prober import CANNOT, DONE, LOOPBACK, cpu_ns, probe
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval
from pytest_drainwatch.core.jsonvalue import integer_or_none
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.recording import parse_observation
from pytest_drainwatch.core.scenario import Flows
from pytest_drainwatch.flows.config import AgentConfig
from pytest_drainwatch.flows.process import AgentFailed, FlowAgent
from pytest_drainwatch.holding import agent_config
from pytest_drainwatch.way import Way

READY_S = 20
SETTLED_NS = NS_PER_S // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What an agent took in one stretch."""

    cores: float
    wakes_per_s: float
    late_p99_ns: int | None


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.agent", description="what one agent takes of a core"
    )
    parser.add_argument("--seconds", type=float, default=5, help="per stretch (%(default)s)")
    parser.add_argument("--rounds", type=positive, default=3, help="of one agent (%(default)s)")
    arguments = parser.parse_args(argv)
    rounds: list[Mapping[str, Taken]] = []
    try:
        with probe() as (tcp, udp):
            for _ in range(arguments.rounds):
                with tempfile.TemporaryDirectory() as folder:
                    rounds.append(_round(_config(Path(folder), tcp, udp), arguments.seconds))
    except (AgentFailed, OSError, RuntimeError) as error:
        print(f"could not measure: {error}", file=sys.stderr)
        return CANNOT
    for figure in figures(rounds):
        print(json.dumps(figure), flush=True)
    return DONE


def figures(rounds: Sequence[Mapping[str, Taken]]) -> Iterator[dict[str, object]]:
    """Medians of each kind of stretch."""
    for name in rounds[0]:
        taken = [one[name] for one in rounds]
        late = [one.late_p99_ns for one in taken if one.late_p99_ns is not None]
        yield _figure(f"cpu_{name}", 100 * median(one.cores for one in taken), "% of a core")
        yield _figure(f"wake_ups_{name}", median(one.wakes_per_s for one in taken), "per s")
        if late:
            yield _figure(f"sends_late_p99_{name}", median(late) / NS_PER_MS, "ms")


def _config(folder: Path, tcp: int, udp: int) -> AgentConfig:
    way = Way(address=LOOPBACK, tcp=tcp, udp=udp, sources=(), command=list)
    return agent_config(Flows(), way, "bench", folder)


def _round(config: AgentConfig, seconds: float) -> Mapping[str, Taken]:
    """One agent: once its flows are dialled a dense stretch that is looked at, then a sparse one.

    A sparse one before it keeps the dialling out of what is said of the dense one.
    """
    agent = FlowAgent(list, config)
    try:
        until = time.monotonic() + READY_S
        while agent.status().tcp.min_answers < config.tcp_rate_hz:
            agent.check_alive()
            if time.monotonic() > until:
                raise RuntimeError(f"flows are not answered within {READY_S} s")
            agent.wait_changed(0.1)
        begins_ns = time.monotonic_ns() + SETTLED_NS
        at = Interval(begins_ns, begins_ns + 2 * SETTLED_NS + round(seconds * NS_PER_S))
        agent.plan([at])
        _sleep_until(at.lo + SETTLED_NS)
        dense = _taken(agent.pid, seconds)
        _sleep_until(at.hi + SETTLED_NS)
        sparse = _taken(agent.pid, seconds)
    finally:
        agent.stop()
    lines = Path(config.record).read_text(encoding="utf-8").splitlines()
    seen = [parse_observation(line, number) for number, line in enumerate(lines, 1)]
    return {
        name: Taken(cores=cores, wakes_per_s=wakes, late_p99_ns=late_ns(seen, begun_ns))
        for name, begun_ns, (cores, wakes) in (
            ("dense", at.lo, dense),
            ("sparse", at.hi, sparse),
        )
    }


def _sleep_until(at_ns: int) -> None:
    time.sleep(max(0, at_ns - time.monotonic_ns()) / NS_PER_S)


def _taken(pid: int, seconds: float) -> tuple[float, float]:
    """The share of a core, and wake-ups a second."""
    before, woken, begun = cpu_ns(pid), _woken(pid), time.monotonic()
    time.sleep(seconds)
    took_s = time.monotonic() - begun
    return (cpu_ns(pid) - before) / NS_PER_S / took_s, (_woken(pid) - woken) / took_s


def _woken(pid: int) -> int:
    """How often it gave its core back by itself, and so had to be woken."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    (line,) = (line for line in status if line.startswith("voluntary_ctxt_switches"))
    return int(line.split()[1])


def late_ns(seen: Sequence[Observation], begun_ns: int) -> int | None:
    """The p99 of the later one of both transports, in the stretch that began then."""
    told = [o for o in seen if o.event is Event.AGENT_SENDING and o.at.lo == begun_ns]
    late = [integer_or_none(o.data.get("late_p99_ns")) for o in told]
    return max((one for one in late if one is not None), default=None)


def _figure(name: str, value: float, unit: str) -> dict[str, object]:
    return {"figure": name, "value": round(value, 2), "unit": unit, "goal": None}


if __name__ == "__main__":
    sys.exit(main())
