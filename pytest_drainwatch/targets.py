"""Which pods a trial is about: those to terminate, and the one that the flows are held on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

from pytest_drainwatch.core.scenario import Affinity
from pytest_drainwatch.flows.ask import NobodyAnswered
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.trigger import Pod, Target
from pytest_drainwatch.way import Way
from pytest_drainwatch.workload import manifests

ASK_TIMEOUT_S = 30.0


def pods_of(seen: Mapping[str, Mapping[str, object]]) -> tuple[Pod, ...]:
    """The watched pods by their names' order."""
    pods = (Pod(name=str(fields["name"]), uid=uid) for uid, fields in seen.items())
    return tuple(sorted(pods, key=lambda pod: pod.name))


def choose(stage: Stage, way: Way, pods: tuple[Pod, ...]) -> Target:
    """The first pods are terminated, and the very first one has the flows.

    With session affinity that is the pod to which kube-proxy has pinned the flows' address.
    Raises :class:`NobodyAnswered` if that cannot be found out.
    """
    scenario = stage.scenario
    if scenario.service.session_affinity is Affinity.CLIENT_IP and len(pods) > 1:
        uid = _pinned(way, "tcp" if scenario.flows.tcp else "udp")
        pods = tuple(sorted(pods, key=lambda pod: pod.uid != uid))
    return Target(
        namespace=stage.namespace,
        pod=pods[0],
        chosen=pods[: scenario.targets],
        pods=pods,
        controller=scenario.app.controller,
        workload=manifests.NAME,
    )


def _pinned(way: Way, proto: str) -> str:
    """Asked from where the flows will be: kube-proxy pins addresses, and pods have their own."""
    port = way.tcp if proto == "tcp" else way.udp
    source = way.source(0)
    asked = [way.address, str(port), proto, *([source] if source else [])]
    try:
        done = subprocess.run(
            way.command([sys.executable, "-m", "pytest_drainwatch.flows.ask", *asked]),
            capture_output=True,
            text=True,
            check=False,
            timeout=ASK_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise NobodyAnswered(
            f"asking {proto} {way.address} port {port} took longer than {ASK_TIMEOUT_S:g} s; "
            "expected an answer within a few. Look at: this machine's load"
        ) from None
    if done.returncode != 0:
        raise NobodyAnswered(done.stderr.strip())
    return done.stdout.strip()
