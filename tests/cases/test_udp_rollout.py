"""Case C03 on a real cluster: UDP flows through a NodePort while its pods are replaced."""

from __future__ import annotations

import pytest

from pytest_drainwatch import App, Behavior, Flows, Role, Scenario, Trial, Trigger
from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.udp.continuity import RecoveredBy

pytestmark = pytest.mark.cluster

FLOWS = 6


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(behavior=behavior, grace_period_s=6, drain_ns=2 * NS_PER_S, replicas=2),
            flows=Flows(tcp=0, udp=FLOWS, probe_interval_ns=None),
            trigger=Trigger.ROLLOUT,
            settle_ns=2 * NS_PER_S,
            name=f"udp-rollout-{behavior}",
        )
        for behavior in (Behavior.DRAIN, Behavior.EXIT_NOW)
    ],
    ids=lambda scenario: scenario.id,
)
def test_c03_a_rollout_severs_every_flow_and_tells_how_long_each_was_without_answer(
    trial: Trial,
) -> None:
    """A flow cannot stay with a pod that is replaced: k of n came back, and to whom, and when."""
    old = set(trial.report.trial.trigger.targets)
    assert len(old) == 2, "both old pods were replaced"
    # Dialled until enough are on the first pod; those on the second are targets as well.
    flows = [flow for flow in trial.flows if flow.role is Role.TARGET]
    assert trial.udp.severed == trial.udp.total == len(flows) >= FLOWS, trial.udp
    back = [flow for flow in flows if came_back(flow)]
    for flow in back:
        first, *then = [who.partition("/")[0] for who in flow.responders]
        assert first in old
        assert first not in then, "moved, and not answered by the same pod again"
        assert then[-1] not in old, "in the end by a pod of the new template"
        assert_measured(flow)
        if trial.scenario.app.behavior is Behavior.EXIT_NOW:
            assert shortest_gap_ns(flow) > 0, "gone before conntrack could hear of it"
    # A Service that never lacked a serving endpoint: conntrack lets go of each pod in turn (K3).
    assert len(back) == len(flows), f"{len(back)} of {len(flows)} came back: {trial.udp}"


def assert_measured(flow: FlowReport) -> None:
    """The gap is the flow's own: it lies between its end and who answered next."""
    found = flow.continuity
    assert found is not None
    assert found.gap_ns is not None
    assert found.recovered_at_ns is not None
    assert flow.terminal_ns is not None
    assert flow.terminal_ns[1] >= 0, "alive until the rollout began"
    longest = found.recovered_at_ns[1] - flow.terminal_ns[0]
    assert 0 <= found.gap_ns[0] <= found.gap_ns[1] <= longest


def shortest_gap_ns(flow: FlowReport) -> int:
    """For how long at least nobody answered it."""
    assert flow.continuity is not None
    assert flow.continuity.gap_ns is not None
    return flow.continuity.gap_ns[0]


def came_back(flow: FlowReport) -> bool:
    """Whether another pod answered the same socket after its first pod had left it."""
    return flow.continuity is not None and flow.continuity.recovered_by is RecoveredBy.ANOTHER
