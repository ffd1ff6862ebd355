"""Does a UDP service lose datagrams when one of its pods ends?"""

from __future__ import annotations

import pytest

from pytest_drainwatch import Accept, App, Flows, Mechanism, Scenario, Trial, arms
from pytest_drainwatch.core.interval import NS_PER_S

UDP = Scenario(
    name="udp",
    app=App(replicas=2, accept_on_drain=Accept.KEEP, drain_ns=5 * NS_PER_S, grace_period_s=10),
    flows=Flows(tcp=0, udp=10, probe_interval_ns=None),
    settle_ns=2 * NS_PER_S,
)
READINESS = {"fails": "fail", "keeps": "keep"}


def lost(trial: Trial) -> list[int]:
    """Of each client of the terminated pod: how many of its datagrams nobody answered."""
    told = [flow.continuity for flow in trial.flows if flow.role == "target"]
    known = [each.lost for each in told if each is not None and each.lost is not None]
    assert len(known) == len(told) == trial.scenario.flows.udp, "not known of every client"
    return known


@pytest.mark.trial
@pytest.mark.parametrize("arms", [arms(UDP, "app.readiness_on_drain", READINESS)], ids=["udp"])
def test_who_fails_readiness_and_serves_on_loses_next_to_nothing(trials: dict[str, Trial]) -> None:
    # All clients were led to the other pod, while the old one still answered. At most the
    # datagram is lost that was on its way when conntrack's entry went.
    assert trials["fails"].udp.mechanisms == {Mechanism.REHOMED: 10}
    assert max(lost(trials["fails"])) <= 1
    # Who stays in the Service to the end takes its clients' datagrams with it.
    assert min(lost(trials["keeps"])) > 1
