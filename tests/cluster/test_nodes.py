"""Cases C03, C11 and C36 on two nodes: where pods and the way to them are apart."""

from __future__ import annotations

import pytest

from pytest_drainwatch import (
    Accept,
    App,
    Behavior,
    Flows,
    Readiness,
    Role,
    Scenario,
    Service,
    TrafficPolicy,
    Trial,
    Trigger,
)
from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.document import NewConnections
from pytest_drainwatch.core.recording import loads
from pytest_drainwatch.core.scenario import ClusterNeeds, ViaNode

pytestmark = pytest.mark.cluster

TWO = ClusterNeeds(nodes=2)
DRAIN_S = 3
# No replacement is Ready before the pod has been gone for some time.
READY_AFTER_S = 7


def observations(trial: Trial) -> tuple[Observation, ...]:
    return tuple(loads((trial.folder / "recording.jsonl").read_text()).observations)


def by_node(trial: Trial) -> dict[str, NewConnections]:
    """What new connections met, by the node at which they came in."""
    return {str(each.node): each for each in trial.report.trial.new_connections}


def nodes_of(trial: Trial) -> dict[str, str]:
    """The node of each pod, by uid."""
    return {
        o.subject: str(o.data["node"])
        for o in observations(trial)
        if o.event is Event.POD and o.data.get("node")
    }


def entered(trial: Trial) -> str:
    """The node at which the flows came in."""
    return next(str(o.data["node"]) for o in observations(trial) if o.event is Event.WAY_CHOSEN)


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(
                grace_period_s=6,
                drain_ns=DRAIN_S * NS_PER_S,
                readiness_on_drain=Readiness.KEEP,
                accept_on_drain=Accept.KEEP,
                replicas=2,
                ready_after_s=READY_AFTER_S,
                spread_over_nodes=True,
            ),
            flows=Flows(
                tcp=2,
                udp=0,
                probe_interval_ns=20 * NS_PER_MS,
                probe_each_node=True,
                probe_sparse_every=1,
            ),
            service=Service(
                external_traffic_policy=TrafficPolicy.LOCAL, via_node=ViaNode.TARGET_NODE
            ),
            cluster=TWO,
            settle_ns=NS_PER_S,
            name="last-local-pod-of-two-nodes",
        )
    ],
)
def test_c36_a_node_whose_only_pod_ends_fails_until_it_has_another(trial: Trial) -> None:
    """Served by the terminating pod, then dropped; the other node never fails."""
    (target,) = trial.report.trial.trigger.targets
    home = nodes_of(trial)[target]
    assert entered(trial) == home
    found = by_node(trial)
    assert len(found) == 2
    here = found.pop(home)
    ((_, there),) = found.items()
    assert (there.failed, there.observed_failing) == (0, None), there.results
    assert target not in {who.pod_uid for who in there.answered_by}, "a Local policy"
    (by,) = [who for who in here.answered_by if who.pod_uid == target]
    assert by.by_terminating is not None
    assert by.by_terminating[0] >= (DRAIN_S - 1) * 50, "served by the terminating pod"
    assert here.observed_failing is not None, "a failing window above zero is expected, and shown"
    assert here.observed_failing.begun_ns[0] >= (DRAIN_S - 0.1) * NS_PER_S, "it served to its end"
    assert here.observed_failing.lasts_ns[0] >= 1 * NS_PER_S, "nobody else was there for seconds"
    (window,) = trial.report.trial.windows
    assert window.node == home
    assert window.fallback_routable, "of its own node it was the last resort"
    (span,) = window.fallback_routable
    assert span.met is not None
    assert span.met.attempts >= (DRAIN_S - 1) * 50, "those that came in here alone"
    assert span.met.attempts + (DRAIN_S - 1) * 50 < here.attempts + there.attempts


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(
                behavior=Behavior.EXIT_NOW, grace_period_s=6, replicas=2, spread_over_nodes=True
            ),
            flows=Flows(tcp=0, udp=6, probe_interval_ns=None),
            service=Service(via_node=ViaNode.OTHER_NODE),
            cluster=TWO,
            trigger=Trigger.ROLLOUT,
            settle_ns=2 * NS_PER_S,
            name="udp-rollout-of-two-nodes",
        )
    ],
)
def test_c03_udp_through_the_other_node_is_rehomed_with_both_pods_and_the_gap(
    trial: Trial,
) -> None:
    """Each flow ends with its pod, and tells who answered next, and after how long."""
    old = set(trial.report.trial.trigger.targets)
    assert len(old) == 2
    nodes = nodes_of(trial)
    assert len({nodes[uid] for uid in old}) == 2, "one pod on each node"
    flows = [flow for flow in trial.flows if flow.role is Role.TARGET]
    first = {flow.responders[0].partition("/")[0] for flow in flows}
    assert any(nodes[uid] != entered(trial) for uid in first), "some lead to another node"
    assert trial.udp.severed == len(flows), trial.udp
    back = [flow for flow in flows if moved(flow)]
    for flow in back:
        before, *then = [who.partition("/")[0] for who in flow.responders]
        assert before in old
        assert then[-1] not in old, "in the end by a pod of the new template"
        assert flow.continuity is not None
        assert flow.continuity.gap_ns is not None
        assert flow.continuity.gap_ns[0] > 0, "gone before conntrack could hear of it"
    assert len(back) == len(flows), f"{len(back)} of {len(flows)} came back: {trial.udp}"


def moved(flow: FlowReport) -> bool:
    return flow.continuity is not None and flow.continuity.recovered_at_ns is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(
                behavior=Behavior.EXIT_NOW, grace_period_s=6, replicas=4, spread_over_nodes=True
            ),
            flows=Flows(tcp=4, udp=0, probe_interval_ns=10 * NS_PER_MS, probe_each_node=True),
            cluster=TWO,
            trigger=Trigger.ROLLOUT,
            settle_ns=2 * NS_PER_S,
            name="rollout-of-four-on-two-nodes",
        )
    ],
)
def test_c11_a_rollout_of_four_is_counted_at_each_node(trial: Trial) -> None:
    """Each kube-proxy hears of each end by itself, so each node has counts of its own."""
    targets = set(trial.report.trial.trigger.targets)
    assert len(targets) == 4
    nodes = nodes_of(trial)
    assert sorted(list(map(nodes.get, targets)).count(n) for n in set(nodes.values())) == [2, 2]
    found = by_node(trial)
    assert set(found) == set(nodes.values())
    for node, each in found.items():
        assert each.attempts > 0
        assert each.failed > 0, f"{node}: {each.results}"
        assert each.observed_failing is not None
        assert targets <= {who.pod_uid for who in each.answered_by}, "a Cluster policy"
    assert len({each.source for each in found.values()}) == 2, "each from an address of its own"
