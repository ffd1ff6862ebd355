"""Nodes that the scheduler is told to leave out for a while, with the name of who did it.

The name lets a later run find what a killed one left cordoned, and no other node.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api

BY_ANNOTATION = "drainwatch/cordoned-by"


def is_cordoned(api: Api, node: str) -> bool:
    """Whether the scheduler leaves this node out already."""
    response = api.core.read_node(node, _preload_content=False, _request_timeout=REQUEST_TIMEOUT)
    return json.loads(response.data)["spec"].get("unschedulable") is True


def cordon(api: Api, node: str, owner: str) -> None:
    """Have the scheduler leave the node out; ``owner`` is who will undo it."""
    _patch(api, node, unschedulable=True, owner=owner)


def uncordon(api: Api, node: str) -> None:
    """Have it take pods again."""
    _patch(api, node, unschedulable=None, owner=None)


def left(api: Api) -> Iterator[tuple[str, str]]:
    """The nodes that a run has cordoned and not taken back, and who that was."""
    response = api.core.list_node(_preload_content=False, _request_timeout=REQUEST_TIMEOUT)
    for item in json.loads(response.data)["items"]:
        owner = (item["metadata"].get("annotations") or {}).get(BY_ANNOTATION)
        if owner is not None:
            yield item["metadata"]["name"], str(owner)


def _patch(api: Api, node: str, *, unschedulable: bool | None, owner: str | None) -> None:
    body: dict[str, Any] = {
        "metadata": {"annotations": {BY_ANNOTATION: owner}},
        "spec": {"unschedulable": unschedulable},
    }
    response = api.core.patch_node(
        node, body, _preload_content=False, _request_timeout=REQUEST_TIMEOUT
    )
    response.drain_conn()
