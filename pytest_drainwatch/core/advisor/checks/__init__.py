"""Every check of a workload, in a table: small pure functions, each about one thing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pytest_drainwatch.core.advisor.checks import (
    balancer,
    hooks,
    network,
    probes,
    rollout,
    routes,
    sidecars,
    signals,
    times,
)
from pytest_drainwatch.core.advisor.finding import Finding, Level
from pytest_drainwatch.core.advisor.subject import Subject
from pytest_drainwatch.core.advisor.told import Told

Check = Callable[[Subject, Told], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    # the grace period and what comes off it first
    hooks.grace_is_none,
    hooks.hook_takes_it_all,
    hooks.hook_needs_a_program,
    hooks.sleep_action,
    hooks.hook_of_unknown_length,
    hooks.hook_without_traffic,
    # the application's times
    times.work_does_not_fit,
    times.waits_twice,
    times.request_is_cut,
    times.idle_connections_stay,
    times.connections_live_longer,
    times.nothing_told,
    # the way to the pods
    routes.routes_change_later,
    routes.dns_answers_are_older,
    balancer.balancer_sends_longer,
    balancer.settings_without_effect,
    balancer.delay_is_below_the_floor,
    balancer.pod_ends_before_the_balancer,
    balancer.health_checks_notice_late,
    network.endpoint_stays_ready,
    network.last_pod_of_a_node,
    network.udp_flows_stay,
    # who gets which signal
    signals.shell_swallows_it,
    signals.stop_signal,
    # who counts as ready and alive
    probes.readiness_is_missing,
    probes.readiness_while_draining,
    probes.liveness,
    probes.grace_of_a_probe,
    # several pods and several containers
    rollout.all_at_once,
    rollout.single_pod,
    rollout.budget_blocks,
    rollout.budgets_contradict,
    rollout.budget_is_missing,
    rollout.old_pods_of_a_partition,
    rollout.job,
    sidecars.ends_before_the_application,
    sidecars.ends_after_the_application,
)

_ORDER = {level: index for index, level in enumerate(Level)}


def check(subject: Subject, told: Told) -> list[Finding]:
    """All findings about a workload, the worst first, then in the table's order."""
    found = [finding for each in CHECKS for finding in each(subject, told)]
    return sorted(found, key=lambda finding: _ORDER[finding.level])
