"""How long must preStop be behind a load balancer with health checks?

A load balancer asks nodes, and goes on sending new connections to one until that has failed
``fall`` checks in a row. Prediction: with externalTrafficPolicy Local kube-proxy says 503 with its
next sync after the node's only pod was deleted, and the balancer has noticed at most ``fall``
intervals later. A pod that stops accepting at once fails every new connection that is sent to its
node until then; with a hook that is shorter it fails those of the rest; one that outlasts
minSyncPeriod and ``fall`` intervals fails none.
"""

from __future__ import annotations

import pytest

from pytest_drainwatch import App, Flows, LoadBalancer, PreStop, Service, Trial, arms
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario import ClusterNeeds, TrafficPolicy
from pytest_drainwatch.core.windows.document import BalancerWindow
from scenarios.short import LATE_NS, asked, known, told, undisturbed, window_s

BALANCER = LoadBalancer(check_interval_ns=NS_PER_S, fall=2, rise=2, deregistration_ns=30 * NS_PER_S)
SHORT_S, LONG_S = 1, 4
ENDING = asked(
    "load-balancer",
    # Its replacement is Ready after the node was held unhealthy.
    App(
        grace_period_s=12,
        drain_ns=2 * NS_PER_S,
        replicas=2,
        spread_over_nodes=True,
        ready_after_s=6,
    ),
    flows=Flows(tcp=4, udp=0, probe_interval_ns=20 * NS_PER_MS, probe_sparse_every=1),
    service=Service(external_traffic_policy=TrafficPolicy.LOCAL, balancer=BALANCER),
    cluster=ClusterNeeds(nodes=2),
)
HOOKS = {"no-hook": None, "short": PreStop(sleep_s=SHORT_S), "long": PreStop(sleep_s=LONG_S)}


def sent(trial: Trial) -> BalancerWindow:
    """What the load balancer did with the node of the pod that ended."""
    (window,) = trial.report.trial.windows
    assert window.load_balancer is not None
    return window.load_balancer


@pytest.mark.trial
@pytest.mark.parametrize("arms", [arms(ENDING, "app.pre_stop", HOOKS)], ids=["deleted"])
def test_a_hook_must_outlast_the_load_balancers_checks(trials: dict[str, Trial]) -> None:
    """Who is sent there after the hook is lost, until it notices; what outlasts that loses none."""
    assert undisturbed(trials.values())
    for name, trial in trials.items():
        down = known(sent(trial).sends.closes_ns)
        assert (BALANCER.fall - 1) * BALANCER.check_interval_ns <= down[1], down
        assert down[0] <= BALANCER.notices_ns + LATE_NS, down
        (new,) = trial.report.trial.new_connections
        hook_s = {"no-hook": 0, "short": SHORT_S, "long": LONG_S}[name]
        lost_s = max(0.0, down[1] / NS_PER_S - hook_s)
        assert abs(window_s(trial) - lost_s) < LATE_NS / NS_PER_S / 2, told(new)
        if new.observed_failing is not None:
            assert new.observed_failing.begun_ns[1] <= down[1], told(new)
    failed = {name: trial.report.trial.new_connections[0].failed for name, trial in trials.items()}
    assert failed["no-hook"] > failed["long"] == 0, failed
