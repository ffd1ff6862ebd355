"""Putting the probe into a namespace, and getting its evidence out again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api, explain
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.scenario import App
from pytest_drainwatch.workload import manifests
from pytest_drainwatch.workload.logs import LINE_LIMIT

# A void trial's API server may be the one that does not answer.
EVIDENCE_TIMEOUT = (2.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePorts:
    """Where the probe's Service answers on every node."""

    tcp: int
    udp: int


def apply(api: Api, namespace: str, app: App, image: str) -> NodePorts:
    """Create Service and Deployment; returns the node ports that the API server gave."""
    created = api.core.create_namespaced_service(
        namespace, manifests.service(), _request_timeout=REQUEST_TIMEOUT
    )
    api.apps.create_namespaced_deployment(
        namespace, manifests.deployment(app, image), _request_timeout=REQUEST_TIMEOUT
    )
    ports = {port.name: port.node_port for port in created.spec.ports}
    return NodePorts(tcp=ports["tcp"], udp=ports["udp"])


def evidence(api: Api, namespace: str, at: Interval) -> Iterator[Observation]:
    """What a person would look at when a trial is void: events, and the pods' last lines.

    Best effort, item by item: it must not hide the failure that made the trial void.
    The answers are read as they are, since one odd object spoils a whole typed list.
    """
    for item in _listed(api.core.list_namespaced_event, namespace):
        with suppress(Exception):
            about = item.get("involvedObject") or {}
            yield Observation(
                source=Source.ORCHESTRATOR,
                event=Event.CLUSTER_EVENT,
                at=at,
                subject=f"{about.get('kind')}/{about.get('name')}",
                data={key: item.get(key) for key in ("reason", "type", "message", "count")},
            )
    for item in _listed(
        api.core.list_namespaced_pod, namespace, label_selector=manifests.POD_SELECTOR
    ):
        with suppress(Exception):
            name = item["metadata"]["name"]
            yield Observation(
                source=Source.ORCHESTRATOR,
                event=Event.POD_LOG,
                at=at,
                subject=item["metadata"]["uid"],
                data={"pod": name, "tail": _tail(api, namespace, name)},
            )


def _listed(call: Callable[..., Any], namespace: str, **options: str) -> list[Any]:
    with suppress(Exception):
        response = call(
            namespace, _preload_content=False, _request_timeout=EVIDENCE_TIMEOUT, **options
        )
        items = json.loads(response.data)["items"]
        return items if isinstance(items, list) else []
    return []


def _tail(api: Api, namespace: str, pod: str) -> list[str]:
    try:
        response = api.core.read_namespaced_pod_log(
            pod,
            namespace,
            container=manifests.CONTAINER,
            tail_lines=20,
            limit_bytes=20 * LINE_LIMIT,
            _preload_content=False,
            _request_timeout=EVIDENCE_TIMEOUT,
        )
        return bytes(response.data).decode("utf-8", "replace").splitlines()
    except Exception as error:
        return [f"(no log: {explain(error)})"]
