"""What is to be said of objects in a manifest that are about none of its workloads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_drainwatch.core.advisor.finding import Finding, Level
from pytest_drainwatch.core.advisor.subject import Place


def unused(kind: str, name: str, at: Place) -> Finding:
    """An object that selects, or stands before, no workload of those given."""
    where = f"{at} {kind}/{name}"
    if kind == "PodDisruptionBudget":
        return Finding(
            level=Level.WARNING,
            code="budget-selects-nothing",
            where=where,
            says="its selector matches the pods of no workload given",
            expected="spec.selector that matches spec.template.metadata.labels of a workload",
            because="evictions of pods that no budget selects are always allowed: a node drain "
            "may end all of them at once",
            fix="selector: {matchLabels: …the labels of the pods…}",
            breaks="its workload is in a file that was not given",
            source="kubernetes/kubernetes#48307",
        )
    return Finding(
        level=Level.NOTE,
        code="not-related",
        where=where,
        says="it concerns no workload given, so nothing of it was checked",
        expected="a selector, a target or a backend among the objects given",
        because="what it says of the way to the pods would belong to the shutdown budget",
        breaks="its workload is in a file that was not given",
    )


def skipped(objects: Sequence[tuple[str, str, Place]]) -> Iterator[Finding]:
    """Kinds that nothing is read of: one note for each kind."""
    for kind in sorted({kind for kind, _, _ in objects}):
        mine = [(name, at) for of_kind, name, at in objects if of_kind == kind]
        name, at = mine[0]
        yield Finding(
            level=Level.NOTE,
            code="kind-skipped",
            where=f"{at} {kind}/{name}" if name else f"{at} {kind}",
            says=f"{len(mine)} object(s) of this kind were skipped",
            expected="workloads, Services, PodDisruptionBudgets, autoscalers, Ingresses",
            because="nothing is known here of what this kind means for a shutdown",
        )
