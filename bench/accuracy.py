"""How true and how tight are the reported ends of flows? A packet capture judges.

    python -m bench.accuracy [--trials 12] [--tcp 20] [--udp 10] [--keep FOLDER]

Runs real trials on an embedded cluster (root on Linux, after ``drainwatch setup``;
tcpdump installed), the three behaviours in turn, with tcpdump on the harness's end of
the link to the node and on the pods' bridge. Prints one JSON line per figure, and on
stderr every flow whose interval does not hold what the wire shows. Exit code: 0 all
covered, 1 not all, 3 could not measure. Widths depend on the machine's load: that of UDP
is a send period and, if the path just went silent, the workload's longest round trip;
both are told per trial.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import cycle, islice
from pathlib import Path

from bench.tcpdump import CaptureError
from bench.truth import Verdict
from bench.wallclock import ClockStepped
from bench.witness import Witnessed, witness
from pytest_drainwatch.cluster import Cluster, ClusterError, ClusterSettings
from pytest_drainwatch.cluster.opening import open_cluster
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario import App, Behavior, Flows, Scenario
from pytest_drainwatch.showing.progress import PlainProgress
from pytest_drainwatch.trial import TrialVoid, deploy, prepare

DONE, NOT_COVERED, CANNOT = 0, 1, 3
WIDTH_GOALS_MS = {Proto.TCP: 2, Proto.UDP: 20}
NS_PER_US = 1000


def scenario(behavior: Behavior, *, tcp: int, udp: int) -> Scenario:
    """A trial with windows as short as its behaviour allows."""
    return Scenario(
        app=App(behavior=behavior, grace_period_s=6, drain_ns=4 * NS_PER_S),
        flows=Flows(tcp=tcp, udp=udp),
        settle_ns=1 * NS_PER_S,
        name=f"accuracy-{behavior}",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.accuracy", description="flow ends against a packet capture"
    )
    parser.add_argument("--trials", type=int, default=12, help="how many (%(default)s)")
    parser.add_argument("--tcp", type=int, default=20, help="TCP flows each (%(default)s)")
    parser.add_argument("--udp", type=int, default=10, help="UDP flows each (%(default)s)")
    parser.add_argument(
        "--behavior",
        action="append",
        type=Behavior,
        choices=list(Behavior),
        help="only this one; may be repeated (all, in turn)",
    )
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep recordings, reports and captures there"
    )
    arguments = parser.parse_args(argv)
    asked = islice(cycle(arguments.behavior or Behavior), arguments.trials)
    scenarios = [scenario(b, tcp=arguments.tcp, udp=arguments.udp) for b in asked]
    with ExitStack() as stack:
        folder: Path = arguments.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        try:
            witnessed = [*_run(scenarios, folder)]
        except (CaptureError, ClockStepped, ClusterError, TrialVoid) as error:
            print(f"could not measure: {error}", file=sys.stderr)
            return CANNOT
    verdicts = [verdict for one in witnessed for verdict in one.verdicts]
    if not verdicts:
        print("could not measure: no flow ended; expected --trials 1 or more", file=sys.stderr)
        return CANNOT
    for figure in figures(verdicts):
        print(json.dumps(figure), flush=True)
    return NOT_COVERED if any(verdict.fault for verdict in verdicts) else DONE


def _run(scenarios: Sequence[Scenario], folder: Path) -> Iterator[Witnessed]:
    progress = PlainProgress()
    settings = ClusterSettings()
    cluster = open_cluster(settings, why="accuracy", log=progress.line, logs_dir=folder)
    try:
        for number, asked in enumerate(scenarios, 1):
            own = folder / f"{number:03d}-{asked.id}"
            own.mkdir(exist_ok=True)
            yield _trial(cluster, asked, own, progress)
    finally:
        cluster.close()


def _trial(cluster: Cluster, asked: Scenario, folder: Path, progress: PlainProgress) -> Witnessed:
    def keep(*, failed: bool) -> bool:
        return False

    with (
        prepare(cluster, asked, folder=folder, keep=keep, progress=progress) as stage,
        deploy(stage) as probe,
    ):
        seen = witness(probe, folder)
    progress.line(
        f"{folder.name}: {len(seen.verdicts)} ends, load {os.getloadavg()[0]:.1f}, "
        f"longest UDP round trip {seen.longest_round_trip_ns / NS_PER_MS:.1f} ms"
    )
    for verdict in seen.verdicts:
        if verdict.fault or verdict.named_right is False:
            progress.line(f"{folder.name}: {verdict}")
    return seen


def figures(verdicts: Sequence[Verdict]) -> Iterator[dict[str, object]]:
    """The figures, per protocol: coverage, then widths and errors as distributions."""
    for proto, goal_ms in WIDTH_GOALS_MS.items():
        ends = [verdict for verdict in verdicts if verdict.claim.proto is proto]
        if not ends:
            continue
        name = f"{proto}_end"
        covered = sum(verdict.fault is None for verdict in ends)
        widths = sorted(v.width_ns for v in ends if v.width_ns is not None)
        errors = sorted(v.error_ns for v in ends if v.error_ns is not None)
        yield _figure(f"{name}s", len(ends), "flows")
        yield _figure(f"{name}_coverage", covered / len(ends), "share", "== 1")
        for q, goal in (("p50", None), ("p99", f"<= {goal_ms}"), ("max", None)):
            yield _figure(f"{name}_width_{q}_ms", _ms(widths, q), "ms", goal)
        for q in ("min", "p50", "p99", "max"):
            yield _figure(f"{name}_error_{q}_ms", _ms(errors, q), "ms")
        slacks = sorted(v.slack_ns for v in ends if v.slack_ns is not None)
        yield _figure(f"{name}_slack_min_ms", _ms(slacks, "min"), "ms")
        named = [v.named_right for v in ends if v.named_right is not None]
        if named:
            yield _figure(f"{name}_named_as_on_the_wire", sum(named) / len(named), "share")
        for mechanism in sorted({v.claim.mechanism for v in ends}):
            count = sum(v.claim.mechanism == mechanism for v in ends)
            yield _figure(f"{name}s_{mechanism}", count, "flows")
    doubts = [e.at.width for v in verdicts for e in v.evidence]
    if doubts:
        yield _figure("capture_clock_doubt_max_us", max(doubts) / NS_PER_US, "us")


def _figure(name: str, value: object, unit: str, goal: str | None = None) -> dict[str, object]:
    return {"figure": name, "value": value, "unit": unit, "goal": goal}


def _ms(ordered: Sequence[int], which: str) -> float | None:
    """An order statistic in milliseconds: p99 is the smallest that 99 % do not exceed."""
    if not ordered:
        return None
    place = {"min": 0.0, "p50": 0.5, "p99": 0.99, "max": 1.0}[which]
    return ordered[max(0, math.ceil(place * len(ordered)) - 1)] / NS_PER_MS


if __name__ == "__main__":
    sys.exit(main())
