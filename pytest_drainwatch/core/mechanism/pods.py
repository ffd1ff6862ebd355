"""Whose an address is, and until when its pod lived, as far as the recording tells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.blind import hides_slices
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.jsonvalue import objects, texts
from pytest_drainwatch.core.life_signs import life_sign
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.transitions import POD_OBJECT_DELETED, Transition


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """Pods by address, what was last seen alive of each, and when each was seen to have ended.

    An address is handed out again, so it may have been that of several pods. ``all_seen``:
    slices were watched without a gap, so an address that is not here was no endpoint's.
    """

    uids_by_address: dict[str, tuple[str, ...]]
    alive_ns: dict[str, int]
    ended_ns: dict[str, int]
    all_seen: bool

    def of(self, address: str) -> tuple[str, ...]:
        """The pods that had the address, in the order in which they were seen."""
        return self.uids_by_address.get(address, ())

    def dead(self, uid: str, at: Interval) -> bool | None:
        """Whether the pod had ended at ``at``. None: nothing shows it, neither way."""
        alive_ns, ended_ns = self.alive_ns.get(uid), self.ended_ns.get(uid)
        if alive_ns is not None and alive_ns >= at.hi:
            return False
        return True if ended_ns is not None and ended_ns <= at.lo else None


def pods_of(seen: Sequence[Observation], changes: Iterable[Transition]) -> Pods:
    """What API frames and answers say of the pods."""
    addresses: dict[str, dict[str, None]] = {}
    alive: dict[str, int] = {}
    ended: dict[str, int] = {}
    for o in seen:
        if o.event is Event.ENDPOINT_SLICE:
            for endpoint in objects(o.data.get("endpoints")):
                for address in texts(endpoint.get("addresses")):
                    if endpoint.get("uid"):
                        addresses.setdefault(address, {})[str(endpoint["uid"])] = None
        elif (sign := life_sign(o)) is not None:
            uid, sent_ns = sign
            alive[uid] = max(alive.get(uid, 0), sent_ns)
        elif o.event is Event.POD and _ended(o):
            ended.setdefault(o.subject, o.at.hi)
    for change in changes:
        if change.event == POD_OBJECT_DELETED:
            ended[change.uid] = min(ended.get(change.uid, change.received_ns), change.received_ns)
    return Pods(
        uids_by_address={address: tuple(uids) for address, uids in addresses.items()},
        alive_ns=alive,
        ended_ns=ended,
        all_seen=any(o.event is Event.ENDPOINT_SLICE for o in seen)
        and not any(hides_slices(o) for o in seen),
    )


def _ended(frame: Observation) -> bool:
    """Whether a frame shows a pod that ends for good: one that is not deleted may restart."""
    containers = objects(frame.data.get("containers"))
    return bool(
        frame.data.get("deletion_timestamp")
        and containers
        and all(container.get("state") == "terminated" for container in containers)
    )
