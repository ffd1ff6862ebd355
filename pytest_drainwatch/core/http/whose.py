"""To which pod a pooled connection leads: a connection stays with whom it was led to.

In this order: the pod that an identity header names, if that is the same for all of its requests
(a proxy picks a pod for each); the only endpoint that there was from its begin to the trigger; the
pod to which the node's conntrack led it just before the trigger. Where none of these tells and
every endpoint was a target, its role is known and its pod is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pytest_drainwatch.core.endpoints import snapshots
from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.http.pieces import Around
from pytest_drainwatch.core.http.recorded import Connection
from pytest_drainwatch.core.leading import all_among, led_to, only_endpoint
from pytest_drainwatch.core.mechanism.occasion import Occasion
from pytest_drainwatch.core.mechanism.pods import pods_of
from pytest_drainwatch.core.mechanism.snapshot import looks_of
from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.core.transitions import Transition


class KnownBy(StrEnum):
    """What tells to whom a connection leads."""

    HEADER = "identity-header"
    ONLY_ENDPOINT = "only-endpoint"
    CONNTRACK = "conntrack"
    ALL_TARGETS = "all-endpoints-were-targets"  # its role alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """A connection's pod and role, as far as they are known."""

    uid: str | None = None
    role: Role | None = None
    by: KnownBy | None = None


class Leads:
    """What a recording tells of where connections led at t = 0."""

    def __init__(
        self, seen: Sequence[Observation], changes: Sequence[Transition], around: Around
    ) -> None:
        self._around = around
        self._before = [each for each in snapshots(seen) if each.received_ns < around.t0_ns]
        looks = looks_of(seen)
        self._look = next((one for one in looks if one.occasion is Occasion.TRIGGER), None)
        self._pods = pods_of(seen, changes)

    def whose(self, one: Connection, responders: Sequence[str]) -> Whose:
        """Whose a connection is that was open at t = 0 and on which these answered."""
        around = self._around
        named = [uid for by in responders if (uid := around.pod_before(by)) is not None]
        if named and len(responders) > 1:
            return Whose()  # a proxy's, before the pods: where it led at t = 0 is not told
        for by, uid in (
            (KnownBy.HEADER, named[0] if named else None),
            (KnownBy.ONLY_ENDPOINT, only_endpoint(self._before, one.opened_ns)),
            (KnownBy.CONNTRACK, led_to("tcp", one.local, self._look, self._pods)),
        ):
            if uid is not None:
                return Whose(uid=uid, role=around.role_of(uid), by=by)
        if all_among(self._before, around.targets):
            return Whose(role=Role.TARGET, by=KnownBy.ALL_TARGETS)
        return Whose()
