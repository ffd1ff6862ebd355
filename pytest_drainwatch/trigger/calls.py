"""The calls that each trigger is made of, and whom they end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api
from pytest_drainwatch.core.scenario import Controller, Trigger
from pytest_drainwatch.trigger.target import Owner, Pod, Target

# What `kubectl rollout restart` sets, and in its form. Any text other than before will do.
RESTARTED, RESTARTED_FORM = "kubectl.kubernetes.io/restartedAt", "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, about ``what``; an HTTP error raises ApiException."""

    what: str
    send: Callable[[], None]


def calls_of(api: Api, verb: Trigger, target: Target) -> tuple[Call, ...]:
    """The calls, in the order in which they are made; none for a control."""
    match verb:
        case Trigger.DELETE:
            return _each(target.chosen, partial(delete, api, target.namespace))
        case Trigger.FORCE_DELETE:
            return _each(target.chosen, partial(delete, api, target.namespace, grace_s=0))
        case Trigger.EVICT:
            return _each(target.chosen, partial(evict, api, target.namespace))
        case Trigger.EVACUATE_NODE:
            return _each(target.beside, partial(evict, api, target.namespace))
        case Trigger.CONTAINER_KILL:
            return _each(target.chosen, lambda pod: target.kills[pod.uid].send())
        case Trigger.SCALE:
            send = partial(scale, api, target.namespace, _owner(target), 0)
            return (Call(what=str(target.controller), send=send),)
        case Trigger.ROLLOUT:
            send = partial(rollout, api, target.namespace, _owner(target))
            return (Call(what=str(target.controller), send=send),)
        case Trigger.NAMESPACE_DELETE:
            what = f"namespace {target.namespace}"
            return (Call(what=what, send=partial(delete_namespace, api, target.namespace)),)
        case Trigger.NONE:
            return ()


def ended_by(verb: Trigger, target: Target) -> tuple[Pod, ...]:
    """The pods that the trigger ends; for a control, the one that is looked at."""
    match verb:
        case Trigger.DELETE | Trigger.FORCE_DELETE | Trigger.EVICT | Trigger.CONTAINER_KILL:
            return target.chosen
        case Trigger.EVACUATE_NODE:
            return target.beside
        case Trigger.SCALE | Trigger.ROLLOUT | Trigger.NAMESPACE_DELETE:
            return target.pods
        case Trigger.NONE:
            return (target.pod,)


def delete(api: Api, namespace: str, pod: Pod, *, grace_s: int | None = None) -> None:
    """DELETE the pod, and only if it is still the one we mean.

    With ``grace_s`` 0 its object goes at once, whether its containers have ended or not.
    """
    body: dict[str, object] = {"preconditions": {"uid": pod.uid}}
    if grace_s is not None:
        body["gracePeriodSeconds"] = grace_s
    _send(api.core.delete_namespaced_pod, pod.name, namespace, body=body)


def evict(api: Api, namespace: str, pod: Pod) -> None:
    """POST an Eviction, which respects disruption budgets."""
    _send(
        api.core.create_namespaced_pod_eviction,
        pod.name,
        namespace,
        body={
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        },
    )


def scale(api: Api, namespace: str, owner: Owner, replicas: int) -> None:
    """Ask the controller for so many pods; of none at all every pod is a target."""
    patch = {
        Controller.DEPLOYMENT: api.apps.patch_namespaced_deployment_scale,
        Controller.STATEFUL_SET: api.apps.patch_namespaced_stateful_set_scale,
    }[owner.kind]
    _send(patch, owner.name, namespace, body={"spec": {"replicas": replicas}})


def rollout(api: Api, namespace: str, owner: Owner) -> None:
    """Restart the controller's pods, as its own update strategy has it."""
    patch = {
        Controller.DEPLOYMENT: api.apps.patch_namespaced_deployment,
        Controller.STATEFUL_SET: api.apps.patch_namespaced_stateful_set,
        Controller.DAEMON_SET: api.apps.patch_namespaced_daemon_set,
    }[owner.kind]
    annotations = {RESTARTED: time.strftime(RESTARTED_FORM, time.gmtime())}
    body = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
    _send(patch, owner.name, namespace, body=body)


def delete_namespace(api: Api, namespace: str) -> None:
    """DELETE the namespace, which takes pods, controller and Service, in no order it promises."""
    _send(api.core.delete_namespace, namespace, body={})


def _each(pods: tuple[Pod, ...], send: Callable[[Pod], None]) -> tuple[Call, ...]:
    return tuple(Call(what=f"pod {pod.name}", send=partial(send, pod)) for pod in pods)


def _owner(target: Target) -> Owner:
    """The controller; the check of obstacles has refused these verbs for bare pods."""
    assert target.controller is not None
    return target.controller


def _send(call: Callable[..., Any], *arguments: str, body: object) -> None:
    """Call without parsing the answer: its status says all, and an odd body must not count."""
    response = call(*arguments, body=body, _preload_content=False, _request_timeout=REQUEST_TIMEOUT)
    response.drain_conn()
