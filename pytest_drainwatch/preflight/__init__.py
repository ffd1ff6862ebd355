"""The checks that stand between a deployed probe and a measurement.

Each has a name, the invariant, what was observed, what was expected and what to
look at. The first that does not hold in time makes the trial void: a broken
harness must not be able to yield a report.
"""

from pytest_drainwatch.preflight.attached import (
    address_reachable,
    fits,
    pods_settled,
    ports_of,
    requests_answered,
    service_found,
    target_reached,
    typed,
    workload_found,
    workload_wanted,
)
from pytest_drainwatch.preflight.balancer import balancer_up
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
from pytest_drainwatch.preflight.place import address_known, namespace_given, service_reachable
from pytest_drainwatch.preflight.triggers import budgets_clear, trigger_possible
from pytest_drainwatch.preflight.workload import (
    EndpointStability,
    logs_followed,
    pods_ready,
    ready_in,
    version_readable,
    watches_delivering,
)

__all__ = [
    "MIN_UDP_ANSWERS",
    "Check",
    "EndpointStability",
    "TrialVoid",
    "address_known",
    "address_reachable",
    "balancer_up",
    "budgets_clear",
    "clock_identified",
    "fits",
    "flows_dialled",
    "limits_suffice",
    "logs_followed",
    "namespace_given",
    "new_connections_answered",
    "one_way_received",
    "pods_ready",
    "pods_settled",
    "ports_of",
    "ready_in",
    "requests_answered",
    "require",
    "service_found",
    "service_reachable",
    "target_reached",
    "tcp_answered",
    "trigger_possible",
    "typed",
    "udp_answered",
    "version_readable",
    "watches_delivering",
    "workload_found",
    "workload_wanted",
]
