"""The probe's Kubernetes objects as plain values (pure)."""

from __future__ import annotations

import re

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario import App, Pid1, PreStop

NAME = "drainwatch-probe"
MANAGED_BY = {"app.kubernetes.io/managed-by": "pytest-drainwatch"}
LABELS = {"app.kubernetes.io/name": NAME, **MANAGED_BY}
SELECTOR = {"app.kubernetes.io/name": NAME}
POD_SELECTOR = f"app.kubernetes.io/name={NAME}"
SLICE_SELECTOR = f"kubernetes.io/service-name={NAME}"
OWNER_ANNOTATION = "drainwatch/owner"
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


def deployment(app: App, image: str) -> Manifest:
    """The probe. Its identity is the pod's UID; names come back, UIDs never do."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "labels": dict(LABELS)},
        "spec": {
            "replicas": app.replicas,
            "selector": {"matchLabels": dict(SELECTOR)},
            "template": {
                "metadata": {"labels": dict(LABELS)},
                "spec": {
                    "terminationGracePeriodSeconds": app.grace_period_s,
                    "enableServiceLinks": False,
                    "automountServiceAccountToken": False,
                    "containers": [_container(app, image)],
                },
            },
        },
    }


def service() -> Manifest:
    """A NodePort Service; the API server picks free node ports."""
    ports = [
        {"name": "tcp", "protocol": "TCP", "port": TCP_PORT, "targetPort": TCP_PORT},
        {"name": "udp", "protocol": "UDP", "port": UDP_PORT, "targetPort": UDP_PORT},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME, "labels": dict(LABELS)},
        "spec": {"type": "NodePort", "selector": dict(SELECTOR), "ports": ports},
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
