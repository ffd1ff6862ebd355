"""pytest-drainwatch: each trial is a test.

The public names are loaded on first use, so that having the plugin installed
costs a pytest run nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pytest_drainwatch.core.flow.classify import Mechanism, Outcome, Role
    from pytest_drainwatch.core.pod.ending import EndedBy, Initiator, PreStopOutcome
    from pytest_drainwatch.core.scenario import (
        Accept,
        Access,
        Affinity,
        App,
        Behavior,
        ClusterNeeds,
        Controller,
        Flows,
        Http,
        LoadBalancer,
        Pid1,
        PreStop,
        ProxyMode,
        Readiness,
        Scenario,
        Service,
        Tcp,
        TrafficPolicy,
        Trigger,
        Udp,
        ViaNode,
        Workload,
        arms,
        matrix,
    )
    from pytest_drainwatch.trial import Trial, TrialVoid

_HOMES = {
    "Accept": "core.scenario",
    "Access": "core.scenario",
    "Affinity": "core.scenario",
    "App": "core.scenario",
    "Behavior": "core.scenario",
    "ClusterNeeds": "core.scenario",
    "Controller": "core.scenario",
    "Flows": "core.scenario",
    "Http": "core.scenario",
    "LoadBalancer": "core.scenario",
    "Pid1": "core.scenario",
    "PreStop": "core.scenario",
    "ProxyMode": "core.scenario",
    "Readiness": "core.scenario",
    "Scenario": "core.scenario",
    "Service": "core.scenario",
    "Tcp": "core.scenario",
    "TrafficPolicy": "core.scenario",
    "Trigger": "core.scenario",
    "Udp": "core.scenario",
    "ViaNode": "core.scenario",
    "Workload": "core.scenario",
    "arms": "core.scenario",
    "matrix": "core.scenario",
    "Mechanism": "core.flow.classify",
    "Outcome": "core.flow.classify",
    "Role": "core.flow.classify",
    "EndedBy": "core.pod.ending",
    "Initiator": "core.pod.ending",
    "PreStopOutcome": "core.pod.ending",
    "Trial": "trial",
    "TrialVoid": "trial",
}

__all__ = [
    "Accept",
    "Access",
    "Affinity",
    "App",
    "Behavior",
    "ClusterNeeds",
    "Controller",
    "EndedBy",
    "Flows",
    "Http",
    "Initiator",
    "LoadBalancer",
    "Mechanism",
    "Outcome",
    "Pid1",
    "PreStop",
    "PreStopOutcome",
    "ProxyMode",
    "Readiness",
    "Role",
    "Scenario",
    "Service",
    "Tcp",
    "TrafficPolicy",
    "Trial",
    "TrialVoid",
    "Trigger",
    "Udp",
    "ViaNode",
    "Workload",
    "__version__",
    "arms",
    "matrix",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
