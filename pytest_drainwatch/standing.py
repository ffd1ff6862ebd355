"""A workload that is up: what the later phases of a trial get, and what is insisted on first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pytest_drainwatch import preflight
from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.scenario import Controller, Scenario, Trigger
from pytest_drainwatch.killing import with_kills
from pytest_drainwatch.preflight import require
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.trigger import (
    EVICTING,
    Obstacle,
    Pod,
    Target,
    find_obstacle,
    neighbours,
)
from pytest_drainwatch.vigil import check_alive
from pytest_drainwatch.watch import Watch
from pytest_drainwatch.way import Way
from pytest_drainwatch.workload import budgets
from pytest_drainwatch.workload.logs import LogFollower

ENDPOINT_TIMEOUT_S = 60.0
# A budget's controller judges it anew a moment after its pods have changed.
BUDGET_TIMEOUT_S = 5.0

# Look until the check passes or so many seconds are over; raises TrialVoid.
Insist = Callable[[Callable[[], preflight.Check], float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A workload that passed preflight, its watches running.

    ``service`` is its Service's namespace/name, ``logs`` are followed of the probe alone.
    ``strangers`` is how many pods that are not the workload's its Service leads to as well.
    """

    stage: Stage
    watch: Watch
    way: Way
    target: Target
    service: str
    logs: tuple[LogFollower, ...] = ()
    strangers: int = 0


def insisting(stage: Stage, watch: Watch) -> Insist:
    """How checks are insisted on while that watch runs."""
    alive = partial(check_alive, stage, watch)

    def must(check: Callable[[], preflight.Check], timeout_s: float) -> None:
        require(check, stage.recorder, timeout_s=timeout_s, wait=watch.wait_changed, alive=alive)

    return must


def hold_stable(stage: Stage, watch: Watch, pods: Sequence[Pod], must: Insist) -> None:
    """Insist that these very pods are ready behind the Service for two sync periods."""
    stable_ns = 2 * stage.sync_period_ns  # kube-proxy has then surely followed
    stable = preflight.EndpointStability(stable_ns)
    uids = [pod.uid for pod in pods]
    must(
        lambda: stable.check(watch.slices(), uids, time.monotonic_ns(), stage.namespace),
        ENDPOINT_TIMEOUT_S + stable_ns / NS_PER_S,
    )


def more_pods(scenario: Scenario, target: Target) -> Callable[[int], str] | None:
    """What a person does for so many pods more; None: of these pods nobody says how many."""
    owner = target.controller
    if owner is None or owner.kind is Controller.DAEMON_SET:
        return None
    if target.ours:
        return lambda number: f"App(replicas={scenario.app.replicas + number}) in the scenario"
    scale = f"kubectl -n {target.namespace} scale {owner.kind}/{owner.name}"
    return lambda number: f"{scale} --replicas={len(target.pods) + number}"


def check_trigger(stage: Stage, target: Target, must: Insist) -> Target:
    """Insist that the trigger can be carried out, before anything is triggered.

    Returns the target with what that takes. The API client's errors pass, and ClusterError for a
    namespace in which no trial may run, though only others' pods of the node are evicted there.
    """
    verb, name = stage.scenario.trigger, stage.namespace
    if verb is Trigger.EVACUATE_NODE:
        for namespace in neighbours(stage.api, target):
            stage.cluster.admit(namespace)
    try:
        if verb is Trigger.CONTAINER_KILL:
            target = with_kills(stage, target)
        obstacle = find_obstacle(stage.api, verb, target)
    except ClusterError as error:
        obstacle = Obstacle(observed=str(error), look_at="another trigger, or another cluster")
    must(
        lambda: preflight.trigger_possible(verb, obstacle),
        0,
    )
    if verb in EVICTING:
        at_once = verb is Trigger.EVICT
        going = [pod.name for pod in (target.chosen if at_once else target.beside)]

        def budgets_clear() -> preflight.Check:
            found = budgets.read(stage.api, name, going)
            return preflight.budgets_clear(
                found.selecting,
                found.idle,
                found.problem,
                name,
                all_at_once=at_once,
                more=more_pods(stage.scenario, target),
            )

        must(budgets_clear, BUDGET_TIMEOUT_S)
    return target
