"""What the API server's frames say changed: frames in, transitions out.

A frame is a snapshot. A change lies before the receipt of the first frame that
shows it, and after what must have preceded it, which :mod:`derive` knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pytest_drainwatch.core.endpoints import Slices, deleted
from pytest_drainwatch.core.jsonvalue import integer, objects
from pytest_drainwatch.core.observation import Event, Observation

POD_OBSERVED = "pod_observed"
POD_DELETION_TIMESTAMP_SET = "pod_deletion_timestamp_set"
POD_READY_TRUE = "pod_ready_true"
POD_READY_FALSE = "pod_ready_false"
CONTAINER_TERMINATED = "container_terminated"
CONTAINER_RESTARTED = "container_restarted"
POD_OBJECT_DELETED = "pod_object_deleted"
ENDPOINT_READY_TRUE = "endpointslice_ready_true"
ENDPOINT_READY_FALSE = "endpointslice_ready_false"
ENDPOINT_SERVING_TRUE = "endpointslice_serving_true"
ENDPOINT_SERVING_FALSE = "endpointslice_serving_false"
ENDPOINT_TERMINATING = "endpointslice_terminating"
ENDPOINT_REMOVED = "endpointslice_endpoint_removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One change of one pod or of its endpoint; ``uid`` is the pod's."""

    event: str
    uid: str
    name: str
    received_ns: int
    detail: str
    fields: Mapping[str, object]


def transitions(seen: Iterable[Observation]) -> Iterator[Transition]:
    """Every change, in the order in which frames were received."""
    pods = _Pods()
    slices = _Slices()
    for observation in seen:
        if observation.event is Event.POD:
            yield from pods.frame(observation)
        elif observation.event is Event.ENDPOINT_SLICE:
            yield from slices.frame(observation)
        elif observation.event is Event.WATCH_LISTED:
            # What vanished while nobody watched shows only by its absence from the list.
            yield from (pods if observation.data.get("resource") == "pods" else slices).listed(
                observation
            )


class _Pods:
    def __init__(self) -> None:
        self._known: dict[str, Mapping[str, object]] = {}

    def frame(self, seen: Observation) -> Iterator[Transition]:
        uid, new = seen.subject, seen.data
        old = self._known.get(uid)
        name = str(new.get("name", ""))

        def change(event: str, detail: str, fields: Mapping[str, object] = new) -> Transition:
            return Transition(
                event=event,
                uid=uid,
                name=name,
                received_ns=seen.at.hi,
                detail=f"{name} {detail}".rstrip(),
                fields=fields,
            )

        if old is None:
            yield change(POD_OBSERVED, f"phase={new.get('phase')}")
        old = old or {}
        if new.get("deletion_timestamp") and not old.get("deletion_timestamp"):
            grace = new.get("deletion_grace_period_s")
            yield change(POD_DELETION_TIMESTAMP_SET, f"deletionGracePeriodSeconds={grace}")
        if new.get("ready") is True and old.get("ready") is not True:
            yield change(POD_READY_TRUE, "")
        if old.get("ready") is True and new.get("ready") is not True:
            yield change(POD_READY_FALSE, "")
        before = {str(c.get("name")): c for c in objects(old.get("containers"))}
        for container in objects(new.get("containers")):
            was = before.get(str(container.get("name")), {})
            if container.get("state") == "terminated" and was.get("state") != "terminated":
                text = (
                    f"{container.get('name')} exitCode={container.get('exit_code')} "
                    f"signal={container.get('signal')} reason={container.get('reason')}"
                )
                yield change(CONTAINER_TERMINATED, text, container)
            # Restarts that the first frame counts were before anybody looked.
            if old and integer(container.get("restarts")) > integer(was.get("restarts")):
                text = f"{container.get('name')} restarts={container.get('restarts')}"
                yield change(CONTAINER_RESTARTED, text, container)
        if new.get("type") == "DELETED":
            yield change(POD_OBJECT_DELETED, "")
            self._known.pop(uid, None)
        else:
            self._known[uid] = new

    def listed(self, seen: Observation) -> Iterator[Transition]:
        for uid in sorted(self._known.keys() - _names(seen)):
            gone = {**self._known[uid], "type": "DELETED"}
            yield from self.frame(replace(seen, event=Event.POD, subject=uid, data=gone))


class _Slices:
    """Endpoints by pod UID over all slices: dual-stack Services have several."""

    def __init__(self) -> None:
        self._slices = Slices()

    def frame(self, seen: Observation) -> Iterator[Transition]:
        old_all = self._slices.by_uid()
        self._slices.frame(seen)
        new_all = self._slices.by_uid()
        for uid in sorted(old_all.keys() | new_all.keys()):
            before, after = old_all.get(uid, []), new_all.get(uid, [])
            pod = str((after or before)[0].get("name", ""))
            for event in _endpoint_events(before, after):
                yield Transition(
                    event=event,
                    uid=uid,
                    name=pod,
                    received_ns=seen.at.hi,
                    detail=f"{pod} in {seen.subject}" + _conditions(after),
                    fields=after[0] if after else {},
                )

    def listed(self, seen: Observation) -> Iterator[Transition]:
        for name in self._slices.absent(seen):
            yield from self.frame(deleted(seen, name))


def _endpoint_events(
    before: list[Mapping[str, object]], after: list[Mapping[str, object]]
) -> Iterator[str]:
    """An address family that still has a condition keeps it: the last one decides."""

    def has(endpoints: list[Mapping[str, object]], name: str) -> bool:
        return any(endpoint.get(name) is True for endpoint in endpoints)

    if before and not after:
        yield ENDPOINT_REMOVED
        return
    if has(after, "terminating") and not has(before, "terminating"):
        yield ENDPOINT_TERMINATING
    for name, became_true, became_false in (
        ("ready", ENDPOINT_READY_TRUE, ENDPOINT_READY_FALSE),
        ("serving", ENDPOINT_SERVING_TRUE, ENDPOINT_SERVING_FALSE),
    ):
        if has(after, name) and not has(before, name):
            yield became_true
        elif has(before, name) and not has(after, name):
            yield became_false


def _conditions(after: list[Mapping[str, object]]) -> str:
    if not after:
        return ""
    names = ("ready", "serving", "terminating")
    return " " + " ".join(f"{name}={_lower(after[0].get(name))}" for name in names)


def _lower(value: object) -> str:
    return str(value).lower()


def _names(seen: Observation) -> set[str]:
    listed = seen.data.get("subjects")
    return {str(name) for name in listed} if isinstance(listed, list) else set()
