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
        App,
        Behavior,
        Flows,
        Pid1,
        PreStop,
        Readiness,
        Scenario,
        Trigger,
        matrix,
    )
    from pytest_drainwatch.trial import Trial, TrialVoid

_HOMES = {
    "App": "core.scenario",
    "Behavior": "core.scenario",
    "Flows": "core.scenario",
    "Pid1": "core.scenario",
    "PreStop": "core.scenario",
    "Readiness": "core.scenario",
    "Scenario": "core.scenario",
    "Trigger": "core.scenario",
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
    "App",
    "Behavior",
    "EndedBy",
    "Flows",
    "Initiator",
    "Mechanism",
    "Outcome",
    "Pid1",
    "PreStop",
    "PreStopOutcome",
    "Readiness",
    "Role",
    "Scenario",
    "Trial",
    "TrialVoid",
    "Trigger",
    "__version__",
    "matrix",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
