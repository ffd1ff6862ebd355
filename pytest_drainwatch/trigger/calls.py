"""The calls that each trigger is made of, and whom they end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api
from pytest_drainwatch.core.scenario import Controller, Trigger
from pytest_drainwatch.trigger.target import Pod, Target

# What `kubectl rollout restart` sets. It need not hold a time, only another text than before.
RESTARTED = "kubectl.kubernetes.io/restartedAt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to the API server, about ``what``; an HTTP error raises ApiException."""

    what: str
    send: Callable[[], None]


def calls_of(api: Api, verb: Trigger, target: Target) -> tuple[Call, ...]:
    """The calls, in the order in which they are made; none for a control."""
    controller = f"{target.controller} {target.workload}"
    match verb:
        case Trigger.DELETE:
            return tuple(
                Call(what=f"pod {pod.name}", send=partial(delete, api, target, pod))
                for pod in target.chosen
            )
        case Trigger.EVICT:
            return tuple(
                Call(what=f"pod {pod.name}", send=partial(evict, api, target, pod))
                for pod in target.chosen
            )
        case Trigger.SCALE:
            return (Call(what=controller, send=partial(scale, api, target)),)
        case Trigger.ROLLOUT:
            return (Call(what=controller, send=partial(rollout, api, target)),)
        case Trigger.NAMESPACE_DELETE:
            what = f"namespace {target.namespace}"
            return (Call(what=what, send=partial(delete_namespace, api, target)),)
        case Trigger.NONE:
            return ()


def ended_by(verb: Trigger, target: Target) -> tuple[Pod, ...]:
    """The pods that the trigger ends; for a control, the one that is looked at."""
    match verb:
        case Trigger.DELETE | Trigger.EVICT:
            return target.chosen
        case Trigger.SCALE | Trigger.ROLLOUT | Trigger.NAMESPACE_DELETE:
            return target.pods
        case Trigger.NONE:
            return (target.pod,)


def delete(api: Api, target: Target, pod: Pod) -> None:
    """DELETE the pod, and only if it is still the one we mean."""
    _send(
        api.core.delete_namespaced_pod,
        pod.name,
        target.namespace,
        body={"preconditions": {"uid": pod.uid}},
    )


def evict(api: Api, target: Target, pod: Pod) -> None:
    """POST an Eviction, which respects disruption budgets."""
    _send(
        api.core.create_namespaced_pod_eviction,
        pod.name,
        target.namespace,
        body={
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": target.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        },
    )


def scale(api: Api, target: Target) -> None:
    """Scale the controller to zero: every pod is a target and none replaces it."""
    patch = {
        Controller.DEPLOYMENT: api.apps.patch_namespaced_deployment_scale,
        Controller.STATEFUL_SET: api.apps.patch_namespaced_stateful_set_scale,
    }[target.controller]
    _send(patch, target.workload, target.namespace, body={"spec": {"replicas": 0}})


def rollout(api: Api, target: Target) -> None:
    """Restart the Deployment: each pod ends once another has become ready for it.

    A trial's namespace is its own, so its name is a text that stood in no template before.
    """
    annotations = {RESTARTED: target.namespace}
    _send(
        api.apps.patch_namespaced_deployment,
        target.workload,
        target.namespace,
        body={"spec": {"template": {"metadata": {"annotations": annotations}}}},
    )


def delete_namespace(api: Api, target: Target) -> None:
    """DELETE the namespace, which takes pods, controller and Service, in no order it promises."""
    _send(api.core.delete_namespace, target.namespace, body={})


def _send(call: Callable[..., Any], *arguments: str, body: object) -> None:
    """Call without parsing the answer: its status says all, and an odd body must not count."""
    response = call(*arguments, body=body, _preload_content=False, _request_timeout=REQUEST_TIMEOUT)
    response.drain_conn()
