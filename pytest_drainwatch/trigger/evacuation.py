"""A node as `kubectl drain` empties it: cordoned, and its pods evicted, but for some."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api
from pytest_drainwatch.trigger.target import Pod, Target

# The kubelet's own pods, which the API server only mirrors.
MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A pod of the node. ``stays``: why an evacuation leaves it; ``stops``: why it stops."""

    namespace: str
    pod: Pod
    stays: str | None = None
    stops: str | None = None


def tenants(api: Api, target: Target) -> tuple[Tenant, ...]:
    """Every pod that is bound to the target's node, the workload's among them."""
    response = api.core.list_pod_for_all_namespaces(
        field_selector=f"spec.nodeName={target.node}",
        _preload_content=False,
        _request_timeout=REQUEST_TIMEOUT,
    )
    return tuple(_tenant(item, target) for item in json.loads(response.data)["items"])


def others(found: tuple[Tenant, ...], target: Target) -> Iterator[Tenant]:
    """Those that are evicted as well, beside the workload's own.

    One that came after the check of obstacles and would have been one is left alone.
    """
    mine = {pod.uid for pod in target.pods}
    return (e for e in found if not e.stays and not e.stops and e.pod.uid not in mine)


def neighbours(api: Api, target: Target) -> tuple[str, ...]:
    """The namespaces of those others. None of a target whose node is not known."""
    if target.node is None:
        return ()
    return tuple(sorted({each.namespace for each in others(tenants(api, target), target)}))


def _tenant(item: Mapping[str, Any], target: Target) -> Tenant:
    metadata = item["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    owners = (o for o in metadata.get("ownerReferences") or () if o.get("controller"))
    owner = next(owners, None)
    over = (item.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    spared = bool(target.spare) and target.spare.items() <= labels.items()
    stays, stops = None, None
    if MIRROR in annotations:
        stays = "a mirror pod"
    elif owner is not None and owner.get("kind") == "DaemonSet":
        stays = "of a DaemonSet"
    elif metadata.get("deletionTimestamp"):
        stays = "on its way out"
    elif spared:
        stays = "our client"
    elif owner is None and not over:
        stops = "no controller would make it again (kubectl drain wants --force)"
    elif any("emptyDir" in volume for volume in item["spec"].get("volumes") or ()) and not over:
        stops = "its emptyDir would be lost (kubectl drain wants --delete-emptydir-data)"
    return Tenant(
        namespace=metadata["namespace"],
        pod=Pod(name=metadata["name"], uid=metadata["uid"], node=target.node),
        stays=stays,
        stops=stops,
    )
