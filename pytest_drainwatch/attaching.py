"""A workload of the user's own: found, watched, and left as it is.

Nothing is created in its namespace and nothing changed, but for the trigger. What is read of
its objects is reduced at once (:mod:`.workload.attached`): a trial's files hold none of its
environment, arguments, annotations or logs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

from pytest_drainwatch import outside, preflight, targets, via
from pytest_drainwatch.api import explain, failures
from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.scenario import (
    Access,
    Affinity,
    App,
    Controller,
    PreStop,
    Scenario,
    ScenarioError,
    Service,
    TrafficPolicy,
    Workload,
)
from pytest_drainwatch.preflight import TrialVoid, require
from pytest_drainwatch.reaching import reach_attached
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.standing import Standing, check_trigger, hold_stable, insisting
from pytest_drainwatch.trigger.calls import ended_by
from pytest_drainwatch.watch import Watch
from pytest_drainwatch.way import Way
from pytest_drainwatch.workload import attached as workload
from pytest_drainwatch.workload import client, manifests, namespace
from pytest_drainwatch.workload.attached import Found, Sight
from pytest_drainwatch.workload.following import Followed
from pytest_drainwatch.workload.place import Place
from pytest_drainwatch.workload.reduced import NOT_RECORDED

# Its pods are meant to be there; a rollout that somebody has just begun may take a while.
SETTLED_TIMEOUT_S = 60.0


def adopt(stage: Stage) -> None:
    """Find the workload, and let the scenario say what it is like.

    Raises TrialVoid if there is none, or nothing leads to it.
    """
    asked = stage.scenario.workload
    assert asked is not None, "called for attached workloads only"
    must = partial(require, record=stage.recorder, timeout_s=0)
    try:
        sight = workload.look(stage.api, asked)
    except failures() as error:
        raise TrialVoid(
            f"{asked.what} in namespace {asked.namespace} cannot be read: {explain(error)}; "
            "expected the API server to show it. Look at: kubectl auth can-i get "
            f"deployments,pods,services -n {asked.namespace}; drainwatch rbac"
        ) from error
    must(
        lambda: preflight.workload_found(
            asked, found=sight.found, owners=sight.owners, there=sight.there
        )
    )
    must(lambda: preflight.workload_wanted(asked, sight.replicas, sight.kind, sight.name))
    must(lambda: preflight.service_found(asked, sight.services, sight.labels))
    found = stage.found = _found(asked, sight)
    access = _access(stage, found)
    try:
        stage.scenario = _as_it_is(stage.scenario, found, access)
    except ScenarioError as error:
        raise TrialVoid(
            f"{asked.what} cannot be tried like this: {error}. Look at: kubectl -n "
            f"{asked.namespace} get {preflight.typed(asked)} -o yaml"
        ) from error
    header = stage.recorder.header
    told = _mapping(header.scenario.get("config"))
    host = told.get("target_host") if access is Access.NODE_PORT else None
    hook = found.spec.pre_stop  # of which kind it is, which a scenario's own need not say
    stage.recorder.header = replace(
        header,
        scenario={
            **header.scenario,
            "flags": list(stage.scenario.flags),
            "config": {
                **told,
                **stage.scenario.config(),
                "pre_stop": None if hook is None else dict(hook),
                "target_host": host,
            },
        },
    )
    stage.note(Event.WORKLOAD_FOUND, **found.told())


@contextmanager
def attached(stage: Stage) -> Iterator[Standing]:
    """Watch the workload, and wait until its pods are ready, stable, and reached."""
    found, asked = stage.found, stage.scenario.workload
    assert found is not None
    assert asked is not None
    api, name = stage.api, found.namespace
    with ExitStack() as stack:
        with stage.phase("attach"):
            # All pods are asked for: one that leaves the selector as it ends must stay in sight.
            watch = stage.watch = Watch(
                api,
                name,
                pods="",
                slices=found.slices,
                record=stage.recorder,
                keep=Followed(found.rule),
                quote=False,
            )
            stack.enter_context(watch)
            way = _inside(stage, stack) if _is_inside(stage) else _outside(stage, found)
            stage.note(Event.WAY_CHOSEN, **way.told())
        with stage.phase("preflight: workload"):
            must = insisting(stage, watch)
            must(lambda: preflight.watches_delivering(watch.delivering(), name), 30)
            settling = workload.Settling(api, found)
            must(
                lambda: preflight.pods_settled(asked, watch.pods(), *settling.look()),
                SETTLED_TIMEOUT_S,
            )
            pods = targets.pods_of(watch.pods())
            hold_stable(stage, watch, pods, must)
            target = targets.choose_attached(stage, found, way, pods)
            affinity = found.service.session_affinity
            going = len(ended_by(stage.scenario.trigger, target))
            strangers = len(preflight.ready_in(watch.slices()) - {pod.uid for pod in pods})
            must(lambda: preflight.target_reached(affinity, len(pods), going, strangers), 0)
            target = check_trigger(stage, target, must)
            reach_attached(stage, way, asked)
        yield Standing(
            stage=stage,
            watch=watch,
            way=way,
            target=target,
            service=f"{name}/{found.service.name}",
            strangers=strangers,
        )


def _found(asked: Workload, sight: Sight) -> Found:
    (service,) = [s for s in sight.services if preflight.fits(asked, s, sight.labels)]
    (port,) = [p for p in service.ports if p in preflight.ports_of(asked, service)]
    assert sight.spec is not None
    return Found(
        namespace=asked.namespace,
        kind=sight.kind,
        name=sight.name,
        selector=sight.selector,
        rule=sight.rule,
        replicas=sight.replicas,
        spec=sight.spec,
        service=service,
        port=port,
    )


def _access(stage: Stage, found: Found) -> Access:
    """By which address the Service is reached. Raises TrialVoid if there is none from here."""
    service, cluster = found.service, stage.cluster
    if stage.placement.address is not None:
        return Access.NODE_PORT
    inside = cluster.provider == "embedded" and service.cluster_ip is not None
    if stage.scenario.service.access is Access.CLUSTER_IP and inside:
        return Access.CLUSTER_IP
    if service.ingress:
        return Access.LOAD_BALANCER
    if found.port.node_port is not None:
        return Access.NODE_PORT
    if inside:
        return Access.CLUSTER_IP
    name, where = service.name, f"kubectl -n {found.namespace}"
    check = preflight.address_known(
        None,
        f"Service {name} is of type {service.kind}, without a node port or a load balancer",
        "a node port, a load balancer's address, or a cluster whose pods can be entered",
        f'{where} patch service {name} -p \'{{"spec":{{"type":"NodePort"}}}}\' (a port-forward '
        "does not do: it leads to one pod, past the Service)",
    )
    require(lambda: check, stage.recorder, timeout_s=0)
    raise AssertionError("a check that fails voids the trial")


def _as_it_is(scenario: Scenario, found: Found, access: Access) -> Scenario:
    """The scenario with what is known of the workload. Raises :class:`ScenarioError`."""
    service = found.service
    outside_only = access is not Access.CLUSTER_IP and service.external_traffic_policy
    assert scenario.workload is not None
    return replace(
        scenario,
        app=App(
            controller=found.kind or Controller.DEPLOYMENT,
            replicas=found.replicas,
            grace_period_s=found.spec.grace_period_s,
            pre_stop=_hook(found),
        ),
        service=Service(
            access=access,
            external_traffic_policy=TrafficPolicy(outside_only or TrafficPolicy.CLUSTER),
            session_affinity=Affinity(service.session_affinity),
            publish_not_ready_addresses=service.publish_not_ready,
            via_node=scenario.service.via_node,
        ),
        workload=replace(scenario.workload, service=service.name, port=found.port.number),
    )


def _hook(found: Found) -> PreStop | None:
    """The workload's hook, as far as it is known: how long a command takes is not."""
    hook = found.spec.pre_stop
    if hook is None:
        return None
    seconds = hook.get("sleep_seconds")
    return PreStop(sleep_s=seconds) if isinstance(seconds, int) else PreStop(exec=(NOT_RECORDED,))


def _is_inside(stage: Stage) -> bool:
    return stage.scenario.service.access is Access.CLUSTER_IP


def _outside(stage: Stage, found: Found) -> Way:
    """From where the harness runs, to a node port or a load balancer."""
    cluster, access = stage.cluster, stage.scenario.service.access
    by_node = {}
    if stage.placement.address is not None:
        address = outside.given(stage)
    elif access is Access.LOAD_BALANCER:
        address = outside.load_balancer(stage, found.namespace, found.service.name)
    else:
        address = cluster.node_address or outside.node_of_a_pod(stage, found.selector)
        by_node = dict(cluster.node_addresses)
    own = found.port.node_port if access is Access.NODE_PORT else found.port.number
    port = outside.port(stage, own or found.port.number)
    return Way(
        command=cluster.agent_command,
        sources=tuple(cluster.source_addresses),
        address=address,
        tcp=port,
        udp=port,
        node=via.entered(by_node, address),
        other_nodes=via.others(by_node, address),
    )


def _inside(stage: Stage, stack: ExitStack) -> Way:
    """From a client pod, in a namespace of our own, to the ClusterIP."""
    found, cluster, api = stage.found, stage.cluster, stage.api
    assert found is not None
    if found.service.cluster_ip is None:
        raise ClusterError(f"Service {found.service.name} is headless: it has no address")
    name = manifests.namespace_name(f"{stage.scenario.id}-client", time.monotonic_ns() % 16**8)
    stack.enter_context(
        namespace.trial_namespace(api, name, keep=lambda: False, say=stage.progress.line)
    )
    image = cluster.ensure_probe_image()
    seat = cluster.enter_pod(client.apply(api, Place(namespace=name), image))
    port = found.port.number
    return Way(
        command=seat.command,
        sources=seat.addresses,
        address=found.service.cluster_ip,
        tcp=port,
        udp=port,
        note=seat.note,
    )


def _mapping(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}
