"""kube-proxy: which pods new connections are led to, and when a UDP flow's path is dropped.

FACTS K2: Ready endpoints, else those that are serving and terminating, else none (REJECT).
K3: an entry of conntrack goes when its backend is not serving at a sync; with nobody serving
at all a NodePort's are left alone. K8: syncs are apart, counted from the end of the one before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.simulation.cluster import Endpoints, EndpointsChange

# Linux sends a host so many ICMP messages at once, and then one a second (FACTS K13).
ICMP_BURST, ICMP_PERIOD_NS = 6, 1_000_000_000


@dataclass(frozen=True, slots=True)
class Sync:
    """From ``at_ns`` on the rules are those for these endpoints."""

    at_ns: int
    endpoints: Endpoints


@dataclass(frozen=True, slots=True)
class DataPlane:
    """The rules of one node over time; the first are there from the beginning."""

    syncs: tuple[Sync, ...]
    conntrack_ns: int  # from a sync's rules to the end of its stale entries

    @classmethod
    def of(
        cls,
        changes: Sequence[EndpointsChange],
        *,
        sync_ns: int,
        conntrack_ns: int,
        min_period_ns: int,
    ) -> DataPlane:
        """What kube-proxy makes of changes; what was before the trigger had time to arrive."""
        before = [change for change in changes if change.at_ns < 0]
        syncs = [Sync(before[0].at_ns, before[-1].endpoints)] if before else []
        since, ended_ns = [change for change in changes if change.at_ns >= 0], -min_period_ns
        at = 0
        while at < len(since):
            begins_ns = max(since[at].at_ns, ended_ns + min_period_ns)
            while at < len(since) and since[at].at_ns <= begins_ns:
                at += 1
            syncs.append(Sync(begins_ns + sync_ns, since[at - 1].endpoints))
            # The cleanup is the last part of a sync (syncProxyRules).
            ended_ns = begins_ns + sync_ns + conntrack_ns
        return cls(tuple(syncs), conntrack_ns)

    def routable(self, at_ns: int) -> tuple[str, ...]:
        """The pods that a new connection may be led to; none: it is rejected."""
        known = bisect_right(self.syncs, at_ns, key=lambda sync: sync.at_ns)
        endpoints = self.syncs[max(0, known - 1)].endpoints if self.syncs else {}
        ready = tuple(uid for uid, each in endpoints.items() if each.ready)
        return ready or tuple(
            uid for uid, each in endpoints.items() if each.serving and each.terminating
        )

    def chosen(self, at_ns: int, number: int) -> str | None:
        """Whom connection ``number`` is led to: in turns, where kube-proxy draws lots."""
        found = self.routable(at_ns)
        return found[number % len(found)] if found else None

    def dropped_ns(self, uid: str, since_ns: int) -> int | None:
        """When UDP flows to this pod are led anew, after ``since_ns``; None: never."""
        for sync in self.syncs:
            if sync.at_ns + self.conntrack_ns <= since_ns:
                continue
            mine = sync.endpoints.get(uid)
            anybody = any(each.serving for each in sync.endpoints.values())
            if anybody and not (mine and mine.serving):
                return sync.at_ns + self.conntrack_ns
        return None


def told(asked_ns: Iterable[int]) -> list[bool]:
    """Which of these refusals, in order of time, one host is told of by ICMP."""
    found: list[bool] = []
    full_ns = ICMP_BURST * ICMP_PERIOD_NS
    tokens_ns, last_ns = full_ns, None
    for at_ns in asked_ns:
        if last_ns is not None:
            tokens_ns = min(full_ns, tokens_ns + at_ns - last_ns)
        last_ns = at_ns
        found.append(tokens_ns >= ICMP_PERIOD_NS)
        tokens_ns -= ICMP_PERIOD_NS * found[-1]
    return found
