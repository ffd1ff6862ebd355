"""The PodDisruptionBudgets of a namespace, and which pods each of them selects."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api, explain, failures

RULES = ("minAvailable", "maxUnavailable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A PodDisruptionBudget as its controller has judged it.

    ``rule`` is what it asks for. ``allowed`` is how many more pods may be evicted now; None:
    its controller has not judged it yet, in this form. ``healthy`` of at least ``wanted`` pods.
    """

    name: str
    rule: str
    allowed: int | None = None
    healthy: int | None = None
    wanted: int | None = None

    def __str__(self) -> str:
        if self.allowed is None:
            return f"{self.name} ({self.rule}), not judged yet"
        return (
            f"{self.name} ({self.rule}), which allows {self.allowed} now: {self.healthy} pods are "
            f"healthy and {self.wanted} must be"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """``selecting``: for each chosen pod, by name, the budgets that select it; ``idle``: those that
    select no pod at all; ``problem``: why this is not known.
    """

    selecting: Mapping[str, tuple[Budget, ...]]
    idle: tuple[str, ...]
    problem: str | None = None


def read(api: Api, namespace: str, chosen: Collection[str]) -> Budgets:
    """Ask the API server about the pods ``chosen`` (by name).

    All pods of the namespace are looked at: a budget on others is not one that selects nobody.
    That the server does not tell is no error: the eviction will.
    """
    try:
        found = _items(api.core.list_namespaced_pod, namespace)
        items = _items(api.policy.list_namespaced_pod_disruption_budget, namespace)
        labels = {p["metadata"]["name"]: p["metadata"].get("labels") or {} for p in found}
        budgets = [(_budget(item), item["spec"].get("selector")) for item in items]
        by_pod = {
            pod: tuple(budget for budget, rule in budgets if selects(rule, carried))
            for pod, carried in labels.items()
        }
    except failures() as error:
        return Budgets(selecting={}, idle=(), problem=explain(error))
    except (KeyError, TypeError, AttributeError) as error:
        return Budgets(selecting={}, idle=(), problem=f"an odd answer: {error!r}")
    used = {budget for names in by_pod.values() for budget in names}
    idle = sorted(budget.name for budget, _ in budgets if budget not in used)
    selecting = {pod: names for pod, names in by_pod.items() if pod in chosen}
    return Budgets(selecting=selecting, idle=tuple(idle))


def _budget(item: Mapping[str, Any]) -> Budget:
    metadata, spec, status = item["metadata"], item["spec"], item.get("status") or {}
    rules = [f"{name} {spec[name]}" for name in RULES if spec.get(name) is not None]
    # Of an older form, or of none yet: the API server refuses evictions until it is judged (K10).
    judged = (status.get("observedGeneration") or 0) >= (metadata.get("generation") or 1)
    return Budget(
        name=metadata["name"],
        rule=", ".join(rules) or "no rule",
        allowed=status.get("disruptionsAllowed") if judged else None,
        healthy=status.get("currentHealthy") if judged else None,
        wanted=status.get("desiredHealthy") if judged else None,
    )


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


def _items(call: Callable[..., Any], namespace: str) -> list[Any]:
    response = call(namespace, _preload_content=False, _request_timeout=REQUEST_TIMEOUT)
    return list(json.loads(response.data)["items"])
