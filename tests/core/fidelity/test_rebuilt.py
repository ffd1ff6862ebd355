"""A report's configuration is the scenario's again, whatever was asked for."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.fidelity.rebuilt import scenario_of
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario import (
    App,
    Behavior,
    ClusterNeeds,
    Flows,
    LoadBalancer,
    PreStop,
    Readiness,
    Scenario,
    Service,
    Trigger,
)
from pytest_drainwatch.core.simulation.latencies import Latencies
from tests.core.fidelity.made import DRAINS, trial

MADE = trial(DRAINS, Latencies()).report

HOOKS = st.one_of(
    st.none(),
    st.integers(0, 10).map(lambda s: PreStop(sleep_s=s)),
    st.integers(0, 10**10).map(lambda ns: PreStop(http_ns=ns)),
    st.just(PreStop(exec=("sleep", "3"))),
)
APPS = st.builds(
    App,
    behavior=st.sampled_from(Behavior),
    readiness_on_drain=st.sampled_from(Readiness),
    drain_ns=st.integers(0, 60_000).map(lambda ms: ms * NS_PER_MS),
    grace_period_s=st.integers(10, 60),
    exit_now_reset=st.booleans(),
    replicas=st.integers(1, 5),
    pre_stop=HOOKS,
    response_delay_ns=st.integers(0, 900).map(lambda ms: ms * NS_PER_MS),
    ready_after_s=st.integers(0, 60),
    spread_over_nodes=st.booleans(),
)
FLOWS = st.builds(
    Flows,
    tcp=st.integers(1, 30),
    udp=st.integers(0, 30),
    tcp_rate_hz=st.integers(5, 50),
    udp_rate_hz=st.integers(10, 90),
    udp_one_way=st.integers(0, 3),
    probe_interval_ns=st.one_of(st.none(), st.integers(1, 90).map(lambda ms: ms * NS_PER_MS)),
    udp_probe_interval_ns=st.one_of(st.none(), st.integers(1, 90).map(lambda ms: ms * NS_PER_MS)),
    probe_sparse_every=st.one_of(st.none(), st.integers(1, 20)),
)
SCENARIOS = st.builds(
    Scenario,
    app=APPS,
    flows=FLOWS,
    cluster=st.builds(
        ClusterNeeds,
        kube_version=st.sampled_from([None, "1.34", "1.37"]),
        min_sync_period_ms=st.sampled_from([None, 0, 500, 2000]),
    ),
    trigger=st.sampled_from([Trigger.DELETE, Trigger.EVICT, Trigger.SCALE]),
    settle_ns=st.integers(0, 20).map(lambda s: s * NS_PER_S),
    observe_timeout_ns=st.sampled_from([None, 20 * NS_PER_S]),
)


def again_of(asked: Scenario) -> Scenario:
    """The scenario of a report about this one."""
    told = replace(MADE.trial, config=asked.config(), scenario=asked.id)
    return scenario_of(replace(MADE, trial=told))


def test_a_load_balancer_is_a_part_of_it() -> None:
    balancer = LoadBalancer(check_interval_ns=500 * NS_PER_MS, fall=3, deregistration_ns=0)
    behind = Scenario(flows=Flows(udp=0), service=Service(balancer=balancer))
    assert again_of(behind).service == behind.service
    assert again_of(replace(behind, service=Service())).service.balancer is None


@given(asked=SCENARIOS)
@settings(max_examples=60, deadline=None)
def test_a_reports_configuration_is_its_scenario(asked: Scenario) -> None:
    again = again_of(asked)
    assert again.config() == asked.config()
    assert again.id == asked.id
    assert again.app == replace(asked.app, pre_stop=again.app.pre_stop)
    # A plan of what is never tried says nothing.
    if asked.flows.probe_interval_ns is not None:
        assert again.flows.probe_sparse_intervals_ns == asked.flows.probe_sparse_intervals_ns
