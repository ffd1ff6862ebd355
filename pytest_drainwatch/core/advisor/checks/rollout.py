"""Several pods: what a rollout or a node drain takes away at once."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_drainwatch.core.advisor.finding import Finding, Level
from pytest_drainwatch.core.advisor.roles import pods_at_least
from pytest_drainwatch.core.advisor.subject import Budget, Subject
from pytest_drainwatch.core.advisor.told import Told

_EVICTION = "kubernetes/kubernetes pkg/registry/core/pod/storage/eviction.go"
_ROLLING = "RollingUpdate"


def all_at_once(subject: Subject, told: Told) -> Iterator[Finding]:
    """A rollout that leaves nobody to serve, or that cannot go on."""
    strategy, pods = subject.strategy, pods_at_least(subject)
    if strategy is None or subject.kind == "StatefulSet":
        return
    where = subject.where(at=strategy.at)
    if strategy.kind == "Recreate":
        yield Finding(
            level=Level.WARNING,
            code="recreate",
            where=where,
            says="strategy Recreate: every pod has ended before a new one begins",
            expected="RollingUpdate, where two versions can run beside each other",
            because="from the first SIGTERM to the first new Ready pod nobody serves, however "
            "well each pod drains",
            fix="strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}",
            breaks="the pods may not run beside each other (one volume, one writer)",
            source="k8s.io/api/apps/v1 DeploymentStrategy",
        )
        return
    if strategy.kind != _ROLLING or pods is None or subject.kind != "Deployment":
        return
    unavailable = _share(strategy.max_unavailable, pods, 25, up=False)
    surge = _share(strategy.max_surge, pods, 25, up=True)
    if strategy.max_unavailable in (0, "0%") and strategy.max_surge in (0, "0%"):
        yield Finding(
            level=Level.BROKEN,
            code="rollout-impossible",
            where=where,
            says="maxUnavailable and maxSurge are both 0",
            expected="one of them above 0",
            because="no pod may go and none may come: the API server refuses it",
            fix="maxSurge: 1",
            source="k8s.io/api/apps/v1 RollingUpdateDeployment",
        )
    elif pods > 0 and unavailable >= pods:
        yield Finding(
            level=Level.WARNING,
            code="rollout-takes-all",
            where=where,
            says=f"maxUnavailable {strategy.max_unavailable} of {pods} pod(s), maxSurge {surge}: "
            "a rollout may end all of them at once",
            expected="maxUnavailable below the number of pods",
            because="capacity goes faster than replacements become ready, and no drain of a "
            "single pod makes up for that",
            fix="rollingUpdate: {maxUnavailable: 0, maxSurge: 1}",
            source="k8s.io/api/apps/v1 RollingUpdateDeployment",
        )


def single_pod(subject: Subject, told: Told) -> Iterator[Finding]:
    """One pod behind a Service: its end is the Service's."""
    if subject.kind == "Job" or pods_at_least(subject) != 1 or not subject.services:
        return
    yield Finding(
        level=Level.WARNING,
        code="single-pod",
        where=subject.where(at=subject.replicas_at),
        says=f"one pod behind Service/{subject.services[0].name}",
        expected="two or more",
        because=("nobody makes a bare Pod again, and " if subject.kind == "Pod" else "")
        + "an eviction or a node's end takes it before its replacement is ready: "
        "only the drain's time bridges the gap, and readiness that fails during it opens one",
        fix=("a Deployment instead of the Pod, " if subject.kind == "Pod" else "")
        + "replicas: 2, and a PodDisruptionBudget with maxUnavailable: 1",
        # The other kinds end the old pod first.
        breaks="only rollouts happen, with maxUnavailable 0: they start the new pod first"
        if subject.kind == "Deployment"
        else "",
        source="kubernetes/kubernetes pkg/proxy/topology.go",
    )


def budget_blocks(subject: Subject, told: Told) -> Iterator[Finding]:
    """A PodDisruptionBudget that allows nothing, or everything."""
    pods = pods_at_least(subject)
    for budget in subject.budgets:
        where = f"{budget.at} PodDisruptionBudget/{budget.name}"
        if budget.min_available is not None and budget.max_unavailable is not None:
            yield Finding(
                level=Level.BROKEN,
                code="budget-contradicts",
                where=where,
                says="minAvailable and maxUnavailable are both set",
                expected="one of them",
                because="the API server refuses both",
                fix="maxUnavailable: 1",
                source="k8s.io/api/policy/v1 PodDisruptionBudgetSpec",
            )
            continue
        allowed = _allowed(budget, pods)
        if allowed is None or subject.kind == "DaemonSet":
            continue
        shown = (
            f"minAvailable {budget.min_available}"
            if budget.min_available is not None
            else f"maxUnavailable {budget.max_unavailable}"
        )
        of = "its pods" if pods is None else f"{pods} pod(s)"
        # Scaled further out, it lets one go.
        most = max((each.max_replicas for each in subject.autoscalers), default=pods)
        always = _allowed(budget, most) == 0
        if not always:
            of += ", the autoscaler's fewest,"
        if allowed == 0:
            yield Finding(
                level=Level.BROKEN if always else Level.WARNING,
                code="budget-blocks",
                where=where,
                says=f"{shown} of {of} of {subject.kind}/{subject.name}: no eviction is allowed",
                expected="a budget that lets at least one pod go",
                because="every eviction is refused with 429, so a node drain never ends until "
                "somebody deletes the pod, past the budget",
                fix="maxUnavailable: 1, and two or more replicas",
                breaks="an autoscaler that is not in these manifests keeps more pods"
                if always
                else "the autoscaler keeps more pods than its fewest",
                source=f"kubernetes/kubernetes#66811; {_EVICTION}",
            )
        elif pods is not None and allowed >= pods > 0:
            yield Finding(
                level=Level.WARNING,
                code="budget-without-effect",
                where=where,
                says=f"{shown} of {of} of {subject.kind}/{subject.name}: all may go at once",
                expected="fewer than all",
                because="a node drain may evict every pod before a replacement is ready",
                fix="maxUnavailable: 1",
                source=_EVICTION,
            )


def budgets_contradict(subject: Subject, told: Told) -> Iterator[Finding]:
    """Two budgets on the same pods."""
    if len(subject.budgets) < 2:
        return
    names = ", ".join(budget.name for budget in subject.budgets)
    yield Finding(
        level=Level.BROKEN,
        code="two-budgets",
        where=f"{subject.budgets[1].at} PodDisruptionBudget/{subject.budgets[1].name}",
        says=f"{len(subject.budgets)} budgets select the pods of {subject.kind}/{subject.name}: "
        f"{names}",
        expected="one budget for each pod",
        because="the eviction API refuses a pod that more than one budget selects, with an error "
        "and not with 429: no waiting helps",
        fix="one budget, or selectors that share no pod",
        source=f"kubernetes/website#31982; {_EVICTION}",
    )


def budget_is_missing(subject: Subject, told: Told) -> Iterator[Finding]:
    """No budget on several pods that serve."""
    pods = pods_at_least(subject)
    several = pods is not None and pods > 1
    if subject.budgets or not several or not subject.services:
        return
    yield Finding(
        level=Level.NOTE,
        code="budget-missing",
        where=subject.where(),
        says=f"no PodDisruptionBudget selects its {pods} pods",
        expected="one with maxUnavailable: 1 or so",
        because="a node drain may evict all pods of a node at once, and drains of two nodes meet; "
        "a budget limits how many go, it does not make one of them drain",
        fix="kind: PodDisruptionBudget, spec: {maxUnavailable: 1, selector: …}",
        breaks="it is in a file that was not given",
        source="kubernetes/kubernetes#48307",
    )


def old_pods_of_a_partition(subject: Subject, told: Told) -> Iterator[Finding]:
    """A StatefulSet of which only some pods get what was changed."""
    strategy = subject.strategy
    if strategy is None or subject.kind != "StatefulSet":
        return
    if strategy.kind == "OnDelete" or strategy.partition > 0:
        which = (
            "pods keep their old template until somebody deletes them"
            if strategy.kind == "OnDelete"
            else f"pods below number {strategy.partition} keep their old template"
        )
        yield Finding(
            level=Level.NOTE,
            code="old-template",
            where=subject.where(at=strategy.at),
            says=f"{which}, with its hook and grace period",
            expected="what is checked here on every pod",
            because="a new hook or grace period is only used by pods made after the change",
            source="k8s.io/api/apps/v1 RollingUpdateStatefulSetStrategy",
        )


def job(subject: Subject, told: Told) -> Iterator[Finding]:
    """A Job is judged by its work, not by connections."""
    if subject.kind != "Job":
        return
    yield Finding(
        level=Level.NOTE,
        code="job",
        where=subject.where(),
        says="a Job: its hook, its signal and its grace period are checked, no routes to it",
        expected="work that is finished, or that may be done again",
        because="a pod of it that ends early is made again, and does its work twice unless it "
        "can tell what is done",
        source="k8s.io/api/batch/v1 JobSpec",
    )


def _allowed(budget: Budget, pods: int | None) -> int | None:
    """How many of ``pods`` may go at once when all are healthy; None where it is not known."""
    least, most = budget.min_available, budget.max_unavailable
    if pods == 0:
        return None
    if most is not None:
        if most in (0, "0%"):
            return 0
        return None if pods is None else _share(most, pods, 0, up=True)
    if least is None:
        return None
    if pods is None:
        return 0 if least == "100%" else None
    return max(0, pods - _share(least, pods, 0, up=True))


def _share(said: int | str | None, pods: int, default: int, *, up: bool) -> int:
    """A number, or a percentage of the pods, rounded as Kubernetes does."""
    if isinstance(said, int):
        return said
    percent = default if said is None else int(said.removesuffix("%"))
    return -(-pods * percent // 100) if up else pods * percent // 100
