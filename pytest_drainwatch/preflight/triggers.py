"""Checks of the trigger: that it can be carried out, before anything is triggered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

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
) -> Check:
    """Each pod that is to be evicted has one budget at most, and that one allows it.

    ``selecting`` are the budgets that select each of those pods, by the pod's name; ``idle``
    are those that select no pod at all. Several on one pod are an error that waiting does not
    mend: the API server refuses with 500 (K10). One that allows nothing would block: the trial
    would have no t = 0. ``all_at_once``: it must allow all of its pods, and not the first alone.
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
    fix = [f"kubectl -n {namespace} describe poddisruptionbudget {b.name}" for b in forbidding]
    return Check(
        name="disruption-budgets",
        invariant="at most one PodDisruptionBudget selects each pod that is to be evicted, and it "
        "allows the eviction",
        expected="none or one for each pod, which allows it, and none that selects no pod",
        observed="; ".join(told),
        passed=not crowded and not forbidding,
        hopeless=bool(crowded),
        look_at="; ".join(fix) + "; more replicas, or a budget that allows one to go"
        if fix
        else f"kubectl -n {namespace} get poddisruptionbudgets -o yaml",
    )
