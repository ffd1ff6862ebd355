"""One-way UDP in a real cluster: who received what, told by the pods themselves (case C01)."""

from __future__ import annotations

import pytest

from pytest_drainwatch import App, Flows, Role, Scenario, Trial
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.udp.continuity import PhaseKind, RecoveredBy
from tests.core.story import total

pytestmark = pytest.mark.cluster

DRAIN_S = 5


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(drain_ns=DRAIN_S * NS_PER_S, grace_period_s=DRAIN_S + 4),
            flows=Flows(tcp=1, udp=2, udp_one_way=5),
            settle_ns=1 * NS_PER_S,
            name="one-way-rehomed",
        )
    ],
)
def test_flows_that_nobody_answers_are_followed_to_the_replacement(trial: Trial) -> None:
    flows = [flow for flow in trial.flows if flow.one_way]
    (old,) = trial.report.trial.trigger.targets
    assert len(flows) == 5
    for flow in flows:
        assert (flow.role, flow.outcome, flow.mechanism) == (Role.TARGET, "severed", "rehomed")
        first, second = (who.partition("/")[0] for who in flow.responders)
        assert first == old
        assert second not in (old, "")
        told = flow.continuity
        assert told is not None
        assert told.phases[0].kind is PhaseKind.ALIVE
        assert told.phases[-1].kind is PhaseKind.REHOMED
        assert told.recovered_by is RecoveredBy.ANOTHER
        assert told.outages[0].began_ns == flow.terminal_ns
        assert told.gap_ns is not None
        assert told.sent == total(told.answered, told.lost, told.open)
    # The two-way flows of the same trial moved for the same reason, at about the same time.
    two_way = [f for f in trial.flows if f.proto == "udp" and not f.one_way]
    assert {flow.mechanism for flow in two_way} == {"rehomed"}
    assert {flow.responders[1] for flow in two_way} == {flow.responders[1] for flow in flows}
