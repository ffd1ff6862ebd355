"""Putting the probe into a namespace, and getting its evidence out again."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api, explain, failures
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.scenario import App
from pytest_drainwatch.workload import manifests

Record = Callable[[Observation], None]
_PROBE_EVENTS = {str(event): event for event in Event}


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


class LogFollower:
    """Follows one pod's lifecycle log; a deleted pod's log cannot be read afterwards."""

    def __init__(self, api: Api, namespace: str, pod: str, uid: str, record: Record) -> None:
        self._api, self._namespace, self._pod, self._uid = api, namespace, pod, uid
        self._record = record
        self.problem: str | None = None
        self._thread = threading.Thread(target=self._follow, name=f"log-{pod}", daemon=True)
        self._thread.start()

    def join(self, timeout_s: float) -> bool:
        """Wait for the end of the log; False if it is still open."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _follow(self) -> None:
        try:
            response = self._api.core.read_namespaced_pod_log(
                self._pod,
                self._namespace,
                container=manifests.CONTAINER,
                follow=True,
                _preload_content=False,
            )
            for line in _lines(response):
                seen = parse_log_line(line, self._uid)
                if seen is not None:
                    self._record(seen)
        except failures() as error:
            self.problem = explain(error)


def parse_log_line(line: str, uid: str) -> Observation | None:
    """A lifecycle line as an observation on the probe's clock; None for anything else."""
    try:
        raw = json.loads(line)
        at = Interval.point(raw["mono_ns"])
        event = _PROBE_EVENTS[raw["event"]]
        clock = str(raw["clock"])
    except (ValueError, KeyError, TypeError):
        return None
    known = {"event", "mono_ns", "clock", "pod_uid"}
    data = {key: value for key, value in raw.items() if key not in known}
    return Observation(source=Source.PROBE, event=event, at=at, subject=uid, clock=clock, data=data)


def evidence(api: Api, namespace: str, at: Interval) -> Iterator[Observation]:
    """What a person would look at when a trial is void: events, and the pods' last lines.

    Best effort: it must not hide the failure that made the trial void.
    """
    with suppress(*failures()):
        events = api.core.list_namespaced_event(namespace, _request_timeout=REQUEST_TIMEOUT)
        for item in events.items:
            about = item.involved_object
            yield Observation(
                source=Source.ORCHESTRATOR,
                event=Event.CLUSTER_EVENT,
                at=at,
                subject=f"{about.kind}/{about.name}",
                data={
                    "reason": item.reason,
                    "type": item.type,
                    "message": item.message,
                    "count": item.count,
                },
            )
    with suppress(*failures()):
        pods = api.core.list_namespaced_pod(
            namespace, label_selector=manifests.POD_SELECTOR, _request_timeout=REQUEST_TIMEOUT
        )
        for pod in pods.items:
            yield Observation(
                source=Source.ORCHESTRATOR,
                event=Event.POD_LOG,
                at=at,
                subject=pod.metadata.uid,
                data={"pod": pod.metadata.name, "tail": _tail(api, namespace, pod.metadata.name)},
            )


def _tail(api: Api, namespace: str, pod: str) -> list[str]:
    try:
        text = api.core.read_namespaced_pod_log(
            pod,
            namespace,
            container=manifests.CONTAINER,
            tail_lines=20,
            _request_timeout=REQUEST_TIMEOUT,
        )
    except failures() as error:
        return [f"(no log: {explain(error)})"]
    return str(text).splitlines()


def _lines(response: object) -> Iterator[str]:
    rest = b""
    for chunk in response.stream(decode_content=False):  # type: ignore[attr-defined]
        *complete, rest = (rest + chunk).split(b"\n")
        for line in complete:
            yield line.decode("utf-8", "replace")
