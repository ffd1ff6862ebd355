"""Where does a cluster's start go: time, CPU, memory, inotify instances?

    python -m bench.startup [--clusters 1] [--rounds 3] [--idle 10] [--json]

Starts so many embedded clusters at once, as the workers of pytest-xdist do, looks at each
when it is whole, lets all idle, looks again, and ends them. Shows a table, or with ``--json``
one JSON line per figure. Exit code: 0 measured, 3 could not.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.arguments import positive
from pytest_drainwatch.cluster import ClusterError, ClusterSettings
from pytest_drainwatch.cluster.embedded import inotify
from pytest_drainwatch.cluster.embedded.cluster import EmbeddedCluster, start_embedded

DONE, CANNOT = 0, 3
READY_GOAL = "<= 3"
_STEP = re.compile(r"^ *([\d.]+) s  (.*)$")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One process of a node: CPU seconds since its start, PSS in MB, inotify instances."""

    component: str
    cpu_s: float
    pss_mb: float
    inotify: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One cluster's start.

    Attributes:
        took_s: from the call to the whole cluster, turns that it waited for included.
        ready_s, whole_s: node Ready, and whole, since the launch of this cluster.
        steps: what the node said of its components and gates, and when.
        whole, idle: each process when the cluster was whole, and after the idle time.
        idle_s: how long that was.
    """

    took_s: float
    ready_s: float
    whole_s: float
    steps: tuple[tuple[float, str], ...]
    whole: tuple[Usage, ...]
    idle: tuple[Usage, ...]
    idle_s: float


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.startup", description="where a cluster's start goes"
    )
    parser.add_argument("--clusters", type=positive, default=1, help="at once (%(default)s)")
    parser.add_argument(
        "--rounds", type=positive, default=3, help="one after the other (%(default)s)"
    )
    parser.add_argument("--idle", type=float, default=10, help="seconds (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON line per figure")
    arguments = parser.parse_args(argv)
    rounds: list[list[Start]] = []
    try:
        for _ in range(arguments.rounds):
            rounds.append(measure(arguments.clusters, arguments.idle))
    except (ClusterError, OSError) as error:
        print(f"could not measure: {error}", file=sys.stderr)
        return CANNOT
    if arguments.json:
        for figure in figures(rounds):
            print(json.dumps(figure), flush=True)
    else:
        for line in table(rounds):
            print(line)
    return DONE


def measure(clusters: int, idle_s: float, settings: ClusterSettings | None = None) -> list[Start]:
    """Start so many at once and look at them. Raises ClusterError."""
    wanted = settings or ClusterSettings()

    def start() -> tuple[EmbeddedCluster, float]:
        began = time.monotonic()
        return start_embedded(wanted, why="bench", log=_quiet), time.monotonic() - began

    with ExitStack() as stack, ThreadPoolExecutor(clusters) as pool:
        futures = [pool.submit(start) for _ in range(clusters)]
        errors = [error for future in futures if (error := future.exception())]
        started = [future.result() for future in futures if not future.exception()]
        for cluster, _ in started:
            stack.callback(cluster.close)
        if errors:
            raise errors[0]
        before = [usages(cluster) for cluster, _ in started]
        began = time.monotonic()
        time.sleep(idle_s)
        after = [usages(cluster) for cluster, _ in started]
        idled_s = time.monotonic() - began
        return [
            Start(
                took_s=took_s,
                ready_s=cluster.whole.ready_s,
                whole_s=cluster.whole.whole_s,
                steps=tuple(steps(cluster.layout.log("node"))),
                whole=whole,
                idle=idle,
                idle_s=idled_s,
            )
            for (cluster, took_s), whole, idle in zip(started, before, after, strict=True)
        ]


def usages(cluster: EmbeddedCluster) -> tuple[Usage, ...]:
    """Every component of a running cluster, now; what pods run is not among them."""
    children = Path(f"/proc/{(node := cluster.layout.node_pid.read_text())}/task/{node}/children")
    found = []
    for pid in children.read_text().split():
        folder = Path("/proc") / pid
        with contextlib.suppress(OSError):  # it may end while it is looked at
            words = (folder / "cmdline").read_bytes().decode().split("\0")
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            found.append(
                Usage(
                    component=words[1] if words[0].endswith("kubenode") else Path(words[0]).name,
                    cpu_s=(int(fields[11]) + int(fields[12])) / _TICKS_PER_S,
                    pss_mb=_pss_mb(folder),
                    inotify=inotify.of_process(folder),
                )
            )
    return tuple(sorted(found, key=lambda usage: usage.component))


def steps(log: Path) -> Iterator[tuple[float, str]]:
    """What a node's PID 1 said, with seconds since its own start."""
    for line in log.read_text().splitlines():
        if match := _STEP.match(line):
            yield float(match[1]), match[2]


def figures(rounds: Sequence[Sequence[Start]]) -> Iterator[dict[str, object]]:
    """Medians over clusters and rounds; of memory and inotify instances those of one cluster."""
    starts = [start for each in rounds for start in each]
    goal = READY_GOAL if len(rounds[0]) == 1 else None
    yield _figure("clusters_at_once", len(rounds[0]), "clusters")
    yield _figure("ready_s", median(start.ready_s for start in starts), "s", goal)
    yield _figure("whole_s", median(start.whole_s for start in starts), "s")
    yield _figure("all_whole_s", median(max(s.took_s for s in each) for each in rounds), "s")
    for text in dict.fromkeys(text for start in starts for _, text in start.steps):
        at = [when for start in starts for when, said in start.steps if said == text]
        yield _figure(f"step {text}", median(at), "s")
    for name in dict.fromkeys(usage.component for start in starts for usage in start.whole):
        yield _figure(f"{name} start_cpu", _of(starts, name, "cpu_s"), "s")
        yield _figure(f"{name} pss", _of(starts, name, "pss_mb"), "MB")
        yield _figure(f"{name} idle_cpu", _idle_percent(starts, name), "% of a core")
        yield _figure(f"{name} inotify", _of(starts, name, "inotify"), "instances")
    totals = [start.whole for start in starts]
    yield _figure("start_cpu", median(sum(u.cpu_s for u in each) for each in totals), "s")
    yield _figure("pss", median(sum(u.pss_mb for u in each) for each in totals), "MB")
    yield _figure("idle_cpu", _idle_percent(starts, None), "% of a core")
    yield _figure("inotify", max(sum(u.inotify for u in each) for each in totals), "instances")
    yield _figure("load", os.getloadavg()[0], "processes")


def table(rounds: Sequence[Sequence[Start]]) -> Iterator[str]:
    """The same figures for people."""
    for figure in figures(rounds):
        goal = f"   goal {figure['goal']}" if figure["goal"] else ""
        yield f"{figure['figure']:<58} {figure['value']:>9} {figure['unit']}{goal}"


def _of(starts: Sequence[Start], component: str, field: str) -> float:
    return median(
        float(getattr(usage, field))
        for start in starts
        for usage in start.whole
        if usage.component == component
    )


def _idle_percent(starts: Sequence[Start], component: str | None) -> float:
    """CPU time while idle, of one component or of all, in percent of a core."""

    def spent_s(usages: Sequence[Usage]) -> float:
        return sum(u.cpu_s for u in usages if component in (None, u.component))

    return median(100 * (spent_s(s.idle) - spent_s(s.whole)) / s.idle_s for s in starts)


def _pss_mb(folder: Path) -> float:
    for line in (folder / "smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0  # a process that has ended has no memory


def _quiet(_: str) -> None:
    """Progress is not what is measured here."""


def _figure(name: str, value: float, unit: str, goal: str | None = None) -> dict[str, object]:
    return {"figure": name, "value": round(value, 3), "unit": unit, "goal": goal}


if __name__ == "__main__":
    sys.exit(main())
