"""The endpoints of the Service as the API server showed them, over all of its slices.

A dual-stack Service has slices for each address family, and a pod an entry in each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pytest_drainwatch.core.jsonvalue import objects, text, texts
from pytest_drainwatch.core.observation import Event, Observation

Endpoint = Mapping[str, object]


@dataclass(slots=True)
class Slices:
    """The slices as the last frame of each left them."""

    _shown: dict[str, dict[str, Endpoint]] = field(default_factory=dict)
    _families: dict[str, str] = field(default_factory=dict)

    def frame(self, seen: Observation) -> None:
        """One slice was shown, or that it is gone."""
        listed = [] if seen.data.get("type") == "DELETED" else objects(seen.data.get("endpoints"))
        self._shown[seen.subject] = {str(e.get("uid")): e for e in listed}
        family = text(seen.data.get("family"))
        if family:
            self._families[seen.subject] = family

    def absent(self, listed: Observation) -> list[str]:
        """Those that a list of all slices does not name any more."""
        return sorted(self._shown.keys() - set(texts(listed.data.get("subjects"))))

    def by_uid(self) -> dict[str, list[Endpoint]]:
        """The entries of each pod, over all slices."""
        found: dict[str, list[Endpoint]] = {}
        for endpoints in self._shown.values():
            for uid, endpoint in endpoints.items():
                found.setdefault(uid, []).append(endpoint)
        return found

    def families_of(self, uid: str) -> frozenset[str]:
        """The address families in which a pod is listed; those that are named."""
        return frozenset(
            self._families[name]
            for name, endpoints in self._shown.items()
            if uid in endpoints and name in self._families
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All endpoints after a frame was received."""

    received_ns: int
    by_uid: Mapping[str, list[Endpoint]]
    families: Mapping[str, frozenset[str]]

    def has(self, uid: str, condition: str) -> bool:
        """Whether an entry of the pod has this condition: the last family decides."""
        return any(endpoint.get(condition) is True for endpoint in self.by_uid.get(uid, ()))

    def ready(self, node: str | None = None) -> frozenset[str]:
        """The pods that are ready; those on ``node`` alone, if one is named."""
        return frozenset(
            uid
            for uid in self.by_uid
            if self.has(uid, "ready") and (node is None or self.node(uid) == node)
        )

    def node(self, uid: str) -> str | None:
        """The name of the node on which a pod is; None: its entries do not say."""
        return next(
            (name for endpoint in self.by_uid.get(uid, ()) if (name := text(endpoint.get("node")))),
            None,
        )


def snapshots(seen: Iterable[Observation]) -> Iterator[Snapshot]:
    """One after each frame of a slice, and after each list that lacks one."""
    slices = Slices()
    for o in seen:
        if o.event is Event.ENDPOINT_SLICE:
            slices.frame(o)
        elif o.event is Event.WATCH_LISTED and o.data.get("resource") == "endpointslices":
            gone = slices.absent(o)
            if not gone:
                continue
            for name in gone:
                slices.frame(deleted(o, name))
        else:
            continue
        found = slices.by_uid()
        yield Snapshot(o.at.hi, found, {uid: slices.families_of(uid) for uid in found})


def deleted(listed: Observation, name: str) -> Observation:
    """The frame that a list stands for which lacks the slice ``name``."""
    return Observation(
        source=listed.source,
        event=Event.ENDPOINT_SLICE,
        at=listed.at,
        subject=name,
        data={"type": "DELETED"},
    )
