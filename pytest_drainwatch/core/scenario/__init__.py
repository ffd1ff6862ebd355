"""What a trial is asked to do: frozen values, no defaults hidden elsewhere."""

from pytest_drainwatch.core.scenario.app import (
    Accept,
    App,
    Behavior,
    Controller,
    Pid1,
    PreStop,
    Readiness,
)
from pytest_drainwatch.core.scenario.axes import arms, check_arms, differences, matrix
from pytest_drainwatch.core.scenario.balancer import LoadBalancer
from pytest_drainwatch.core.scenario.flows import (
    TCP_SPARSE_RATE_HZ,
    UDP_SPARSE_RATE_HZ,
    Flows,
)
from pytest_drainwatch.core.scenario.http import Http
from pytest_drainwatch.core.scenario.needs import ClusterNeeds, ProxyMode
from pytest_drainwatch.core.scenario.scenario import Scenario, Trigger
from pytest_drainwatch.core.scenario.service import (
    Access,
    Affinity,
    Service,
    TrafficPolicy,
    ViaNode,
)
from pytest_drainwatch.core.scenario.values import ScenarioError
from pytest_drainwatch.core.scenario.workload import Tcp, Udp, Workload

__all__ = [
    "TCP_SPARSE_RATE_HZ",
    "UDP_SPARSE_RATE_HZ",
    "Accept",
    "Access",
    "Affinity",
    "App",
    "Behavior",
    "ClusterNeeds",
    "Controller",
    "Flows",
    "Http",
    "LoadBalancer",
    "Pid1",
    "PreStop",
    "ProxyMode",
    "Readiness",
    "Scenario",
    "ScenarioError",
    "Service",
    "Tcp",
    "TrafficPolicy",
    "Trigger",
    "Udp",
    "ViaNode",
    "Workload",
    "arms",
    "check_arms",
    "differences",
    "matrix",
]
