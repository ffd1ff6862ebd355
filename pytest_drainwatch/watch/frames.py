"""API objects reduced to the fields that a recording names (pure).

Whole objects carry secrets, and a recording must stay small: everything that is
not named here is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_drainwatch.core.observation import Event

Fields = dict[str, object]

# A kubelet's reason for ending a pod is a sentence or two.
MESSAGE_LIMIT = 200


def reduce_object(
    event: Event, item: Mapping[str, Any], kind: str, *, quote: bool = True
) -> tuple[str, Fields]:
    """An object's subject (a pod's UID, a slice's name) and its named fields.

    Without ``quote`` a pod's message is left out: whoever may write its status chooses it.
    """
    metadata = item["metadata"]
    common: Fields = {
        "type": kind,
        "name": metadata.get("name"),
        "resource_version": metadata.get("resourceVersion"),
    }
    if event is Event.POD:
        return metadata["uid"], common | _pod_fields(item, quote=quote)
    endpoints = [_endpoint(e) for e in item.get("endpoints") or ()]
    return metadata["name"], common | {"family": item.get("addressType"), "endpoints": endpoints}


def _pod_fields(item: Mapping[str, Any], *, quote: bool) -> Fields:
    metadata, status = item["metadata"], item.get("status") or {}
    conditions = {c.get("type"): c.get("status") for c in status.get("conditions") or ()}
    ready = conditions.get("Ready")
    message = status.get("message") if quote else None
    return {
        "phase": status.get("phase"),
        "ready": None if ready is None else ready == "True",
        "reason": status.get("reason"),
        "message": message[:MESSAGE_LIMIT] if isinstance(message, str) else None,
        "disruption": _disruption(status),
        "node": (item.get("spec") or {}).get("nodeName"),
        "deletion_timestamp": metadata.get("deletionTimestamp"),
        "deletion_grace_period_s": metadata.get("deletionGracePeriodSeconds"),
        "containers": [_container(c) for c in status.get("containerStatuses") or ()],
    }


def _disruption(status: Mapping[str, Any]) -> object:
    """Who is about to end the pod, by the reason that they give (DisruptionTarget)."""
    return next(
        (
            c.get("reason")
            for c in status.get("conditions") or ()
            if c.get("type") == "DisruptionTarget" and c.get("status") == "True"
        ),
        None,
    )


def _container(status: Mapping[str, Any]) -> Fields:
    before = (status.get("lastState") or {}).get("terminated")
    return {
        "name": status.get("name"),
        "ready": status.get("ready"),
        "restarts": status.get("restartCount"),
        **_state(status.get("state") or {}),
        "last_state": _state({"terminated": before}) if before else None,
    }


def _state(state: Mapping[str, Any]) -> Fields:
    """A container's state. Its stamps are the kubelet's wall clock, in whole seconds."""
    name = next(iter(state), None)
    inner = state.get(name) or {} if name else {}
    return {
        "state": name,
        "exit_code": inner.get("exitCode"),
        "signal": inner.get("signal"),
        "reason": inner.get("reason"),
        "started_at": inner.get("startedAt"),
        "finished_at": inner.get("finishedAt"),
    }


def _endpoint(endpoint: Mapping[str, Any]) -> Fields:
    conditions = endpoint.get("conditions") or {}
    target = endpoint.get("targetRef") or {}
    return {
        "uid": target.get("uid"),
        "name": target.get("name"),
        "addresses": endpoint.get("addresses"),
        "node": endpoint.get("nodeName"),
        "ready": conditions.get("ready"),
        "serving": conditions.get("serving"),
        "terminating": conditions.get("terminating"),
    }
