"""A small web server behind a NodePort, from the probe's own image."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pytest_drainwatch.cluster import Cluster

_TIMEOUT_S = 30.0
NAME = "web"


class Web:
    """The deployed server."""

    def __init__(self, api: Any, port: int, seconds: float) -> None:
        self.api = api
        self.port = port
        self.seconds = seconds

    def pods(self) -> list[Any]:
        from kubernetes import client

        return list(client.CoreV1Api(self.api).list_namespaced_pod("default").items)


def deploy_web(cluster: Cluster, *, replicas: int = 2) -> Web:
    """Deploy it and wait until all replicas are ready."""
    from kubernetes import client, config

    api = config.new_client_from_config(str(cluster.kubeconfig), context=cluster.context)
    apps, core = client.AppsV1Api(api), client.CoreV1Api(api)
    container = {
        "name": NAME,
        "image": cluster.ensure_probe_image(),
        "imagePullPolicy": "Never",
        "command": ["/usr/bin/python3", "-u", "-m", "http.server", "8080"],
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    }
    labels = {"app": NAME}
    began = time.monotonic()
    core.create_namespaced_service(
        "default",
        {
            "metadata": {"name": NAME},
            "spec": {"type": "NodePort", "selector": labels, "ports": [{"port": 8080}]},
        },
    )
    apps.create_namespaced_deployment(
        "default",
        {
            "metadata": {"name": NAME},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        },
    )
    while (apps.read_namespaced_deployment(NAME, "default").status.ready_replicas or 0) < replicas:
        if time.monotonic() - began > _TIMEOUT_S:
            events = core.list_namespaced_event("default").items
            raise TimeoutError("; ".join(str(event.message) for event in events))
        time.sleep(0.02)
    seconds = time.monotonic() - began
    port = core.read_namespaced_service(NAME, "default").spec.ports[0].node_port
    return Web(api, port, seconds)


def write_failing_binary(folder: Path, component: str) -> Path:
    """A program in place of kubenode in which *component* fails and the rest sleep."""
    program = folder / "kubenode"
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = {component} ]; then echo "no such luck" >&2; exit 7; fi\n'
        "exec sleep 60\n"
    )
    program.chmod(0o755)
    return program
