"""The client pod: a place inside of the cluster from which Services are reached."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api
from pytest_drainwatch.workload.manifests import CLIENT, MANAGED_BY, Manifest
from pytest_drainwatch.workload.namespace import owner
from pytest_drainwatch.workload.place import Place

LABELS = {"app.kubernetes.io/name": CLIENT, **MANAGED_BY}
READY_TIMEOUT_S = 60.0
_POLL_S = 0.05
# It only holds a network namespace; the flow agent itself runs where the harness does.
_COMMAND = ["python3", "-c", "import signal; signal.pause()"]


class ClientFailed(Exception):
    """The client pod does not run; the text says why, and what to look at."""


def manifest(image: str) -> Manifest:
    """A pod that the probe's selector does not match, and that ends at once."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": CLIENT, "labels": dict(LABELS)},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "enableServiceLinks": False,
            "automountServiceAccountToken": False,
            "containers": [
                {
                    "name": "client",
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": list(_COMMAND),
                }
            ],
        },
    }


def apply(
    api: Api, place: Place, image: str, *, sleep: Callable[[float], None] = time.sleep
) -> str:
    """Create the client pod, wait until it runs, and return its UID.

    Raises :class:`ClientFailed` if it does not run in time; the API client's own errors pass.
    """
    body, namespace = place.placed(manifest(image), owner()), place.namespace
    created = api.core.create_namespaced_pod(namespace, body, _request_timeout=REQUEST_TIMEOUT)
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        pod = api.core.read_namespaced_pod(
            place.client, namespace, _request_timeout=REQUEST_TIMEOUT
        )
        if pod.status.phase == "Running":
            return str(created.metadata.uid)
        late = time.monotonic() > deadline
        if late or pod.status.phase in ("Failed", "Succeeded"):
            raise ClientFailed(
                f"the client pod {namespace}/{place.client} is {_state(pod)}"
                f"{f' after {READY_TIMEOUT_S:.0f} s' if late else ''}; expected it to be Running. "
                f"Look at: kubectl -n {namespace} describe pod {place.client}"
            )
        sleep(_POLL_S)


def _state(pod: Any) -> str:
    """Its phase, and what its container waits for or ended with."""
    for status in pod.status.container_statuses or ():
        for state in (status.state.waiting, status.state.terminated):
            if state is not None:
                return f"{pod.status.phase} ({state.reason})"
    return str(pod.status.phase)
