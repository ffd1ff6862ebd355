"""Putting the probe into a namespace, and getting its evidence out again."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api, explain
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.scenario import Access, Controller, Scenario
from pytest_drainwatch.workload import manifests
from pytest_drainwatch.workload.logs import LINE_LIMIT
from pytest_drainwatch.workload.namespace import owner
from pytest_drainwatch.workload.place import Place

EVENT_LIMIT = 500
# The kubelet posts its events one after the other, a moment after what they tell of.
EVENTS_TIMEOUT_S = 3.0
EVENTS_PAUSE_S = 0.3
MESSAGE_LIMIT = 200
KILLING = "Killing"
_CONTAINER = re.compile(r"spec\.containers\{(.+)\}")
# A void trial's API server may be the one that does not answer.
EVIDENCE_TIMEOUT = (2.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Where the probe's Service answers: inside the cluster at ``address``, or outside of it.

    ``health`` is its healthCheckNodePort; None: it has none.
    """

    address: str | None
    tcp: int
    udp: int
    health: int | None = None


def apply(api: Api, place: Place, scenario: Scenario, image: str) -> Ports:
    """Create the Service and the pods' controller; returns what the API server gave them."""
    namespace, who = place.namespace, owner()
    service = place.placed(manifests.service(scenario.service), who)
    created = api.core.create_namespaced_service(
        namespace, service, _request_timeout=REQUEST_TIMEOUT
    )
    create = {
        Controller.DEPLOYMENT: api.apps.create_namespaced_deployment,
        Controller.STATEFUL_SET: api.apps.create_namespaced_stateful_set,
        Controller.DAEMON_SET: api.apps.create_namespaced_daemon_set,
    }[scenario.app.controller]
    workload = place.placed(manifests.workload(scenario.app, image), who)
    create(namespace, workload, _request_timeout=REQUEST_TIMEOUT)
    if scenario.service.access is Access.NODE_PORT:
        ports = {port.name: port.node_port for port in created.spec.ports}
        health = created.spec.health_check_node_port or None
        return Ports(address=None, tcp=ports["tcp"], udp=ports["udp"], health=health)
    inside = scenario.service.access is Access.CLUSTER_IP
    ports = {port.name: port.port for port in created.spec.ports}
    address = created.spec.cluster_ip if inside else None
    return Ports(address=address, tcp=ports["tcp"], udp=ports["udp"])


def record_events(
    api: Api,
    namespace: str,
    ended: Collection[str],
    record: Callable[[Observation], None],
    *,
    unheard: str | None = None,
    uids: Collection[str] | None = None,
    quote: bool = True,
) -> None:
    """Record what the cluster says about the probe's pods, and that it was asked.

    Only the kubelet tells of a preStop hook that failed, and only here. It tells first
    that it ends a container, so that is waited for, for every pod in ``ended``. That
    it could not be asked is an observation, and no reason to void a trial. ``unheard``
    says why the cluster could tell nothing, where that is so: then nothing is awaited.
    ``uids`` are the pods to record events of, where others live in the namespace too. Unless
    told to ``quote`` messages only that of a container's end is kept: others may hold what a
    command was called with, or said.
    """
    deadline = time.monotonic() + EVENTS_TIMEOUT_S
    while True:
        sent = time.monotonic_ns()
        items, problem = _pod_events(api, namespace)
        at = Interval(sent, time.monotonic_ns())
        read = [_cluster_event(item, at) for item in items]
        seen = [o for o in read if o is not None and (uids is None or o.subject in uids)]
        told = {o.subject for o in seen if o.data["reason"] == KILLING}
        if problem or unheard or told >= set(ended) or time.monotonic() > deadline:
            break
        time.sleep(EVENTS_PAUSE_S)
    for observation in seen:
        record(observation if quote else _unquoted(observation))
    odd = read.count(None)
    unread = f"{odd} of {len(read)} events are in no form that is known: they were not read"
    problems = [text for text in (problem, unread if odd else None, unheard) if text]
    record(
        Observation(
            source=Source.ORCHESTRATOR,
            event=Event.CLUSTER_EVENTS_READ,
            at=at,
            data={"count": len(seen), "problem": "; ".join(problems) or None},
        )
    )


def _unquoted(seen: Observation) -> Observation:
    keeps = seen.data.get("reason") == KILLING
    return seen if keeps else replace(seen, data={**seen.data, "message": None})


def _pod_events(api: Api, namespace: str) -> tuple[list[object], str | None]:
    """The events about pods, and why they are not all there."""
    try:
        response = api.core.list_namespaced_event(
            namespace,
            field_selector="involvedObject.kind=Pod",
            limit=EVENT_LIMIT,
            _preload_content=False,
            _request_timeout=EVIDENCE_TIMEOUT,
        )
        found = json.loads(response.data)
        items: list[object] = list(found["items"])
        more = (found.get("metadata") or {}).get("continue")
    except Exception as error:
        return [], explain(error)
    return items, f"more than {EVENT_LIMIT}: the others were not read" if more else None


def _cluster_event(item: object, at: Interval) -> Observation | None:
    """The event; None for what is none."""
    if not isinstance(item, dict):
        return None
    about = item.get("involvedObject") or {}
    if not isinstance(about, dict):
        return None
    container = _CONTAINER.fullmatch(str(about.get("fieldPath")))
    stamp = item.get("eventTime")
    return Observation(
        source=Source.ORCHESTRATOR,
        event=Event.CLUSTER_EVENT,
        at=at,
        subject=str(about.get("uid")),
        data={
            "reason": item.get("reason"),
            "type": item.get("type"),
            "message": str(item.get("message") or "")[:MESSAGE_LIMIT],
            "count": item.get("count"),
            "container": container[1] if container else None,
            "first": item.get("firstTimestamp") or stamp,
            "last": item.get("lastTimestamp") or stamp,
        },
    )


def evidence(api: Api, place: Place, at: Interval) -> Iterator[Observation]:
    """What a person would look at when a trial is void: events, and the pods' last lines.

    Best effort, item by item: it must not hide the failure that made the trial void.
    The answers are read as they are, since one odd object spoils a whole typed list.
    """
    namespace = place.namespace
    for item in _listed(api.core.list_namespaced_event, namespace):
        with suppress(Exception):
            about = item.get("involvedObject") or {}
            if not place.own and not str(about.get("name")).startswith(place.probe):
                continue  # somebody else's
            yield Observation(
                source=Source.ORCHESTRATOR,
                event=Event.CLUSTER_EVENT,
                at=at,
                subject=f"{about.get('kind')}/{about.get('name')}",
                data={key: item.get(key) for key in ("reason", "type", "message", "count")},
            )
    for item in _listed(api.core.list_namespaced_pod, namespace, label_selector=place.pods):
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
