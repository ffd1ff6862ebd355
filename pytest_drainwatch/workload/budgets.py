"""The PodDisruptionBudgets of a namespace, and which pods each of them selects."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api, explain, failures
from pytest_drainwatch.workload import manifests


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """``selecting``: for each chosen pod, by name, the budgets that select it; ``idle``: those that
    select no pod at all; ``problem``: why this is not known.
    """

    selecting: Mapping[str, tuple[str, ...]]
    idle: tuple[str, ...]
    problem: str | None = None


def read(api: Api, namespace: str, chosen: Collection[str]) -> Budgets:
    """Ask the API server about the pods ``chosen`` (by name).

    That it does not tell is no error: the eviction will.
    """
    try:
        pods = _items(api.core.list_namespaced_pod, namespace, manifests.POD_SELECTOR)
        budgets = _items(api.policy.list_namespaced_pod_disruption_budget, namespace, "")
        labels = {p["metadata"]["name"]: p["metadata"].get("labels") or {} for p in pods}
        rules = {b["metadata"]["name"]: b["spec"].get("selector") for b in budgets}
    except failures() as error:
        return Budgets(selecting={}, idle=(), problem=explain(error))
    except (KeyError, TypeError) as error:
        return Budgets(selecting={}, idle=(), problem=f"an odd answer: {error!r}")
    by_pod = {
        pod: tuple(sorted(name for name, rule in rules.items() if selects(rule, carried)))
        for pod, carried in labels.items()
    }
    used = {name for names in by_pod.values() for name in names}
    selecting = {pod: names for pod, names in by_pod.items() if pod in chosen}
    return Budgets(selecting=selecting, idle=tuple(sorted(rules.keys() - used)))


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a policy/v1 label selector matches: an empty one does, and none does not."""
    if selector is None:
        return False
    plain = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in plain.items()):
        return False
    return all(_holds(rule, labels) for rule in selector.get("matchExpressions") or ())


def _holds(rule: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = rule["key"], rule.get("values") or ()
    match rule["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    raise KeyError(rule["operator"])


def _items(call: Callable[..., Any], namespace: str, selector: str) -> list[Any]:
    response = call(
        namespace,
        label_selector=selector,
        _preload_content=False,
        _request_timeout=REQUEST_TIMEOUT,
    )
    return list(json.loads(response.data)["items"])
