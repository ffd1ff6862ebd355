"""The checks that stand between a deployed probe and a measurement.

Each has a name, the invariant, what was observed, what was expected and what to
look at. The first that does not hold in time makes the trial void: a broken
harness must not be able to yield a report.
"""

from pytest_drainwatch.preflight.check import Check, TrialVoid, require
from pytest_drainwatch.preflight.flows import (
    MIN_UDP_ANSWERS,
    clock_identified,
    flows_dialled,
    limits_suffice,
    new_connections_answered,
    one_way_received,
    tcp_answered,
    udp_answered,
)
from pytest_drainwatch.preflight.workload import (
    EndpointStability,
    budgets_clear,
    logs_followed,
    pods_ready,
    version_readable,
    watches_delivering,
)

__all__ = [
    "MIN_UDP_ANSWERS",
    "Check",
    "EndpointStability",
    "TrialVoid",
    "budgets_clear",
    "clock_identified",
    "flows_dialled",
    "limits_suffice",
    "logs_followed",
    "new_connections_answered",
    "one_way_received",
    "pods_ready",
    "require",
    "tcp_answered",
    "udp_answered",
    "version_readable",
    "watches_delivering",
]
