"""Whether the Service answers from here, before anything is held on it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence

from pytest_drainwatch import preflight, targets
from pytest_drainwatch.core.scenario import Flows, Workload
from pytest_drainwatch.flows.ask import NobodyAnswered
from pytest_drainwatch.preflight import require
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.way import Way

REACH_TIMEOUT_S = 5.0  # kube-proxy may be a second behind the API
PATIENCE_S = 15.0


def reach(stage: Stage, way: Way) -> None:
    """Insist that the probe answers over each transport that the trial uses.

    Not in a cluster of our own, whose way is ours too. Raises TrialVoid.
    """
    if stage.cluster.provider == "embedded" and stage.placement.address is None:
        return
    port = way.tcp if stage.scenario.flows.tcp else way.udp

    def look() -> preflight.Check:
        went, ok = [], True
        for proto in _transports(stage.scenario.flows):
            try:
                went.append(f"{proto}: answered by pod {targets.asked(way, proto)}")
            except NobodyAnswered as error:
                ok = False
                went.append(str(error))
        return preflight.service_reachable(f"{way.address}:{port}", went, ok=ok)

    # Of an address that somebody gave no more is known after a wait.
    given = stage.placement.address is not None
    require(look, stage.recorder, timeout_s=0 if given else REACH_TIMEOUT_S)


def reach_attached(stage: Stage, way: Way, asked: Workload) -> None:
    """Insist that a workload of the user's accepts connections. Raises TrialVoid.

    Nobody accepts a datagram, so UDP is left to the flows themselves.
    """
    if asked.transport != "tcp":
        return
    source = way.source(0)
    question = [way.address, str(way.tcp), *([source] if source else [])]

    def look() -> preflight.Check:
        return preflight.address_reachable(
            f"{way.address} port {way.tcp}",
            _problem(
                way.command([sys.executable, "-m", "pytest_drainwatch.flows.reach", *question])
            ),
            f"nc -vz {way.address} {way.tcp}; the Service's endpoints and node ports; a firewall "
            f"between here and there; kubectl -n {asked.namespace} get services -o wide",
        )

    require(look, stage.recorder, timeout_s=REACH_TIMEOUT_S)


def _problem(command: Sequence[str]) -> str | None:
    """What a program says is wrong; None if all is well."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"asking could not be done: {error}"
    return None if done.returncode == 0 else done.stderr.strip() or "no answer"


def _transports(flows: Flows) -> Iterator[str]:
    if flows.tcp or flows.probe_interval_ns is not None:
        yield "tcp"
    if flows.udp or flows.udp_one_way or flows.udp_probe_interval_ns is not None:
        yield "udp"
