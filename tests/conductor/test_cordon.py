"""Nodes that a killed run left cordoned: found by who did it, and no others touched."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch import cordon, pool
from pytest_drainwatch.workload.namespace import owner
from tests.conductor.api_server import Call, reply, serving

DEAD = "/".join([owner().split("/")[0], "999999999", "1", owner().split("/")[3]])


class Nodes:
    """The API server's side: nodes that answer reads and patches."""

    def __init__(self, **by: str | None) -> None:
        self.nodes: dict[str, Any] = {
            name: {
                "metadata": {"name": name, "annotations": {cordon.BY_ANNOTATION: who}}
                if who is not None
                else {"name": name},
                "spec": {"unschedulable": True},
            }
            for name, who in by.items()
        }

    def __call__(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        name = call.path.partition("/nodes/")[2]
        if not name:
            return reply(handler, {"items": list(self.nodes.values())})
        if call.method == "PATCH":
            for part in ("metadata", "spec"):
                found = self.nodes[name][part]
                changes = dict(call.body[part])
                found.setdefault("annotations", {}).update(changes.pop("annotations", {}))
                found.update(changes)
        return reply(handler, self.nodes[name])

    def cordoned(self) -> set[str]:
        return {name for name, node in self.nodes.items() if node["spec"]["unschedulable"]}


def test_a_node_says_who_cordoned_it_until_it_is_taken_back(tmp_path: Path) -> None:
    nodes = Nodes(n1=None)
    with serving(nodes, tmp_path) as (api, _):
        cordon.cordon(api, "n1", "me")
        assert cordon.is_cordoned(api, "n1")
        assert list(cordon.left(api)) == [("n1", "me")]
        cordon.uncordon(api, "n1")
        assert not cordon.is_cordoned(api, "n1")
        assert not list(cordon.left(api))


@pytest.mark.parametrize(
    ("who", "taken_back"),
    [(DEAD, True), (owner(), False), ("another-boot/1/1/1", False), (None, False), ("", False)],
    ids=["dead", "alive", "elsewhere", "nobody-of-us", "unnamed"],
)
def test_only_what_a_dead_run_left_is_taken_back(
    who: str | None, taken_back: bool, tmp_path: Path
) -> None:
    nodes, told = Nodes(n1=who), list[str]()
    with serving(nodes, tmp_path) as (api, _):
        pool._uncordon(api, told.append)
    assert nodes.cordoned() == (set() if taken_back else {"n1"})
    assert ["n1" in line for line in told] == ([True] if taken_back else [])


def test_who_may_not_list_nodes_is_not_stopped_by_it(tmp_path: Path) -> None:
    def forbid(handler: BaseHTTPRequestHandler, _: Call) -> None:
        reply(handler, {"message": "no"}, 403)

    with serving(forbid, tmp_path) as (api, _):
        pool._uncordon(api, lambda _: pytest.fail("nothing was done"))
