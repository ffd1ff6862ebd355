"""Why a trigger cannot do to this target what its name says; asked before anything is measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api
from pytest_drainwatch.core.scenario import Controller, Trigger
from pytest_drainwatch.trigger import evacuation
from pytest_drainwatch.trigger.target import Owner, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """What stands in the way, and what a person would type about it."""

    observed: str
    look_at: str


def find(api: Api, verb: Trigger, target: Target) -> Obstacle | None:
    """The first obstacle; None: nothing is known to stand in the way.

    Disruption budgets are looked at on their own. The API client's errors pass.
    """
    match verb:
        case Trigger.SCALE:
            return _of_scaling(target)
        case Trigger.ROLLOUT:
            return _of_a_rollout(api, target)
        case Trigger.NAMESPACE_DELETE:
            return _of_the_namespace(target)
        case Trigger.EVACUATE_NODE:
            return _of_an_evacuation(api, target)
        case Trigger.CONTAINER_KILL:
            return _of_a_kill(target)
    return None


def _of_scaling(target: Target) -> Obstacle | None:
    other = "trigger 'delete' or 'rollout' instead"
    if target.controller is None:
        return Obstacle(observed="the pods have no controller that could be scaled", look_at=other)
    if target.controller.kind is Controller.DAEMON_SET:
        return Obstacle(
            observed=f"{target.controller} has a pod for each node and no replicas to scale",
            look_at=other,
        )
    return None


def _of_a_rollout(api: Api, target: Target) -> Obstacle | None:
    """A changed template must lead to new pods by itself."""
    owner = target.controller
    if owner is None:
        return Obstacle(
            observed="the pods have no controller that could restart them",
            look_at="trigger 'delete' instead",
        )
    spec = _spec(api, target.namespace, owner)
    strategy = spec.get("updateStrategy") or {}
    partition = (strategy.get("rollingUpdate") or {}).get("partition") or 0
    kubectl = f"kubectl -n {target.namespace}"
    if spec.get("paused"):
        return Obstacle(
            observed=f"{owner} is paused: a changed template ends no pod",
            look_at=f"{kubectl} rollout resume {owner.kind}/{owner.name}",
        )
    if strategy.get("type") == "OnDelete":
        return Obstacle(
            observed=f"{owner} has updateStrategy OnDelete: a changed template ends no pod",
            look_at="trigger 'delete' instead",
        )
    if partition > 0:
        return Obstacle(
            observed=f"{owner} has partition {partition}: pods of a lower ordinal are not ended",
            look_at=f"{kubectl} get {owner.kind} {owner.name} -o yaml",
        )
    return None


def _of_the_namespace(target: Target) -> Obstacle | None:
    if target.own_namespace:
        return None
    return Obstacle(
        observed=f"namespace {target.namespace} is not this trial's own, and it would be gone",
        look_at="trigger 'scale' or 'delete' instead",
    )


def _of_an_evacuation(api: Api, target: Target) -> Obstacle | None:
    if target.node is None:
        return Obstacle(
            observed=f"pod {target.pod.name} was not seen on any node",
            look_at=f"kubectl -n {target.namespace} get pods -o wide",
        )
    found = evacuation.tenants(api, target)
    dry_run = f"kubectl drain {target.node} --ignore-daemonsets --dry-run=server"
    mine = {pod.uid for pod in target.beside}
    kept = [each for each in found if each.pod.uid in mine and each.stays]
    if kept:
        return Obstacle(
            observed=f"pod {kept[0].pod.name} would stay: it is {kept[0].stays}", look_at=dry_run
        )
    stopping = [each for each in found if each.stops]
    if stopping:
        named = "; ".join(f"{e.namespace}/{e.pod.name}: {e.stops}" for e in stopping[:5])
        more = f" (and {len(stopping) - 5} more)" if len(stopping) > 5 else ""
        return Obstacle(observed=named + more, look_at=dry_run)
    return None


def _of_a_kill(target: Target) -> Obstacle | None:
    missing = [pod.name for pod in target.chosen if pod.uid not in target.kills]
    if not missing:
        return None
    return Obstacle(
        observed=f"no container of {', '.join(missing)} was found that could be killed",
        look_at=f"kubectl -n {target.namespace} describe pods",
    )


def _spec(api: Api, namespace: str, owner: Owner) -> dict[str, Any]:
    read: Callable[..., Any] = {
        Controller.DEPLOYMENT: api.apps.read_namespaced_deployment,
        Controller.STATEFUL_SET: api.apps.read_namespaced_stateful_set,
        Controller.DAEMON_SET: api.apps.read_namespaced_daemon_set,
    }[owner.kind]
    response = read(owner.name, namespace, _preload_content=False, _request_timeout=REQUEST_TIMEOUT)
    return dict(json.loads(response.data).get("spec") or {})
