"""Checks of the trigger: that it can be carried out, before anything is triggered."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence

from pytest_drainwatch.preflight.check import Check
from pytest_drainwatch.trigger import Obstacle
from pytest_drainwatch.workload.budgets import Budget


def trigger_possible(verb: str, obstacle: Obstacle | None) -> Check:
    """A trigger that cannot do what its name says measures nothing."""
    return Check(
        name="trigger-possible",
        invariant=f"the trigger '{verb}' can end the pods that it is about",
        expected="nothing that stands in its way",
        observed=obstacle.observed if obstacle else "nothing stands in its way",
        passed=obstacle is None,
        hopeless=True,
        look_at=obstacle.look_at if obstacle else "the scenario's trigger",
    )


def budgets_clear(
    selecting: Mapping[str, Sequence[Budget]],
    idle: Collection[str],
    problem: str | None,
    namespace: str,
    *,
    all_at_once: bool = True,
    more: Callable[[int], str] | None = None,
) -> Check:
    """Each pod that is to be evicted has one budget at most, and that one allows it.

    ``selecting`` are the budgets that select each of those pods, by the pod's name; ``idle``
    are those that select no pod at all. Several on one pod are an error that waiting does not
    mend: the API server refuses with 500 (K10). One that allows nothing would block: the trial
    would have no t = 0. ``all_at_once``: it must allow all of its pods, and not the first alone.
    ``more``: what a person does to have so many pods more; None: nobody says how many there are.
    """
    crowded = {pod: found for pod, found in selecting.items() if len(found) > 1}
    alone = {pod: found[0] for pod, found in selecting.items() if len(found) == 1}
    needed: dict[Budget, int] = {}
    for budget in alone.values():
        needed[budget] = needed.get(budget, 0) + 1 if all_at_once else 1
    forbidding = {b: n for b, n in needed.items() if b.allowed is None or b.allowed < n}
    told = [
        f"blocked: misconfigured, {len(found)} budgets select this pod: {pod} "
        f"({', '.join(sorted(budget.name for budget in found))})"
        for pod, found in sorted(crowded.items())
    ]
    told += [
        f"blocked: budget {budget}, and {number} eviction(s) are wanted"
        for budget, number in forbidding.items()
    ]
    told += [
        f"{pod}: {alone.get(pod, 'no budget')}"
        for pod in sorted(selecting)
        if pod not in crowded and alone.get(pod) not in forbidding
    ]
    told += [f"budget {name} selects no pod" for name in sorted(idle)]
    told += [f"not known, and the eviction will tell: {problem}"] if problem else []
    fix = [_let_go(budget, number, namespace, more) for budget, number in forbidding.items()]
    if spare := sorted({b for found in crowded.values() for b in sorted(_names(found))[1:]}):
        fix.append(f"kubectl -n {namespace} delete poddisruptionbudget {' '.join(spare)}")
    return Check(
        name="disruption-budgets",
        invariant="at most one PodDisruptionBudget selects each pod that is to be evicted, and it "
        "allows the eviction",
        expected="none or one for each pod, which allows it, and none that selects no pod",
        observed="; ".join(told),
        passed=not crowded and not forbidding,
        hopeless=bool(crowded),
        look_at="; ".join(fix) or f"kubectl -n {namespace} get poddisruptionbudgets -o yaml",
    )


def _let_go(budget: Budget, number: int, namespace: str, more: Callable[[int], str] | None) -> str:
    """What makes a budget allow so many evictions, as far as its rule and its pods tell."""
    about = f"poddisruptionbudget {budget.name}"
    if budget.healthy is None or budget.wanted is None:
        return f"kubectl -n {namespace} describe {about}"  # nobody has judged it yet
    rule, _, value = budget.rule.partition(" ")
    ways = []
    if rule == "minAvailable":
        # Of a share, more pods make more that must be: their number does not always help.
        if more is not None and value.isdecimal():
            ways.append(more(number + budget.wanted - budget.healthy))
        spec = {rule: max(0, budget.healthy - number)}
    else:
        spec = {"maxUnavailable": number}
    patch = shlex.quote(json.dumps({"spec": spec}))
    ways.append(f"kubectl -n {namespace} patch {about} --type merge -p {patch}")
    return ", or ".join(ways)


def _names(budgets: Sequence[Budget]) -> list[str]:
    return [budget.name for budget in budgets]
