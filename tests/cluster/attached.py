"""A workload as a user has it: pods of any image, and a Service in front of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pytest_drainwatch.api import Api, connect
from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.scenario import App, Controller, Service
from pytest_drainwatch.workload import manifests

SECRET = "s3cr3t-of-the-user"
NAME, SHOP = "web", "shop"
# Says back what it is told, tells its first argument to its log, and fails when it is to end, so
# that the kubelet makes its log the termination message.
TALKATIVE = """
import os, signal, socketserver, sys
signal.signal(signal.SIGTERM, lambda *_: os._exit(3))
class Back(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(b"said " + line)
print(*sys.argv[1:], flush=True)
socketserver.ThreadingTCPServer(("", %d), Back).serve_forever()
"""


def web(app: App, image: str) -> dict[str, Any]:
    """The probe's own program as somebody else's Deployment, with secrets all over."""
    found: dict[str, Any] = json.loads(json.dumps(manifests.deployment(app, image)))
    found["metadata"] = {"name": NAME, "annotations": {"token": SECRET}}
    found["spec"]["selector"] = {"matchLabels": {"app": NAME}}
    template = found["spec"]["template"]
    template["metadata"] = {"labels": {"app": NAME}, "annotations": {"password": SECRET}}
    (container,) = template["spec"]["containers"]
    container["name"] = "server"
    container["env"].append({"name": "DATABASE_PASSWORD", "value": SECRET})
    return found


def talkative(app: App, image: str) -> dict[str, Any]:
    """A server that has a secret in its arguments, its log, its readiness probe, its preStop
    hook and its last words, and whose probe and hook fail, which events then quote.
    """
    found = web(app, image)
    (container,) = found["spec"]["template"]["spec"]["containers"]
    once = f"echo {SECRET}; [ -e /dev/shm/ok ] || {{ : > /dev/shm/ok; exit 1; }}"
    container.update(
        command=["python3", "-c", TALKATIVE % manifests.TCP_PORT],
        args=[SECRET],
        readinessProbe={"exec": {"command": ["sh", "-c", once]}, "periodSeconds": 1},
        lifecycle={"preStop": {"exec": {"command": ["sh", "-c", f"echo {SECRET}; exit 1"]}}},
        terminationMessagePolicy="FallbackToLogsOnError",
    )
    return found


def stable(app: App, image: str, track: str = "stable") -> dict[str, Any]:
    """A Deployment of one track: the Service selects the pods of each."""
    found = web(app, image)
    labels = {"app": NAME, "track": track}
    found["spec"]["selector"]["matchLabels"] = labels
    found["spec"]["template"]["metadata"]["labels"] = labels
    return found


def canary(api: Api, image: str, app: App) -> None:
    """The other track's, beside what runs there."""
    body = stable(app, image, "canary")
    body["metadata"]["name"] = f"{NAME}-canary"
    _create(api, SHOP, body, Controller.DEPLOYMENT)
    _wait_ready(api, SHOP, 2 * app.replicas)


def service(**changes: object) -> dict[str, Any]:
    """Its Service."""
    found: dict[str, Any] = json.loads(json.dumps(manifests.service(Service())))
    found["metadata"] = {"name": NAME, "annotations": {"token": SECRET}}
    found["spec"]["selector"] = {"app": NAME}
    ready = {"name": "http", "port": 80, "targetPort": manifests.HTTP_PORT, "protocol": "TCP"}
    found["spec"]["ports"].append(ready)
    found["spec"].update(changes)
    return found


@contextmanager
def running(
    cluster: Cluster,
    app: App | None = None,
    *,
    service: Mapping[str, Any] | None = None,
    name: str = SHOP,
    kind: Controller | None = Controller.DEPLOYMENT,
    made: Callable[[App, str], dict[str, Any]] = web,
) -> Iterator[Api]:
    """The workload in a namespace of the user's, all pods ready; ``kind`` None: a bare pod.

    ``made`` gives its Deployment, from which the other kinds are made.
    """
    app = app or App(grace_period_s=5, drain_ns=NS_PER_S)
    api = connect(cluster.kubeconfig, cluster.context)
    image = cluster.ensure_probe_image()
    api.core.create_namespace({"metadata": {"name": name}})
    try:
        _create(api, name, made(app, image), kind)
        api.core.create_namespaced_service(name, dict(service or _service()))
        _wait_ready(api, name, app.replicas)
        yield api
    finally:
        api.core.delete_namespace(name, grace_period_seconds=0)
        _wait_gone(api, name)
        api.close()


def objects(api: Api, name: str = SHOP) -> dict[str, Any]:
    """What is in the namespace, without what changes by itself; pods by number alone."""
    found: dict[str, Any] = {}
    for kind, items in (
        ("deployments", api.apps.list_namespaced_deployment(name).items),
        ("services", api.core.list_namespaced_service(name).items),
        ("configmaps", api.core.list_namespaced_config_map(name).items),
        ("secrets", api.core.list_namespaced_secret(name).items),
        ("statefulsets", api.apps.list_namespaced_stateful_set(name).items),
    ):
        for item in items:
            meta = item.metadata
            found[f"{kind}/{meta.name}"] = (meta.uid, meta.generation, meta.labels)
    pods = api.core.list_namespaced_pod(name).items
    found["pods"] = len(pods)
    found["names"] = sorted({str(pod.metadata.labels) for pod in pods})
    return found


def _service() -> dict[str, Any]:
    return service()


def _create(api: Api, name: str, body: dict[str, Any], kind: Controller | None) -> None:
    template, spec = body["spec"]["template"], body["spec"]
    if kind is not Controller.DEPLOYMENT:
        del spec["strategy"]
    if kind is None:
        template["metadata"]["name"] = NAME
        api.core.create_namespaced_pod(name, {**template, "apiVersion": "v1", "kind": "Pod"})
        return
    create = {
        Controller.DEPLOYMENT: api.apps.create_namespaced_deployment,
        Controller.STATEFUL_SET: api.apps.create_namespaced_stateful_set,
        Controller.DAEMON_SET: api.apps.create_namespaced_daemon_set,
    }[kind]
    if kind is Controller.STATEFUL_SET:
        spec["serviceName"] = NAME
    if kind is Controller.DAEMON_SET:
        del spec["replicas"]
    create(name, {name: part for name, part in body.items() if name != "kind"})


def _wait_ready(api: Api, name: str, replicas: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        ready = [
            condition.status == "True"
            for pod in api.core.list_namespaced_pod(name, label_selector=f"app={NAME}").items
            for condition in pod.status.conditions or ()
            if condition.type == "Ready"
        ]
        if len(ready) == replicas and all(ready):
            return
        time.sleep(0.1)
    raise AssertionError("the workload is not ready after 60 s")


def _wait_gone(api: Api, name: str) -> None:
    from kubernetes.client.exceptions import NotFoundException

    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            api.core.read_namespace(name)
        except NotFoundException:
            return
        time.sleep(0.1)
