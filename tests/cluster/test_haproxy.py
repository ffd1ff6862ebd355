"""A real HAProxy between the client and the nodes: who is still sent to a pod that ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch import (
    App,
    Flows,
    LoadBalancer,
    Outcome,
    PreStop,
    Role,
    Scenario,
    Service,
    TrafficPolicy,
    Trial,
)
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.observation import Source
from pytest_drainwatch.core.probing.document import NewConnections
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.scenario import ClusterNeeds
from pytest_drainwatch.core.windows.document import BalancerWindow
from tests.loopback.haproxy import HAPROXY, NOT_HAD

pytestmark = [pytest.mark.cluster, pytest.mark.skipif(HAPROXY is None, reason=NOT_HAD)]

BALANCER = LoadBalancer(
    check_interval_ns=500 * NS_PER_MS, fall=2, rise=2, deregistration_ns=1 * NS_PER_S
)
HOOK_S = 3  # longer than what the load balancer notices in
LATE_NS = 1 * NS_PER_S
ENDING = Scenario(
    app=App(
        grace_period_s=10,
        drain_ns=2 * NS_PER_S,
        replicas=2,
        ready_after_s=4,  # the node is held unhealthy before it has another pod
        spread_over_nodes=True,
    ),
    flows=Flows(tcp=4, udp=0, probe_interval_ns=10 * NS_PER_MS, probe_sparse_every=1),
    service=Service(external_traffic_policy=TrafficPolicy.LOCAL, balancer=BALANCER),
    cluster=ClusterNeeds(nodes=2),
    settle_ns=NS_PER_S,
    name="behind-haproxy",
)
HOOKED = replace(
    ENDING, name="behind-haproxy-hook", app=replace(ENDING.app, pre_stop=PreStop(sleep_s=HOOK_S))
)


def tried(trial: Trial) -> NewConnections:
    (found,) = trial.report.trial.new_connections
    return found


def balancer(trial: Trial) -> BalancerWindow:
    (window,) = trial.report.trial.windows
    assert window.load_balancer is not None
    return window.load_balancer


def down_ns(trial: Trial) -> tuple[int, int]:
    """When the load balancer held the pod's node unhealthy: after two checks, at most three."""
    closes = balancer(trial).sends.closes_ns
    assert closes is not None, "it never noticed"
    assert closes[1] >= BALANCER.check_interval_ns
    assert closes[0] <= BALANCER.notices_ns + LATE_NS
    return closes


def outcomes(trial: Trial, role: Role) -> set[Outcome]:
    return {flow.outcome for flow in trial.report.trial.flows if flow.role is role}


@pytest.mark.parametrize("scenario", [ENDING])
def test_new_connections_fail_until_the_load_balancer_has_noticed(trial: Trial) -> None:
    """The pod stops accepting at once; its node gets new connections for two checks more."""
    new, until = tried(trial), down_ns(trial)
    assert new.failed
    assert new.results[Result.NEVER_SERVED] == new.failed, "accepted by HAProxy, and by nobody else"
    assert new.observed_failing is not None
    assert new.observed_failing.begun_ns[1] <= until[1], "none failed once it had noticed"
    met = balancer(trial).sends.met
    assert met is not None
    assert met.failed
    assert outcomes(trial, Role.BYSTANDER) <= {Outcome.SURVIVED}
    assert any(entry.source is Source.BALANCER for entry in trial.report.trial.timeline)


@pytest.mark.parametrize("scenario", [HOOKED])
def test_with_a_hook_that_is_longer_none_fails_and_the_held_are_let_go(trial: Trial) -> None:
    """The pod serves while the load balancer notices. Its delay is shorter than the hook here, so
    it is the load balancer that ends the held connections, and not the pod with a good-bye.
    """
    new, until = tried(trial), down_ns(trial)
    assert new.failed == 0, new.results
    assert until[1] < HOOK_S * NS_PER_S
    found = balancer(trial)
    assert found.last_answered_ns is not None
    assert 0 < found.last_answered_ns[0] <= until[1], "still sent to the pod after its deletion"
    assert found.let_go_ns is not None
    assert found.let_go_ns[0] >= until[0] + BALANCER.deregistration_ns
    assert found.closed == ENDING.flows.tcp
    assert outcomes(trial, Role.TARGET) == {Outcome.SEVERED}
    assert outcomes(trial, Role.BYSTANDER) <= {Outcome.SURVIVED}
