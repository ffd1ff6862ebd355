"""Which rights a trial needs, and why: the one place that says it (pure).

They follow from what the trial does: whose namespace it uses, what controls the pods, how they
are terminated, and by which address the Service is reached.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from pytest_drainwatch.core.scenario import Access, Controller, Scenario, Trigger
from pytest_drainwatch.rights.right import Right, Where

APPS, DISCOVERY, POLICY = "apps", "discovery.k8s.io", "policy"
RESOURCES = {
    Controller.DEPLOYMENT: "deployments",
    Controller.STATEFUL_SET: "statefulsets",
    Controller.DAEMON_SET: "daemonsets",
}


def needed(scenario: Scenario, *, own: bool, found: Controller | None = None) -> tuple[Right, ...]:
    """All that a trial of ``scenario`` does; ``own``: in a namespace that is made for it.

    ``found`` is what controls the pods of an attached workload that is named by labels, once
    that is known.
    """
    workload = scenario.workload
    return together(
        [scenario.trigger],
        [scenario.app.controller if workload is None else workload.kind or found],
        [scenario.service.access],
        own=own,
        attach=workload is not None,
    )


def together(
    triggers: Collection[Trigger],
    controllers: Collection[Controller | None],
    accesses: Collection[Access],
    *,
    own: bool,
    attach: bool,
) -> tuple[Right, ...]:
    """All that trials do which have any of these; ``attach``: to a workload of the user's."""
    found = list(always())
    if not attach:
        found += room(own=own)
    for controller in controllers:
        if attach:
            found += finding(controller)
        for access in () if attach else accesses:
            found += deploying(controller or Controller.DEPLOYMENT, access, own=own)
        for trigger in triggers:
            found += triggering(trigger, controller, own=own and not attach)
    return merged([*found, *watching()])


def merged(rights: Iterable[Right]) -> tuple[Right, ...]:
    """Each right once, with every reason for it; one that is needed is not optional."""
    found: dict[tuple[object, ...], Right] = {}
    for right in rights:
        key = (right.verb, right.group, right.resource, right.where, right.name)
        before = found.get(key)
        if before is None:
            found[key] = right
            continue
        whys = [before.why] if right.why in before.why.split("; ") else [before.why, right.why]
        found[key] = Right(
            verb=right.verb,
            resource=right.resource,
            group=right.group,
            where=right.where,
            name=right.name,
            why="; ".join(whys),
            optional=before.optional and right.optional,
        )
    return tuple(found.values())


def always() -> Iterator[Right]:
    """What is asked of every cluster."""
    why = "facts of the environment"
    yield Right(verb="get", resource="/version", where=Where.PATH, why="the Kubernetes version")
    yield Right(
        verb="list",
        resource="nodes",
        where=Where.CLUSTER,
        why=f"node addresses; {why}",
        optional=True,
    )
    yield Right(
        verb="get",
        resource="configmaps",
        where=Where.KUBE_SYSTEM,
        name="kube-proxy",
        why="kube-proxy's mode and minSyncPeriod",
        optional=True,
    )
    yield Right(
        verb="list",
        resource="daemonsets",
        group=APPS,
        where=Where.KUBE_SYSTEM,
        why="which CNI there is",
        optional=True,
    )
    yield Right(
        verb="get",
        resource="namespaces",
        where=Where.KUBE_SYSTEM,
        name="kube-system",
        why="trials take turns on one cluster, by whatever name it is reached",
        optional=True,
    )


def watching() -> Iterator[Right]:
    """What is seen of pods and endpoints."""
    for verb in ("list", "watch"):
        yield Right(verb=verb, resource="pods", why="the pods' states, as they change")
        yield Right(
            verb=verb,
            resource="endpointslices",
            group=DISCOVERY,
            why="when a pod is advertised and when no longer",
        )
    yield Right(
        verb="list", resource="events", why="what the kubelet says of the pods", optional=True
    )


def room(*, own: bool) -> Iterator[Right]:
    """The namespace of a trial."""
    if own:
        why = "a namespace for each trial, removed after it"
        for verb in ("create", "get", "delete"):
            yield Right(verb=verb, resource="namespaces", where=Where.CLUSTER, why=why)
        yield Right(
            verb="list",
            resource="namespaces",
            where=Where.CLUSTER,
            optional=True,
            why="removing namespaces that a killed run left behind",
        )
        return
    yield Right(verb="get", resource="namespaces", why="the namespace that was given is there")


def deploying(controller: Controller, access: Access, *, own: bool) -> Iterator[Right]:
    """The probe and its Service, and what is read of them."""
    made = [Right(verb="create", resource=RESOURCES[controller], group=APPS, why="the probe")]
    made.append(Right(verb="create", resource="services", why="the probe's Service"))
    if access is Access.CLUSTER_IP:
        made.append(Right(verb="create", resource="pods", why="a client inside of the cluster"))
        yield Right(verb="get", resource="pods", why="whether the client runs")
    if access is Access.LOAD_BALANCER:
        yield Right(verb="get", resource="services", why="the load balancer's address")
    yield from made
    yield Right(verb="get", resource="pods/log", why="when SIGTERM reached the probe")
    yield Right(verb="get", resource="pods", why="whether a log has ended with its pod")
    if own:
        return
    removed = [(right.resource, right.group) for right in made]
    for resource, group in dict.fromkeys([*removed, ("pods", "")]):
        for verb in ("list", "delete"):
            yield Right(
                verb=verb, resource=resource, group=group, why="removing what the trial made"
            )


def finding(controller: Controller | None) -> Iterator[Right]:
    """An attached workload, which is found and never made; None: pods by their labels."""
    if controller is not None:
        resource, why = RESOURCES[controller], "the workload that is attached to"
        yield Right(verb="get", resource=resource, group=APPS, why=why)
    else:
        for resource in ("replicasets", *RESOURCES.values()):
            why = "what controls pods that are named by labels"
            yield Right(verb="get", resource=resource, group=APPS, why=why)
    for resource in RESOURCES.values():
        why = "naming what is there, where the workload is not"
        yield Right(verb="list", resource=resource, group=APPS, why=why, optional=True)
    yield Right(verb="list", resource="services", why="the Service in front of it")


def triggering(trigger: Trigger, controller: Controller | None, *, own: bool) -> Iterator[Right]:
    """How pods are terminated. Without a controller some triggers make no sense, and need none.

    ``own``: the namespace is the trial's; no other is ever deleted.
    """
    why, resource = f"trigger {trigger}", RESOURCES[controller] if controller else ""
    budgets = Right(
        verb="list",
        resource="poddisruptionbudgets",
        group=POLICY,
        optional=True,
        why="budgets that forbid an eviction, told beforehand",
    )
    match trigger:
        case Trigger.DELETE | Trigger.FORCE_DELETE:
            yield Right(verb="delete", resource="pods", why=why)
        case Trigger.EVICT:
            yield Right(verb="create", resource="pods/eviction", why=why)
            yield budgets
        case Trigger.SCALE if resource:
            for verb in ("get", "patch"):
                yield Right(verb=verb, resource=f"{resource}/scale", group=APPS, why=why)
        case Trigger.ROLLOUT if resource:
            for verb in ("get", "patch"):
                yield Right(verb=verb, resource=resource, group=APPS, why=why)
        case Trigger.NAMESPACE_DELETE if own:
            yield Right(verb="delete", resource="namespaces", where=Where.CLUSTER, why=why)
        case Trigger.EVACUATE_NODE:
            for verb in ("get", "patch"):
                yield Right(verb=verb, resource="nodes", where=Where.CLUSTER, why=why)
            yield Right(verb="list", resource="pods", where=Where.EVERYWHERE, why=why)
            yield Right(verb="create", resource="pods/eviction", where=Where.EVERYWHERE, why=why)
            yield budgets
        case Trigger.CONTAINER_KILL:
            yield Right(verb="get", resource="pods", why=f"{why}: which container it is")
        case Trigger.SCALE | Trigger.ROLLOUT | Trigger.NAMESPACE_DELETE | Trigger.NONE:
            return  # nothing that the API is asked for
