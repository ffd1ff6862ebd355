"""To which pod a connection was led, of a workload that does not say who answers.

The slices tell, where the Service had a single endpoint from the connection's begin to the
trigger; conntrack tells, where the node was looked into just before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from pytest_drainwatch.core.endpoints import Snapshot
from pytest_drainwatch.core.mechanism.pods import Pods
from pytest_drainwatch.core.mechanism.snapshot import Look
from pytest_drainwatch.core.observation import Event, Observation


def only_endpoint(before: Sequence[Snapshot], opened_ns: int) -> str | None:
    """The one pod that was an endpoint from then on, if there was but one.

    ``before``: what the slices showed until the trigger.
    """
    earlier = [each for each in before if each.received_ns < opened_ns][-1:]
    since = [each for each in before if each.received_ns >= opened_ns]
    uids = {uid for each in (*earlier, *since) for uid in each.by_uid}
    return uids.pop() if earlier and len(uids) == 1 else None


def led_to(proto: str, local: str, look: Look | None, pods: Pods) -> str | None:
    """The pod to which conntrack led a connection from ``local`` (address:port).

    None: it is not told, or its address was that of several pods.
    """
    address, _, port = local.rpartition(":")
    if look is None or look.entries is None or not port.isdecimal():
        return None
    entry = look.entries.get((proto, address.strip("[]"), int(port)))
    led = pods.of(entry.to) if entry is not None else ()
    return led[0] if len(led) == 1 else None


def all_among(before: Sequence[Snapshot], targets: AbstractSet[str]) -> bool:
    """Whether every endpoint of just before the trigger is a target."""
    last = before[-1].by_uid if before else {}
    return bool(last) and last.keys() <= targets


def strangers(before: Sequence[Snapshot], seen: Iterable[Observation]) -> frozenset[str]:
    """The pods that were ready behind the Service just before the trigger and are not the
    workload's, of which every pod is watched.
    """
    last = before[-1].ready() if before else frozenset()
    return last - {o.subject for o in seen if o.event is Event.POD}
