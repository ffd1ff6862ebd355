"""UDP behind a NodePort whose last pod goes: fact M11, with cases C01 and C02's dark half.

Nothing answers, and nothing re-homes: kube-proxy's REJECT meets new flows only (K4),
and conntrack keeps sending the old ones to the dead pod (K3).
"""

from __future__ import annotations

import pytest

from pytest_drainwatch import App, Flows, Mechanism, Scenario, Trial
from pytest_drainwatch import Trigger as Verb
from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.mechanism.occasion import Occasion
from pytest_drainwatch.core.udp.continuity import PhaseKind
from pytest_drainwatch.mechanism import CANNOT_LOOK
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


@pytest.mark.parametrize("scenario", [SCENARIO])
def test_the_last_pods_udp_flows_run_into_a_dead_end(dw_flows: Held) -> None:
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
    first, *_ = trial.report.trial.mechanism
    if first.problem != CANNOT_LOOK:
        for flow in flows:
            _pinned_to_the_dead_pod(trial, flow)


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


def _pinned_to_the_dead_pod(trial: Trial, flow: FlowReport) -> None:
    """K3: the flow's entry still leads to the pod that is gone, kept alive by the sends."""
    before, *_, after = flow.evidence
    (pod,) = trial.report.trial.trigger.targets
    assert before.occasion is Occasion.TRIGGER
    assert after.occasion is Occasion.AFTER_EXIT
    assert before.to == after.to is not None
    assert before.to_pod == after.to_pod == pod
    assert (before.stale, after.stale) == (False, True)
    # A one-way flow is never answered, and conntrack keeps it all the same.
    assert ("no reply was seen" in after.says) is flow.one_way
    last = trial.report.trial.mechanism[-1]
    assert last.rules is not None
    assert all(effect.rejects for effect in last.rules), "K4: of no use to a tracked flow"


def _pods_elsewhere(held: Held) -> int:
    """Pods of other namespaces that have a network of their own."""
    stage = held.probe.stage
    pods = stage.api.core.list_pod_for_all_namespaces().items
    others = [pod for pod in pods if pod.metadata.namespace != stage.namespace]
    return sum(1 for pod in others if not pod.spec.host_network)
