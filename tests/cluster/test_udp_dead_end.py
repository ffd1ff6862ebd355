"""UDP behind a NodePort whose last pod goes: fact M11, with cases C01 and C02's dark half.

Nothing answers, and nothing re-homes: kube-proxy's REJECT meets new flows only (K4),
and conntrack keeps sending the old ones to the dead pod (K3).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from pytest_drainwatch import App, Flows, Mechanism, Scenario, Trial
from pytest_drainwatch import Trigger as Verb
from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.cluster.embedded.cluster import EmbeddedCluster
from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.udp.continuity import PhaseKind
from pytest_drainwatch.trial import Held, measure
from tests.core.story import total

pytestmark = pytest.mark.cluster

DRAIN_S = 3
AFTER_S = 7  # of watching a dead end: ARP gives up after three
SCENARIO = Scenario(
    app=App(drain_ns=DRAIN_S * NS_PER_S, grace_period_s=DRAIN_S + 4),
    flows=Flows(tcp=1, udp=10, udp_one_way=5, udp_rate_hz=20),
    trigger=Verb.SCALE,
    settle_ns=1 * NS_PER_S,
    observe_timeout_ns=(DRAIN_S + AFTER_S) * NS_PER_S,
    name="udp-dead-end",
)
DEAD_END = {Mechanism.REFUSED, Mechanism.UNREACHABLE, Mechanism.SILENCE}
DARK = {PhaseKind.LOST, PhaseKind.REFUSED, PhaseKind.UNREACHABLE}


class Conntrack:
    """Looks at the node's UDP entries for one NodePort, again and again."""

    def __init__(self, prefix: list[str], port: int) -> None:
        self.looks: list[tuple[int, list[tuple[str, bool]]]] = []  # when; (pod's IP, assured)
        self._command = [
            *prefix, "conntrack", "-L", "-p", "udp", "--orig-port-dst", str(port)
        ]  # fmt: skip
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Conntrack:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.5):
            at_ns = time.monotonic_ns()
            listed = subprocess.run(self._command, capture_output=True, text=True, check=False)
            assert listed.returncode == 0, listed.stderr
            entries = [line for line in listed.stdout.splitlines() if line.startswith("udp")]
            self.looks.append((at_ns, [_entry(line) for line in entries]))


def _entry(line: str) -> tuple[str, bool]:
    _, pod = re.findall(r"\bsrc=(\S+)", line)
    return pod, "[ASSURED]" in line


@pytest.fixture
def conntrack(dw_flows: Held, dw_cluster: Cluster) -> Iterator[Conntrack | None]:
    """None where nobody can look into the node."""
    here = isinstance(dw_cluster, EmbeddedCluster)
    if here and not shutil.which("conntrack") and os.environ.get("DW_CLUSTER"):
        pytest.fail("no program `conntrack`, and half of this test is what it says: install it")
    if not isinstance(dw_cluster, EmbeddedCluster) or not shutil.which("conntrack"):
        yield None
        return
    node = dw_cluster.layout.node_pid.read_text().strip()
    with Conntrack(["nsenter", f"--net=/proc/{node}/ns/net", "--"], dw_flows.probe.ports.udp) as c:
        yield c


@pytest.mark.parametrize("scenario", [SCENARIO])
def test_the_last_pods_udp_flows_run_into_a_dead_end(
    dw_flows: Held, conntrack: Conntrack | None
) -> None:
    trial = measure(dw_flows)
    alone = _pods_elsewhere(dw_flows) == 0
    flows = [flow for flow in trial.flows if flow.proto == "udp"]
    assert sum(flow.one_way for flow in flows) == 5
    assert trial.udp.severed == trial.udp.total == len(flows) == 15
    assert set(trial.udp.mechanisms) <= DEAD_END
    for flow in flows:
        _answered_until_its_pod_exits_and_never_again(trial, flow)
        if alone:
            # Whatever it was at first: the bridge lost its carrier, ARP gave up, the node says so.
            assert flow.continuity is not None
            assert PhaseKind.UNREACHABLE in [phase.kind for phase in flow.continuity.phases]
    if conntrack is not None:
        _pinned_to_the_dead_pod(trial, conntrack)


def _answered_until_its_pod_exits_and_never_again(trial: Trial, flow: FlowReport) -> None:
    term = trial.summary.trigger_to_sigterm_ns
    assert term is not None
    assert flow.terminal_ns is not None
    assert flow.terminal_ns[1] >= term[0] + DRAIN_S * NS_PER_S, "served until the pod's exit"
    assert len(flow.responders) == 1, "nobody else ever answered"
    told = flow.continuity
    assert told is not None
    first, *dark = [phase.kind for phase in told.phases]
    assert first is PhaseKind.ALIVE
    assert dark
    assert set(dark) <= DARK
    (outage,) = told.outages
    assert outage.began_ns == flow.terminal_ns
    assert (told.recovered_at_ns, told.gap_ns) == (None, None)
    assert told.note == "did not come back within the observation window"
    assert told.sent == total(told.answered, told.lost, told.late)


def _pinned_to_the_dead_pod(trial: Trial, conntrack: Conntrack) -> None:
    """K3: every flow's entry still leads to the pod that is gone, kept alive by the sends."""
    _, before = conntrack.looks[0]
    _, after = conntrack.looks[-1]
    assert len(before) == 15
    assert {pod for pod, _ in after} == {pod for pod, _ in before}
    assert len({pod for pod, _ in after}) == 1
    assert len(after) == 15
    # A one-way flow is never assured: conntrack has seen no reply. It is kept all the same.
    assert sum(assured for _, assured in after) == 10


def _pods_elsewhere(held: Held) -> int:
    """Pods of other namespaces that have a network of their own."""
    stage = held.probe.stage
    pods = stage.api.core.list_pod_for_all_namespaces().items
    others = [pod for pod in pods if pod.metadata.namespace != stage.namespace]
    return sum(1 for pod in others if not pod.spec.host_network)
