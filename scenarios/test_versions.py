"""Kubernetes 1.34 or 1.37, NodePort or ClusterIP: where does UDP go when a Service is empty?

Prediction: kube-proxy of 1.34 leaves the conntrack entries of a Service without serving
endpoints alone; 1.37 removes them for ClusterIPs, and still not for NodePorts. So of the
four cells only one (1.37, ClusterIP) is refused within about a sync; in the others
datagrams go on to the dead pod's address.
"""

from __future__ import annotations

import pytest

from pytest_drainwatch import ClusterNeeds, Scenario, Trial, Trigger, arms
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.mechanism.occasion import Occasion
from scenarios.short import EXITING, asked, undisturbed

ACCESS = {"nodeport": "nodeport", "clusterip": "clusterip"}


def cells(version: str) -> list[Scenario]:
    needs = ClusterNeeds(kube_version=version)
    base = asked(f"empty-{version}", EXITING, trigger=Trigger.SCALE, cluster=needs)
    return arms(base, "service.access", ACCESS)


@pytest.mark.trial
@pytest.mark.parametrize("arms", [cells("1.34"), cells("1.37")], ids=["1.34", "1.37"])
def test_only_the_new_clusterip_lets_go(trials: dict[str, Trial]) -> None:
    """The node's conntrack table shows it: an entry to the dead pod, or none."""
    assert undisturbed(trials.values())
    for trial in trials.values():
        version = str(trial.report.environment.kubernetes_version)
        lets_go = version.startswith("v1.37") and trial.scenario.service.access == "clusterip"
        stale = trial.stale(Proto.UDP, Occasion.AFTER_EXIT)
        assert stale is not None, "the node's conntrack table was not read"
        assert (stale == 0) is lets_go, f"{version}, {trial.scenario.service.access}: {stale} stale"
