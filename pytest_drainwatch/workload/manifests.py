"""The probe's Kubernetes objects as plain values (pure)."""

from __future__ import annotations

import re

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario import (
    Access,
    App,
    Controller,
    Pid1,
    PreStop,
    Service,
)

NAME = "drainwatch-probe"
MANAGED_BY = {"app.kubernetes.io/managed-by": "pytest-drainwatch"}
LABELS = {"app.kubernetes.io/name": NAME, **MANAGED_BY}
SELECTOR = {"app.kubernetes.io/name": NAME}
CLIENT = "drainwatch-client"
# A webhook may take a pod's labels away, and the pod must stay in sight: so not by what it
# has, but by what the only other pod of a trial's namespace has.
POD_SELECTOR = f"app.kubernetes.io/name!={CLIENT}"
SERVICE_LABEL = "kubernetes.io/service-name"  # of EndpointSlices
OWNER_ANNOTATION = "drainwatch/owner"
OWN_BALANCER = "drainwatch.invalid/haproxy"  # a class that no controller knows
CONTAINER = "probe"
TCP_PORT, UDP_PORT, HTTP_PORT = 7001, 7002, 7003

# The image says how its probe is started; a shell that has something left to do
# afterwards stays PID 1 instead of becoming the probe.
SHELL = ["sh", "-c", "${DRAINWATCH_PROBE:?this image does not say how to start it}; true"]

Manifest = dict[str, object]


def namespace_name(scenario_id: str, unique: int) -> str:
    """A valid namespace name that a person can tell apart from others."""
    slug = re.sub(r"[^a-z0-9]+", "-", scenario_id.lower())[:30].strip("-")
    return "-".join(part for part in ("dw", slug, f"{unique:x}") if part)


def namespace(name: str, owner: str) -> Manifest:
    """A namespace that a later run can recognise as ours; ``owner`` names the process."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": dict(MANAGED_BY),
            "annotations": {OWNER_ANNOTATION: owner},
        },
    }


def workload(app: App, image: str) -> Manifest:
    """What keeps the probe's pods alive, as the scenario has it."""
    make = {
        Controller.DEPLOYMENT: deployment,
        Controller.STATEFUL_SET: stateful_set,
        Controller.DAEMON_SET: daemon_set,
    }
    return make[app.controller](app, image)


def deployment(app: App, image: str) -> Manifest:
    """The probe. Its identity is the pod's UID; names come back, UIDs never do.

    A rollout makes a new pod before it ends an old one, one at a time (case C11).
    """
    one_more = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "labels": dict(LABELS)},
        "spec": {**_pods(app, image), "strategy": one_more},
    }


def stateful_set(app: App, image: str) -> Manifest:
    """The probe in pods of fixed names: a replacement comes when its predecessor is gone.

    ``podManagementPolicy`` is Parallel, which is not Kubernetes' default: pods start all at
    once, and scaling to zero ends them all at once, as with a Deployment.
    """
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": NAME, "labels": dict(LABELS)},
        "spec": {
            **_pods(app, image),
            "serviceName": NAME,
            "podManagementPolicy": "Parallel",
        },
    }


def daemon_set(app: App, image: str) -> Manifest:
    """The probe once on each node. A rollout ends a node's pod before it makes another there."""
    pods = {key: value for key, value in _pods(app, image).items() if key != "replicas"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "labels": dict(LABELS)},
        "spec": pods,
    }


def service(asked: Service) -> Manifest:
    """The Service in front of the probe; the API server picks addresses and node ports."""
    ports = [
        {"name": "tcp", "protocol": "TCP", "port": TCP_PORT, "targetPort": TCP_PORT},
        {"name": "udp", "protocol": "UDP", "port": UDP_PORT, "targetPort": UDP_PORT},
    ]
    spec: Manifest = {
        "type": "ClusterIP",
        "selector": dict(SELECTOR),
        "ports": ports,
        "sessionAffinity": str(asked.session_affinity),
        "publishNotReadyAddresses": asked.publish_not_ready_addresses,
    }
    if asked.access is not Access.CLUSTER_IP:
        # The API server refuses the policy where there is no traffic from outside.
        policy = str(asked.external_traffic_policy)
        # Only of that type has it the node port at which health checks of a Local policy ask.
        balanced = asked.access is Access.LOAD_BALANCER or asked.balancer is not None
        kind = "LoadBalancer" if balanced else "NodePort"
        spec |= {"type": kind, "externalTrafficPolicy": policy}
        if asked.balancer is not None:
            # The balancer is ours: no controller of a cloud's may make, and charge for, another.
            spec["loadBalancerClass"] = OWN_BALANCER
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME, "labels": dict(LABELS)},
        "spec": spec,
    }


def _pods(app: App, image: str) -> Manifest:
    """How many pods of which kind: what every controller is told."""
    return {
        "replicas": app.replicas,
        "selector": {"matchLabels": dict(SELECTOR)},
        "template": {
            "metadata": {"labels": dict(LABELS)},
            "spec": {
                "terminationGracePeriodSeconds": app.grace_period_s,
                "enableServiceLinks": False,
                "automountServiceAccountToken": False,
                **_spread(app),
                "containers": [_container(app, image)],
            },
        },
    }


def _spread(app: App) -> Manifest:
    """Which nodes the pods may have, if they are to be spread.

    Of one revision, or a rollout's new pods would have to fit beside the old ones. Terminating
    pods do not count for it, nor nodes that take none.
    """
    if not app.spread_over_nodes:
        return {}
    revision = {
        Controller.DEPLOYMENT: "pod-template-hash",
        Controller.STATEFUL_SET: "controller-revision-hash",
        Controller.DAEMON_SET: "controller-revision-hash",
    }[app.controller]
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "nodeTaintsPolicy": "Honor",
                "labelSelector": {"matchLabels": dict(SELECTOR)},
                "matchLabelKeys": [revision],
            }
        ]
    }


def _container(app: App, image: str) -> Manifest:
    extra: Manifest = {}
    if app.pid1 is Pid1.SHELL:
        extra["command"] = list(SHELL)
    if app.pre_stop is not None:
        extra["lifecycle"] = {"preStop": _hook(app.pre_stop)}
    return {
        **extra,
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "env": [
            {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "DRAIN_BEHAVIOR", "value": str(app.behavior)},
            {"name": "READINESS_ON_DRAIN", "value": str(app.readiness_on_drain)},
            {"name": "ACCEPT_ON_DRAIN", "value": str(app.accept_on_drain)},
            {"name": "DRAIN_SECONDS", "value": f"{app.drain_ns / NS_PER_S:.3f}"},
            {"name": "EXIT_NOW_RESET", "value": str(app.exit_now_reset).lower()},
            {"name": "RESPONSE_DELAY", "value": f"{app.response_delay_ns / NS_PER_MS:.3f}ms"},
        ],
        "ports": [
            {"name": "tcp", "containerPort": TCP_PORT, "protocol": "TCP"},
            {"name": "udp", "containerPort": UDP_PORT, "protocol": "UDP"},
            {"name": "http", "containerPort": HTTP_PORT, "protocol": "TCP"},
        ],
        "readinessProbe": {
            "httpGet": {"path": "/readyz", "port": HTTP_PORT},
            "initialDelaySeconds": app.ready_after_s,
            "periodSeconds": 1,
            "failureThreshold": 1,
        },
    }


def _hook(hook: PreStop) -> Manifest:
    if hook.sleep_s is not None:
        return {"sleep": {"seconds": hook.sleep_s}}
    if hook.http_ns is not None:
        path = f"/prestop?ms={hook.http_ns // NS_PER_MS}"
        return {"httpGet": {"path": path, "port": HTTP_PORT}}
    return {"exec": {"command": list(hook.exec or ())}}
