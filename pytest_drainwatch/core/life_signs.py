"""Who answers a request was alive when it was sent: on a flow, or a new connection."""

from __future__ import annotations

from pytest_drainwatch.core.jsonvalue import integer, text
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.result import Result


def life_sign(seen: Observation) -> tuple[str, int] | None:
    """The pod that gave these answers, and when the last request that it answered was sent."""
    if seen.event is Event.FLOW_ANSWERED:
        sent_ns = integer(seen.data.get("last_sent_ns"), seen.at.lo)
    elif seen.event is Event.NEW_CONNECTIONS and seen.data.get("result") == Result.ANSWERED:
        sent_ns = integer(seen.data.get("last_ns"), seen.at.lo)
    else:
        return None
    uid = text(seen.data.get("responder")).partition("/")[0]
    return (uid, sent_ns) if uid else None
