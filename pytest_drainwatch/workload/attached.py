"""A workload that is there already: found and looked at, never changed.

Objects are read as they are and reduced at once (:mod:`.reduced`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.scenario import Controller, Workload
from pytest_drainwatch.workload.following import rule_of
from pytest_drainwatch.workload.reduced import (
    PodSpec,
    Port,
    ServiceFacts,
    pod_spec,
    selector_text,
    service_facts,
)

SHOWN = 10  # of what is there instead, in an error
ASK_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What the API server shows of a workload.

    ``kind`` is None for bare pods. ``there`` names what is there instead of a workload that is
    not. ``owners`` are the controllers of the selected pods, where labels were asked for.
    ``settled`` says why its pods are not all as its controller wants them; None: they are.
    """

    found: bool
    kind: Controller | None = None
    name: str = ""
    selector: str = ""
    rule: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str]
    replicas: int = 0
    unsettled: str | None = None
    spec: PodSpec | None = None
    owners: tuple[str, ...] = ()
    there: tuple[str, ...] = ()
    services: tuple[ServiceFacts, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A workload that can be attached to, the Service in front of it, and the port."""

    namespace: str
    kind: Controller | None
    name: str
    selector: str
    rule: Mapping[str, Any]
    replicas: int
    spec: PodSpec
    service: ServiceFacts
    port: Port

    @property
    def slices(self) -> str:
        """The selector of the Service's EndpointSlices."""
        return f"kubernetes.io/service-name={self.service.name}"

    def told(self) -> dict[str, object]:
        """As a recording holds it."""
        service = self.service
        return {
            "namespace": self.namespace,
            "kind": None if self.kind is None else str(self.kind),
            "name": self.name,
            "selector": self.selector,
            "replicas": self.replicas,
            "pod": self.spec.told(),
            "service": service.name,
            "service_type": service.kind,
            "port": self.port.number,
            "external_traffic_policy": service.external_traffic_policy,
            "session_affinity": service.session_affinity,
            "publish_not_ready_addresses": service.publish_not_ready,
        }


def look(api: Api, asked: Workload) -> Sight:
    """What is there of a workload. The API client's errors pass, but for 404."""
    return _by_name(api, asked) if asked.kind else _by_labels(api, asked)


class Settling:
    """Whether a workload's controller is done with its pods; asks once a second at most."""

    def __init__(self, api: Api, found: Found) -> None:
        self._api, self._found = api, found
        self._asked_s: float | None = None
        self._told: tuple[int, str | None] = (found.replicas, None)

    def look(self) -> tuple[int, str | None]:
        """How many pods it wants now, and in what they are not as it wants them."""
        kind, now_s = self._found.kind, time.monotonic()
        if kind is not None and (self._asked_s is None or now_s - self._asked_s >= ASK_S):
            self._asked_s = now_s
            item = _read(self._api, kind, self._found.namespace, self._found.name)
            gone = (0, "it is gone")
            self._told = gone if item is None else (_wanted(kind, item), _unsettled(kind, item))
        return self._told


def evidence(api: Api, found: Found, at: Interval) -> Iterator[Observation]:
    """What the cluster says of its pods when a trial is void: reasons, and no messages.

    Best effort: it must not hide the failure that made the trial void.
    """
    with suppress(Exception):
        pods = _list(api.core.list_namespaced_pod, found.namespace, found.selector)
        names = {str(pod["metadata"]["uid"]): str(pod["metadata"]["name"]) for pod in pods}
        for item in _list(api.core.list_namespaced_event, found.namespace, ""):
            uid = str((item.get("involvedObject") or {}).get("uid"))
            if uid in names:
                yield Observation(
                    source=Source.ORCHESTRATOR,
                    event=Event.CLUSTER_EVENT,
                    at=at,
                    subject=f"Pod/{names[uid]}",
                    data={key: item.get(key) for key in ("reason", "type", "count")},
                )


def _by_name(api: Api, asked: Workload) -> Sight:
    assert asked.kind is not None
    item = _read(api, asked.kind, asked.namespace, asked.name)
    if item is None:
        return Sight(found=False, labels={}, there=tuple(_others(api, asked.namespace)))
    return _sight(api, asked.namespace, asked.kind, item)


def _by_labels(api: Api, asked: Workload) -> Sight:
    pods = _list(api.core.list_namespaced_pod, asked.namespace, asked.labels)
    if not pods:
        return Sight(found=False, labels={}, there=tuple(_others(api, asked.namespace)))
    owners = sorted({_owner(api, asked.namespace, pod) for pod in pods})
    if len(owners) > 1:
        named = tuple(f"{kind or 'no controller'} {name}".strip() for kind, name in owners)
        return Sight(found=True, labels={}, owners=named)
    kind, name = owners[0]
    if kind:
        item = _read(api, Controller(kind), asked.namespace, name)
        if item is not None:
            return _sight(api, asked.namespace, Controller(kind), item)
    first = pods[0]
    return Sight(
        found=True,
        selector=asked.labels,
        rule=rule_of(asked.labels),
        labels=first["metadata"].get("labels") or {},
        replicas=len(pods),
        spec=pod_spec(first["spec"]),
        services=_services(api, asked.namespace),
    )


def _sight(api: Api, namespace: str, kind: Controller, item: Mapping[str, Any]) -> Sight:
    spec = item["spec"]
    template = spec["template"]
    return Sight(
        found=True,
        kind=kind,
        name=item["metadata"]["name"],
        selector=selector_text(spec["selector"]),
        rule=spec["selector"],
        labels=(template.get("metadata") or {}).get("labels") or {},
        replicas=_wanted(kind, item),
        unsettled=_unsettled(kind, item),
        spec=pod_spec(template["spec"]),
        services=_services(api, namespace),
    )


def _wanted(kind: Controller, item: Mapping[str, Any]) -> int:
    if kind is Controller.DAEMON_SET:
        return int((item.get("status") or {}).get("desiredNumberScheduled") or 0)
    asked = item["spec"].get("replicas")
    return 1 if asked is None else int(asked)


def _unsettled(kind: Controller, item: Mapping[str, Any]) -> str | None:
    """In what a controller's pods are not as it wants them."""
    status = item.get("status") or {}
    if (status.get("observedGeneration") or 0) < (item["metadata"].get("generation") or 0):
        return "its controller has not seen its latest change"
    wanted = _wanted(kind, item)
    daemon = kind is Controller.DAEMON_SET
    names = {
        "ready": "numberReady" if daemon else "readyReplicas",
        "up to date": "updatedNumberScheduled" if daemon else "updatedReplicas",
    }
    short = [
        f"{status.get(field) or 0} of {wanted} {word}"
        for word, field in names.items()
        if (status.get(field) or 0) != wanted
    ]
    there = status.get("currentNumberScheduled" if daemon else "replicas") or 0
    if there > wanted:
        short.append(f"{there - wanted} more than wanted")
    return ", ".join(short) or None


def _services(api: Api, namespace: str) -> tuple[ServiceFacts, ...]:
    return tuple(map(service_facts, _list(api.core.list_namespaced_service, namespace, "")))


def _owner(api: Api, namespace: str, pod: Mapping[str, Any]) -> tuple[str, str]:
    """The kind and name of the controller behind a pod; empty for a bare one."""
    kind, name = _controlled_by(pod)
    if kind == "ReplicaSet":
        item = _get(api.apps.read_namespaced_replica_set, name, namespace)
        kind, name = _controlled_by(item) if item is not None else ("", "")
    return (kind.lower(), name) if kind.lower() in set(Controller) else ("", "")


def _controlled_by(item: Mapping[str, Any]) -> tuple[str, str]:
    for owner in item["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner.get("kind")), str(owner.get("name"))
    return "", ""


def _others(api: Api, namespace: str) -> Iterable[str]:
    """What could be meant instead."""
    for kind, call in (
        (Controller.DEPLOYMENT, api.apps.list_namespaced_deployment),
        (Controller.STATEFUL_SET, api.apps.list_namespaced_stateful_set),
        (Controller.DAEMON_SET, api.apps.list_namespaced_daemon_set),
    ):
        for item in _list(call, namespace, "")[:SHOWN]:
            yield f"{kind}/{item['metadata']['name']}"


def _read(api: Api, kind: Controller, namespace: str, name: str) -> Mapping[str, Any] | None:
    call = {
        Controller.DEPLOYMENT: api.apps.read_namespaced_deployment,
        Controller.STATEFUL_SET: api.apps.read_namespaced_stateful_set,
        Controller.DAEMON_SET: api.apps.read_namespaced_daemon_set,
    }[kind]
    return _get(call, name, namespace)


def _get(call: Any, name: str, namespace: str) -> Mapping[str, Any] | None:
    from kubernetes.client.exceptions import NotFoundException

    try:
        response = call(name, namespace, _preload_content=False, _request_timeout=REQUEST_TIMEOUT)
    except NotFoundException:
        return None
    found: Mapping[str, Any] = json.loads(response.data)
    return found


def _list(call: Any, namespace: str, labels: str) -> list[Any]:
    response = call(
        namespace, label_selector=labels, _preload_content=False, _request_timeout=REQUEST_TIMEOUT
    )
    return list(json.loads(response.data).get("items") or ())
