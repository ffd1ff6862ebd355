"""What can be asked of a load balancer in front of the nodes, and what cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_drainwatch import Flows, LoadBalancer, Scenario, Service, Workload
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.scenario import Access, ScenarioError
from pytest_drainwatch.options import OptionError
from pytest_drainwatch.settings import Settings, resolve
from pytest_drainwatch.workload import manifests

TCP_ONLY = Flows(udp=0)
BALANCED = Scenario(flows=TCP_ONLY, service=Service(balancer=LoadBalancer()))


def told(**options: str) -> Settings:
    return resolve({"command line": lambda option: options.get(option.name.replace("-", "_"))})


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"check_interval_ns": 1}, "balancer's check_interval_ns is 1"),
        ({"fall": 0}, "balancer's fall is 0"),
        ({"rise": 10**9}, "balancer's rise is 1000000000"),
        ({"fall": True}, "balancer's fall is True"),
        ({"deregistration_ns": -1}, "balancer's deregistration_ns is -1"),
        ({"deregistration_ns": 10**30}, "balancer's deregistration_ns"),
    ],
)
def test_settings_that_cannot_be_are_refused(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        replace(BALANCED, service=Service(balancer=LoadBalancer(**changed)))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"flows": Flows()}, "HAProxy carries TCP alone"),
        ({"flows": Flows(udp=0, udp_one_way=1)}, "HAProxy carries TCP alone"),
        ({"flows": Flows(udp=0, udp_probe_interval_ns=NS_PER_S)}, "HAProxy carries TCP alone"),
        ({"flows": Flows(udp=0, probe_each_node=True)}, "probe_each_node"),
        ({"workload": Workload.attach("deployment/web")}, "whose Service is left as it is"),
    ],
)
def test_what_cannot_go_through_it_is_refused(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        replace(BALANCED, **changed)
    without = replace(BALANCED, service=Service())
    assert replace(without, **changed).service.balancer is None


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"access": "clusterip"}, "expected access 'nodeport'"),
        ({"access": "loadbalancer"}, "expected access 'nodeport'"),
        ({"via_node": "target-node"}, "expected via_node 'any'"),
        ({"session_affinity": "ClientIP"}, "expected 'None'"),
        ({"balancer": "haproxy"}, "expected LoadBalancer or None"),
    ],
)
def test_a_service_that_it_cannot_stand_before_is_refused(
    changed: dict[str, Any], says: str
) -> None:
    with pytest.raises(ScenarioError, match=says):
        replace(BALANCED, service=Service(**{"balancer": LoadBalancer(), **changed}))


def test_a_report_says_it_only_where_it_is_asked_for() -> None:
    assert BALANCED.config()["balancer"] == LoadBalancer().config()
    assert "balancer" not in Scenario().config()


def test_the_service_gets_the_type_that_has_a_health_check_node_port() -> None:
    balanced, plain = _spec(Service(balancer=LoadBalancer())), _spec(Service())
    assert (balanced["type"], plain["type"]) == ("LoadBalancer", "NodePort")


def test_no_clouds_controller_makes_and_charges_for_a_balancer_beside_ours() -> None:
    """Each leaves a Service alone whose class is not its own."""
    assert _spec(Service(balancer=LoadBalancer()))["loadBalancerClass"] == manifests.OWN_BALANCER
    asked_for = _spec(Service(access=Access.LOAD_BALANCER))
    assert asked_for["type"] == "LoadBalancer"
    for spec in (asked_for, _spec(Service())):
        assert "loadBalancerClass" not in spec


def test_the_option_puts_one_there_and_takes_it_away() -> None:
    own = LoadBalancer(fall=7)
    mine = replace(BALANCED, service=Service(balancer=own))
    none = replace(BALANCED, service=Service())
    assert told(path="haproxy").apply(none).service.balancer == LoadBalancer()
    assert told(path="haproxy").apply(mine).service.balancer == own
    assert told(path="direct").apply(mine).service.balancer is None
    assert told().apply(mine).service.balancer == own
    assert told().apply(none).service.balancer is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"path": "nginx"}, "direct, haproxy"),
        ({"path": "haproxy", "address": "10.0.0.1"}, "drop one of them"),
        ({"path": "haproxy", "udp_flows": "3"}, "HAProxy carries TCP alone"),
        ({"path": "haproxy", "attach": "deployment/web"}, "whose Service is left as it is"),
    ],
)
def test_options_that_contradict_it_are_refused(options: dict[str, str], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        told(**options)


def test_a_scenario_with_udp_says_how_to_leave_it_out() -> None:
    with pytest.raises(ScenarioError, match="--dw-udp-flows 0"):
        told(path="haproxy").apply(Scenario())
    balanced = told(path="haproxy", udp_flows="0").apply(Scenario())
    assert balanced.service.balancer == LoadBalancer()


def test_a_trial_lasts_until_it_has_noticed_and_come_back() -> None:
    slow = LoadBalancer(check_interval_ns=10 * NS_PER_S, fall=3, rise=5)
    trial = replace(BALANCED, service=Service(balancer=slow))
    direct = replace(BALANCED, service=Service())
    assert trial.observe_ns - direct.observe_ns == slow.notices_ns + slow.rises_ns
    assert trial.expected_ns - direct.expected_ns == slow.notices_ns == 40 * NS_PER_S
    assert slow.rises_ns == 60 * NS_PER_S


def _spec(asked: Service) -> dict[str, Any]:
    spec = manifests.service(asked)["spec"]
    assert isinstance(spec, dict)
    return spec
