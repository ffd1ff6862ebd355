"""List and watch Pods and EndpointSlices as time-stamped frames.

list -> watch from that version -> bookmarks move the version -> 410 or an end of
stream -> list again. A frame is stamped on arrival, before it is parsed, and
reduced to named fields: whole objects carry secrets. A stretch in which nothing
could be seen is recorded as a gap, never papered over.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api, explain, failures
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source

Record = Callable[[Observation], None]
Fields = dict[str, object]
RELIST_PAUSE_S = 0.2


@dataclass(slots=True)
class Sight:
    """What one watch shows right now; guarded by the Watch's condition."""

    objects: dict[str, Fields] = field(default_factory=dict)
    frames: int = 0
    listed: bool = False


class Watch:
    """Two watches in threads of their own, one recorder. Use as a context manager."""

    def __init__(self, api: Api, namespace: str, *, pods: str, slices: str, record: Record) -> None:
        self._record = record
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._sights = {"pods": Sight(), "endpointslices": Sight()}
        self._responses: dict[str, Any] = {}
        self.problem: str | None = None
        core, discovery = api.core, api.discovery
        self._threads = [
            threading.Thread(target=self._run, args=arguments, daemon=True, name=arguments[0])
            for arguments in (
                ("pods", core.list_namespaced_pod, namespace, pods, Event.POD),
                (
                    "endpointslices",
                    discovery.list_namespaced_endpoint_slice,
                    namespace,
                    slices,
                    Event.ENDPOINT_SLICE,
                ),
            )
        ]

    def __enter__(self) -> Watch:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for response in list(self._responses.values()):
            # Closing would wait for the reader; shutting the socket down wakes it.
            with suppress(Exception):
                response.connection.sock.shutdown(2)
        for thread in self._threads:
            thread.join(2.0)

    def pods(self) -> dict[str, Fields]:
        """The pods seen now, by UID."""
        with self._changed:
            return dict(self._sights["pods"].objects)

    def slices(self) -> dict[str, Fields]:
        """The EndpointSlices seen now, by name."""
        with self._changed:
            return dict(self._sights["endpointslices"].objects)

    def endpoint_uids(self) -> set[str]:
        """The pods that any slice lists now, by UID."""
        with self._changed:
            slices = list(self._sights["endpointslices"].objects.values())
        return {
            str(endpoint["uid"])
            for item in slices
            for endpoint in item["endpoints"]  # type: ignore[attr-defined]
        }

    def delivering(self) -> dict[str, bool]:
        """Whether each watch has listed and shown at least one object."""
        with self._changed:
            return {name: s.listed and s.frames > 0 for name, s in self._sights.items()}

    def wait_changed(self, timeout_s: float) -> None:
        """Return when something was seen, or after ``timeout_s``."""
        with self._changed:
            self._changed.wait(timeout_s)

    def _run(self, name: str, call: Any, namespace: str, selector: str, event: Event) -> None:
        last_ns = time.monotonic_ns()
        gap: str | None = None
        while not self._stop.is_set():
            try:
                version = self._list(name, call, namespace, selector, event)
                if gap is not None:
                    self._note_gap(name, gap, last_ns)
                for last_ns, line in self._frames(name, call, namespace, selector, version):
                    self._frame(name, event, line, last_ns)
                gap = "the stream ended"
            except _Expired:
                gap = "410 Gone"
            except failures() as error:
                gap = self.problem = explain(error)
            except (ValueError, AttributeError) as error:
                # urllib3 raises these from a response whose socket we shut down.
                gap = repr(error)
            self._stop.wait(RELIST_PAUSE_S)

    def _list(self, name: str, call: Any, namespace: str, selector: str, event: Event) -> str:
        sent = time.monotonic_ns()
        response = call(
            namespace,
            label_selector=selector,
            _preload_content=False,
            _request_timeout=REQUEST_TIMEOUT,
        )
        raw = response.data
        at = Interval(sent, time.monotonic_ns())
        response.release_conn()
        listing = json.loads(raw)
        version = str(listing["metadata"]["resourceVersion"])
        reduced = [reduce_object(event, item, "LISTED") for item in listing.get("items") or ()]
        subjects = [subject for subject, _ in reduced]
        self.problem = None
        data = {"resource": name, "subjects": subjects, "resource_version": version}
        self._record(Observation(source=Source.K8S, event=Event.WATCH_LISTED, at=at, data=data))
        for subject, fields in reduced:
            self._record(
                Observation(source=Source.K8S, event=event, at=at, subject=subject, data=fields)
            )
        with self._changed:
            sight = self._sights[name]
            sight.objects = dict(reduced)
            sight.frames += len(reduced)
            sight.listed = True
            self._changed.notify_all()
        return version

    def _frames(
        self, name: str, call: Any, namespace: str, selector: str, version: str
    ) -> Iterator[tuple[int, bytes]]:
        response = call(
            namespace,
            label_selector=selector,
            resource_version=version,
            watch=True,
            allow_watch_bookmarks=True,
            _preload_content=False,
        )
        self._responses[name] = response
        rest = b""
        for chunk in response.stream(decode_content=False):
            received = time.monotonic_ns()
            *complete, rest = (rest + chunk).split(b"\n")
            for line in complete:
                yield received, line
            if self._stop.is_set():
                return

    def _frame(self, name: str, event: Event, line: bytes, received_ns: int) -> None:
        frame = json.loads(line)
        kind, item = frame["type"], frame["object"]
        if kind == "ERROR":
            if item.get("code") == 410:
                raise _Expired
            raise ValueError(f"watch error: {item.get('message')}")
        if kind == "BOOKMARK":
            return
        subject, fields = reduce_object(event, item, kind)
        self._record(
            Observation(
                source=Source.K8S,
                event=event,
                at=Interval.point(received_ns),
                subject=subject,
                data=fields,
            )
        )
        with self._changed:
            sight = self._sights[name]
            sight.frames += 1
            if kind == "DELETED":
                sight.objects.pop(subject, None)
            else:
                sight.objects[subject] = fields
            self._changed.notify_all()

    def _note_gap(self, name: str, reason: str, last_ns: int) -> None:
        self._record(
            Observation(
                source=Source.K8S,
                event=Event.WATCH_GAP,
                at=Interval(last_ns, time.monotonic_ns()),
                data={"resource": name, "reason": reason},
            )
        )


class _Expired(Exception):
    """410: the version that we watched from is gone."""


def reduce_object(event: Event, item: Mapping[str, Any], kind: str) -> tuple[str, Fields]:
    """An API object's subject and the fields that we name; everything else is dropped."""
    metadata = item["metadata"]
    common: Fields = {
        "type": kind,
        "name": metadata.get("name"),
        "resource_version": metadata.get("resourceVersion"),
    }
    if event is Event.POD:
        return metadata["uid"], common | _pod_fields(item)
    endpoints = [_endpoint(e) for e in item.get("endpoints") or ()]
    return metadata["name"], common | {"family": item.get("addressType"), "endpoints": endpoints}


def _pod_fields(item: Mapping[str, Any]) -> Fields:
    metadata, status = item["metadata"], item.get("status") or {}
    conditions = {c.get("type"): c.get("status") for c in status.get("conditions") or ()}
    ready = conditions.get("Ready")
    return {
        "phase": status.get("phase"),
        "ready": None if ready is None else ready == "True",
        "reason": status.get("reason"),
        "node": (item.get("spec") or {}).get("nodeName"),
        "deletion_timestamp": metadata.get("deletionTimestamp"),
        "deletion_grace_period_s": metadata.get("deletionGracePeriodSeconds"),
        "containers": [_container(c) for c in status.get("containerStatuses") or ()],
    }


def _container(status: Mapping[str, Any]) -> Fields:
    state = status.get("state") or {}
    name = next(iter(state), None)
    inner = state.get(name) or {} if name else {}
    return {
        "name": status.get("name"),
        "ready": status.get("ready"),
        "restarts": status.get("restartCount"),
        "state": name,
        "exit_code": inner.get("exitCode"),
        "signal": inner.get("signal"),
        "reason": inner.get("reason"),
    }


def _endpoint(endpoint: Mapping[str, Any]) -> Fields:
    conditions = endpoint.get("conditions") or {}
    target = endpoint.get("targetRef") or {}
    return {
        "uid": target.get("uid"),
        "name": target.get("name"),
        "addresses": endpoint.get("addresses"),
        "ready": conditions.get("ready"),
        "serving": conditions.get("serving"),
        "terminating": conditions.get("terminating"),
    }
