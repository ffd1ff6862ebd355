"""What does externalTrafficPolicy Local cost new connections when a node's only pod ends?

Prediction: with Cluster kube-proxy of each node leads new connections to the pods of all nodes,
so a pod that serves until it ends costs nobody anything that lasts. With Local the node itself
must have a pod: its last one serves to its end, as the last resort, and from then on whoever
comes in there is dropped until a replacement is Ready there; at the other node nobody notices.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch import Flows, Service, Trial, arms
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.probing.document import NewConnections
from pytest_drainwatch.core.scenario import ClusterNeeds, Readiness, ViaNode
from scenarios.short import LATE_NS, LISTENING, asked, failing, told, undisturbed

READY_AFTER_S = 10
APP = replace(
    LISTENING,
    replicas=2,
    spread_over_nodes=True,
    readiness_on_drain=Readiness.KEEP,
    ready_after_s=READY_AFTER_S,
)
ENDING = asked(
    "only-pod-of-a-node",
    APP,
    flows=Flows(
        tcp=4,
        udp=4,
        probe_interval_ns=20 * NS_PER_MS,
        probe_sparse_every=1,
        probe_each_node=True,
    ),
    service=Service(via_node=ViaNode.TARGET_NODE),
    cluster=ClusterNeeds(nodes=2),
)
POLICIES = {"cluster": "Cluster", "local": "Local"}


def at_nodes(trial: Trial) -> tuple[NewConnections, NewConnections]:
    """What new connections met at the node of the pod that ended, and at the other one."""
    (window,) = trial.report.trial.windows
    tried = trial.report.trial.new_connections
    (here,) = [each for each in tried if each.node == window.node]
    (there,) = [each for each in tried if each.node != window.node]
    return here, there


@pytest.mark.trial
@pytest.mark.parametrize(
    "arms", [arms(ENDING, "service.external_traffic_policy", POLICIES)], ids=["deleted"]
)
def test_a_local_policy_fails_where_the_pod_was_until_it_is_replaced(
    trials: dict[str, Trial],
) -> None:
    """Local fails at one node, and for as long as that has no ready pod."""
    assert undisturbed(trials.values())
    here, there = at_nodes(trials["local"])
    assert there.failed == 0, told(there)
    assert (here.by_terminating or 0) > 0, told(here)
    window = failing(here)
    assert window.begun_ns[0] >= APP.drain_ns - LATE_NS, told(here)
    lasts_s = READY_AFTER_S - APP.drain_ns / NS_PER_S
    assert window.lasts_ns[1] >= (lasts_s - 1) * NS_PER_S, told(here)
    for each in at_nodes(trials["cluster"]):
        assert each.failed == 0, told(each)
