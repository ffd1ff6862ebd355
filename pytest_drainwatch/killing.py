"""What kills a trial's containers from their nodes, found before the trigger."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.trigger import Kill, Pod, Target

# As kubectl does: whom it means where a pod has several containers and none is named.
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


def with_kills(stage: Stage, target: Target) -> Target:
    """The target with a way to kill a container of each chosen pod that runs one.

    Raises ClusterError if this cluster's nodes cannot be entered; the API client's errors pass.
    """
    found = {pod.uid: kill for pod in target.chosen if (kill := _kill(stage, target, pod))}
    return replace(target, kills=found)


def _kill(stage: Stage, target: Target, pod: Pod) -> Kill | None:
    response = stage.api.core.read_namespaced_pod(
        pod.name, target.namespace, _preload_content=False, _request_timeout=REQUEST_TIMEOUT
    )
    shown: Mapping[str, Any] = json.loads(response.data)
    if shown["metadata"]["uid"] != pod.uid:
        return None
    annotations = shown["metadata"].get("annotations") or {}
    first = shown["spec"]["containers"][0]["name"]
    name = annotations.get(DEFAULT_CONTAINER, first)
    for status in (shown.get("status") or {}).get("containerStatuses") or ():
        if status["name"] == name and "running" in (status.get("state") or {}):
            container = str(status["containerID"]).rpartition("//")[2]
            return Kill(
                container=name,
                restarts=int(status["restartCount"]),
                send=stage.cluster.killer(pod.uid, container),
            )
    return None
