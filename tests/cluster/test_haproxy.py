"""A real HAProxy between the client and the nodes: who is still sent to a pod that ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch import (
    App,
    Flows,
    LoadBalancer,
    PreStop,
    Scenario,
    Service,
    TrafficPolicy,
    Trial,
)
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario import ClusterNeeds
from tests.loopback.haproxy import HAPROXY, NOT_HAD

pytestmark = [pytest.mark.cluster, pytest.mark.skipif(HAPROXY is None, reason=NOT_HAD)]

BALANCER = LoadBalancer(
    check_interval_ns=500 * NS_PER_MS, fall=2, rise=2, deregistration_ns=1 * NS_PER_S
)
# No replacement is Ready before the node is held unhealthy.
ENDING = Scenario(
    app=App(
        grace_period_s=10,
        drain_ns=2 * NS_PER_S,
        replicas=2,
        ready_after_s=6,
        spread_over_nodes=True,
    ),
    flows=Flows(tcp=4, udp=0, probe_interval_ns=10 * NS_PER_MS, probe_sparse_every=1),
    service=Service(external_traffic_policy=TrafficPolicy.LOCAL, balancer=BALANCER),
    cluster=ClusterNeeds(nodes=2),
    settle_ns=NS_PER_S,
    name="behind-haproxy",
)


@pytest.mark.parametrize("scenario", [ENDING])
def test_without_a_hook(trial: Trial) -> None:
    (new,) = trial.report.trial.new_connections
    assert new.failed


@pytest.mark.parametrize(
    "scenario",
    [
        replace(
            ENDING,
            name="behind-haproxy-hook",
            app=replace(ENDING.app, pre_stop=PreStop(sleep_s=3)),
        )
    ],
)
def test_with_a_hook(trial: Trial) -> None:
    (new,) = trial.report.trial.new_connections
    assert not new.failed
