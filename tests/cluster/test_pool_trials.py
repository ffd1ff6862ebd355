"""Trials whose scenarios need different clusters, through the fixtures, on real ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_drainwatch import App, Behavior, ClusterNeeds, Flows, Scenario, Trial, arms
from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.core.interval import NS_PER_S

pytestmark = pytest.mark.cluster

QUICK = Scenario(
    app=App(behavior=Behavior.EXIT_NOW, grace_period_s=3),
    flows=Flows(tcp=2, udp=2, probe_interval_ns=None),
    settle_ns=NS_PER_S,
    name="needs",
)
MODES = arms(QUICK, "cluster.proxy_mode", {"iptables": "iptables", "nftables": "nftables"})


def said(trial: Trial) -> tuple[str | None, int | None]:
    environment = trial.report.environment
    return environment.kube_proxy_mode, environment.min_sync_period_ms


@pytest.mark.slow  # scenarios one after the other, below, share its way to a cluster
@pytest.mark.parametrize("arms", [MODES], ids=["modes"])
def test_each_arm_runs_on_the_cluster_that_it_needs(trials: dict[str, Trial]) -> None:
    assert {name: said(trial) for name, trial in trials.items()} == {
        "iptables": ("iptables", 1000),
        "nftables": ("nftables", 1000),
    }
    for trial in trials.values():
        assert trial.tcp.mechanisms == {"rst": 2}


def test_scenarios_one_after_the_other_each_get_their_cluster(
    drainwatch: Callable[[Scenario], Trial], dw_cluster: Cluster
) -> None:
    needs = ClusterNeeds(min_sync_period_ms=100)
    assert said(drainwatch(replace(QUICK, cluster=needs))) == ("iptables", 100)
    facts = dw_cluster.facts()
    assert (facts.proxy_mode, facts.min_sync_period_ms) == ("iptables", 1000)
