"""A server as a Deployment with a Service, in a namespace of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api, connect
from pytest_drainwatch.cluster import Cluster, Log
from pytest_drainwatch.workload.manifests import namespace_name
from pytest_drainwatch.workload.namespace import trial_namespace
from scenarios.servers.images import ServerImage

READY_TIMEOUT_S = 60.0
_POLL_S = 0.1
_IMAGE = "servers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server to be asked how it ends.

    Attributes:
        name: that of its manifest here, and of its Deployment and Service.
        image: what it runs from.
        replicas: of its Deployment; `None` leaves the manifest's.
        container: fields of its container that replace those of the manifest.
        others: images of further Deployments in the manifest, by their names.
    """

    name: str
    image: ServerImage
    replicas: int | None = None
    container: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, ServerImage] = field(default_factory=dict)

    def with_(self, **container: Any) -> Server:
        """The same with fields of its container replaced."""
        return replace(self, container={**self.container, **container})

    def objects(self, references: Mapping[str, str]) -> list[dict[str, Any]]:
        """Its objects in the order of the manifest.

        Args:
            references: the images' references, by the Deployments' names.
        """
        import yaml

        text = (Path(__file__).parent / f"{self.name}.yaml").read_text()
        found = [item for item in yaml.safe_load_all(text) if item]
        for item in found:
            if item["kind"] == "Deployment":
                name = item["metadata"]["name"]
                (container,) = item["spec"]["template"]["spec"]["containers"]
                assert container["image"] == _IMAGE, f"{self.name}.yaml: {container['image']}"
                container["image"] = references[name]
                if name == self.name:
                    container.update(self.container)
                    if self.replicas is not None:
                        item["spec"]["replicas"] = self.replicas
        return found

    @contextmanager
    def running(self, cluster: Cluster, log: Log) -> Iterator[str]:
        """Deploy it, wait until all its pods are ready, and give the namespace's name.

        Raises:
            NotHad: an image can't be had here.
            ClusterError: an image can't be loaded.
            TimeoutError: a Deployment did not become ready.
        """
        from kubernetes import utils

        images = {self.name: self.image, **self.others}
        references = {name: image.load(cluster, log) for name, image in images.items()}
        api = connect(cluster.kubeconfig, cluster.context)
        name = namespace_name(f"server-{self.name}", time.monotonic_ns() % 16**8)
        try:
            with trial_namespace(api, name, keep=lambda: False, say=log):
                for item in self.objects(references):
                    utils.create_from_dict(api.client, item, namespace=name)
                    if item["kind"] == "Deployment":
                        _wait_ready(api, name, item["metadata"]["name"])
                yield name
        finally:
            api.close()


def _wait_ready(api: Api, namespace: str, name: str) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        found = api.apps.read_namespaced_deployment(
            name, namespace, _request_timeout=REQUEST_TIMEOUT
        )
        if (found.status.ready_replicas or 0) == found.spec.replicas:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"{found.status.ready_replicas or 0} of {found.spec.replicas} pods of"
                f" {namespace}/{name} are ready after {READY_TIMEOUT_S:.0f} s:"
                f" {_states(api, namespace)}"
            )
        time.sleep(_POLL_S)


def _states(api: Api, namespace: str) -> str:
    """What the containers wait for or ended with, and the last words of each."""
    told = []
    pods = api.core.list_namespaced_pod(namespace, _request_timeout=REQUEST_TIMEOUT).items
    for pod in pods:
        for status in pod.status.container_statuses or ():
            state = status.state.waiting or status.state.terminated
            last = status.last_state.terminated if status.last_state else None
            told.append(
                f"{pod.metadata.name}: {state.reason if state else 'running'}"
                f"{f', ended with {last.exit_code}' if last else ''}"
            )
    return "; ".join(told) or "no containers"
