"""Which pods a trial is about: those to terminate, and the one that the flows are held on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

from pytest_drainwatch import via
from pytest_drainwatch.core.scenario import Affinity, TrafficPolicy
from pytest_drainwatch.flows.ask import NobodyAnswered
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.trigger import Owner, Pod, Target
from pytest_drainwatch.way import Way
from pytest_drainwatch.workload.attached import Found
from pytest_drainwatch.workload.client import LABELS as CLIENT_LABELS

ASK_TIMEOUT_S = 30.0


def pods_of(seen: Mapping[str, Mapping[str, object]]) -> tuple[Pod, ...]:
    """The watched pods by their names' order."""
    pods = (
        Pod(name=str(fields["name"]), uid=uid, node=node if isinstance(node, str) else None)
        for uid, fields in seen.items()
        for node in [fields.get("node")]
    )
    return tuple(sorted(pods, key=lambda pod: pod.name))


def choose(stage: Stage, way: Way, pods: tuple[Pod, ...]) -> Target:
    """The first pods are terminated, and the very first one has the flows.

    With session affinity that is the pod to which kube-proxy has pinned the flows' address.
    Raises :class:`NobodyAnswered` if that cannot be found out, and ClusterError if no pod runs
    where the scenario has the way lead.
    """
    scenario = stage.scenario
    if scenario.service.session_affinity is Affinity.CLIENT_IP and len(pods) > 1:
        uid = asked(way, "tcp" if scenario.flows.tcp else "udp")
        pods = tuple(sorted(pods, key=lambda pod: pod.uid != uid))
    pods = _where_the_way_leads(stage, way, pods)
    return Target(
        namespace=stage.namespace,
        pod=pods[0],
        chosen=pods[: scenario.targets],
        pods=pods,
        controller=Owner(kind=scenario.app.controller, name=stage.place.probe),
        own_namespace=stage.place.own,
        spare=dict(CLIENT_LABELS),
    )


def choose_attached(stage: Stage, found: Found, way: Way, pods: tuple[Pod, ...]) -> Target:
    """The same for a workload of the user's. Nobody there tells who answers, so which pod a
    flow leads to shows only later: in conntrack, where the node can be looked into.
    Raises ClusterError if no pod runs where the way has to lead.
    """
    pods = _where_the_way_leads(stage, way, pods, found.namespace)
    return Target(
        namespace=found.namespace,
        pod=pods[0],
        chosen=pods[: stage.scenario.targets],
        pods=pods,
        controller=Owner(kind=found.kind, name=found.name) if found.kind else None,
        ours=False,
        own_namespace=False,
        spare=dict(CLIENT_LABELS),
    )


def _where_the_way_leads(
    stage: Stage, way: Way, pods: tuple[Pod, ...], theirs: str | None = None
) -> tuple[Pod, ...]:
    """The same pods, those first to which the way through that node leads as it is to."""
    service, flows = stage.scenario.service, stage.scenario.flows
    pods = via.fitting(pods, service.via_node, way.node, theirs)
    if service.external_traffic_policy is TrafficPolicy.LOCAL:
        pods = via.local(pods, way.node, theirs)
        if flows.probe_each_node and way.node is not None:
            via.check_local(pods, [way.node, *(name for name, _ in way.other_nodes)], theirs)
    return pods


def asked(way: Way, proto: str) -> str:
    """The UID of the pod that answers, asked from where the flows will be: kube-proxy pins
    addresses, and pods have their own. Raises :class:`NobodyAnswered`.
    """
    port = way.tcp if proto == "tcp" else way.udp
    source = way.source(0)
    question = [way.address, str(port), proto, *([source] if source else [])]
    try:
        done = subprocess.run(
            way.command([sys.executable, "-m", "pytest_drainwatch.flows.ask", *question]),
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
