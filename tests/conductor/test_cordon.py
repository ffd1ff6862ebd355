"""Nodes that a killed run left cordoned: found by who did it, and no others touched."""

from __future__ import annotations

from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_drainwatch import cordon, pool
from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.existing.nodes import CORDONED
from pytest_drainwatch.cluster.kind import cluster as kind
from pytest_drainwatch.core.scenario import ClusterNeeds
from pytest_drainwatch.settings import Settings
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
                for key, value in changes.pop("annotations", {}).items():
                    noted = found.setdefault("annotations", {})
                    noted.pop(key, None) if value is None else noted.update({key: value})
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
        assert pool._uncordon(api, told.append) is taken_back
    assert nodes.cordoned() == (set() if taken_back else {"n1"})
    assert ["n1" in line for line in told] == ([True] if taken_back else [])


def test_who_may_not_list_nodes_is_not_stopped_by_it(tmp_path: Path) -> None:
    def forbid(handler: BaseHTTPRequestHandler, _: Call) -> None:
        reply(handler, {"message": "no"}, 403)

    with serving(forbid, tmp_path) as (api, _):
        pool._uncordon(api, lambda _: pytest.fail("nothing was done"))


def whole(there: Nodes) -> Nodes:
    """Ready nodes with addresses, as a cluster has them; cordoned as its control plane does it."""
    for number, node in enumerate(there.nodes.values(), 1):
        node["spec"]["taints"] = [{"key": CORDONED, "effect": "NoSchedule"}]
        node["status"] = {
            "addresses": [{"type": "InternalIP", "address": f"192.0.2.{number}"}],
            "conditions": [{"type": "Ready", "status": "True"}],
        }
    return there


@pytest.mark.parametrize(
    ("who", "whole_again"), [(DEAD, True), (owner(), False)], ids=["dead", "alive"]
)
def test_the_only_node_of_a_kind_cluster_is_taken_back_before_it_is_waited_for(
    who: str, whole_again: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind, "READY_TIMEOUT_S", 0.5)
    given: Any = SimpleNamespace(name="k", kubeconfig=tmp_path / "kubeconfig")
    with (
        serving(whole(Nodes(n1=who)), tmp_path) as (api, _),
        nullcontext() if whole_again else pytest.raises(ClusterError, match="is not whole"),
    ):
        found = kind._ready_nodes(api, given, 1, lambda api: pool._uncordon(api, lambda _: None))
        assert (found.taking, found.addresses) == (1, {"n1": "192.0.2.1"})


@pytest.mark.parametrize(
    ("who", "nodes"), [(DEAD, ["n1", "n2"]), (owner(), ["n2"])], ids=["dead", "alive"]
)
def test_the_next_run_has_the_node_that_a_killed_one_left(
    who: str, nodes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is taken back before it is read how many nodes take pods, and where NodePorts answer."""
    monkeypatch.setenv("DW_STATE", str(tmp_path / "state"))  # no start of others is waited for
    there, told = whole(Nodes(n1=who, n2=None)), list[str]()
    there.nodes["n2"]["spec"] = {}

    def answer(handler: BaseHTTPRequestHandler, call: Call) -> None:
        if call.path.startswith("/api/v1/nodes"):
            return there(handler, call)
        return reply(handler, {"message": "not here"}, 404)

    with serving(answer, tmp_path):
        settings = Settings(cluster="existing", kubeconfig=tmp_path / "kubeconfig")
        with (
            pool.ClusterPool(settings, tmp_path, told.append, keep=lambda: False) as clusters,
            nullcontext() if len(nodes) == 2 else pytest.raises(ClusterError, match="has 1"),
            clusters.lease(ClusterNeeds(nodes=2)) as cluster,
        ):
            assert list(cluster.node_addresses) == nodes
            assert cluster.facts().nodes == 2
    assert [line.startswith("uncordoned node n1") for line in told] == [True] * (len(nodes) - 1)
