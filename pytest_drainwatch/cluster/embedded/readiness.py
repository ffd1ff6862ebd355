"""Waiting until a cluster is whole: its nodes are Ready, take pods, and have their images."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded import diagnosis
from pytest_drainwatch.cluster.embedded.api import ApiClient
from pytest_drainwatch.cluster.embedded.layout import Layout

# Each look costs the API server a millisecond that a crowded machine lacks.
_POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """After how many seconds all nodes were Ready, and everything whole.

    ``kube_version`` is the API server's own word: a binary that was given may be of
    another minor version than was asked for. None: in no form that is known.
    """

    ready_s: float
    whole_s: float
    kube_version: str | None


def wait(
    name: str,
    layout: Layout,
    *,
    address: str,
    node_names: Sequence[str],
    has_images: Callable[[], bool],
    check: Callable[[], None],
    timeout_s: float,
) -> Whole:
    """Wait for cluster *name*, whose API server answers at *address*.

    Args:
        node_names: of all nodes that are to be Ready.
        has_images: whether the nodes have imported what they were started with.
        check: raises ClusterError once a component has died.

    Raises:
        ClusterError: by *check*, or because the time is up.
    """
    began = time.monotonic()
    api = ApiClient(address, layout.pki)
    ready_s: float | None = None
    try:
        while True:
            nodes = {each: api.get_json(f"/api/v1/nodes/{each}") for each in node_names}
            unready = [each for each, node in nodes.items() if not _is_ready(node)]
            if ready_s is None and not unready:
                ready_s = time.monotonic() - began
            if ready_s is not None and _take_pods(nodes.values(), api) and has_images():
                return Whole(
                    ready_s=ready_s,
                    whole_s=time.monotonic() - began,
                    kube_version=_minor_version(api),
                )
            check()
            if time.monotonic() - began > timeout_s:
                _, readyz = api.get("/readyz?verbose")
                one = unready[0] if unready else node_names[0]
                its = layout.of_node(node_names.index(one))
                how_far = diagnosis.progress(its, one, nodes[one], readyz.decode())
                raise ClusterError(
                    f"cluster {name} is not Ready after {timeout_s:.0f} s: {how_far}"
                )
            time.sleep(_POLL_S)
    finally:
        api.close()


def _minor_version(api: ApiClient) -> str | None:
    said = api.get_json("/version") or {}
    match = re.match(r"v(\d+\.\d+)\.", str(said.get("gitVersion")))
    return match[1] if match else None


def _is_ready(node: dict[str, object] | None) -> bool:
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in diagnosis.conditions(node)
    )


def _take_pods(nodes: Iterable[dict[str, object] | None], api: ApiClient) -> bool:
    """Ready is the kubelet's word; controllers must have seen it, and made an account."""
    for node in nodes:
        spec = (node or {}).get("spec")
        if not isinstance(spec, dict) or spec.get("taints"):
            return False
    status, _ = api.get("/api/v1/namespaces/default/serviceaccounts/default")
    return status == 200
