"""An evacuation: whom it evicts, in what order, what it goes on with, and what it puts back."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_drainwatch.api import Api
from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.scenario import Controller, Scenario, Trigger
from pytest_drainwatch.preflight import Check, TrialVoid, require
from pytest_drainwatch.standing import check_trigger
from pytest_drainwatch.trigger import Armed, Owner, Pod, Target, TriggerFailed, armed, undoing
from pytest_drainwatch.trigger import find_obstacle as obstacle
from tests.conductor.api_server import Call, reply, serving

MINE, SECOND = (Pod(name=f"web-{n}", uid=f"uid-{n}", node="n1") for n in (1, 2))
ELSEWHERE = Pod(name="web-3", uid="uid-3", node="n2")
TARGET = Target(
    namespace="ns",
    pod=MINE,
    chosen=(MINE,),
    pods=(MINE, SECOND, ELSEWHERE),
    controller=Owner(kind=Controller.DEPLOYMENT, name="web"),
    spare={"app": "client"},
)
OWNED = [{"kind": "ReplicaSet", "controller": True}]
DAEMON = [{"kind": "DaemonSet", "controller": True}]


def item(name: str, uid: str, namespace: str = "other", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": uid, "ownerReferences": OWNED}
    return {
        "metadata": metadata | more.pop("metadata", {}),
        "spec": more.pop("spec", {}),
        "status": {"phase": more.pop("phase", "Running")},
    }


WEB = [item("web-1", "uid-1", "ns"), item("web-2", "uid-2", "ns")]
OTHERS = [
    item("db-0", "uid-db"),
    item("agent", "uid-agent", metadata={"ownerReferences": DAEMON}),
    item("static", "uid-static", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}),
    item("leaving", "uid-leaving", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    item(
        "client", "uid-client", "ns", metadata={"ownerReferences": [], "labels": {"app": "client"}}
    ),
    item("job", "uid-job", metadata={"ownerReferences": []}, phase="Succeeded"),
]


class Node:
    """The API server's side: a node, its pods, and evictions that are refused so often."""

    def __init__(self, pods: list[dict[str, Any]], *, cordoned: bool = False) -> None:
        self.pods, self.unschedulable = pods, cordoned
        self.refuse: dict[str, int] = {}
        self.evicted: list[str] = []
        self.told = threading.Condition()
        self.broken: Callable[[Call], bool] = lambda _: False

    def __call__(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        if self.broken(call):
            return reply(handler, {"message": "no"}, 500)
        if call.path.endswith("/eviction"):
            return self._evict(handler, call)
        if call.path.startswith("/api/v1/nodes/"):
            if call.method == "PATCH":
                self.unschedulable = call.body["spec"]["unschedulable"] is True
            return reply(handler, {"spec": {"unschedulable": self.unschedulable}})
        assert "fieldSelector=spec.nodeName%3Dn1" in call.path
        return reply(handler, {"items": self.pods})

    def _evict(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        assert self.unschedulable, "nothing is evicted before the cordon"
        name = call.body["metadata"]["name"]
        if self.refuse.get(name, 0) > 0:
            self.refuse[name] -= 1
            return reply(handler, {"message": f"the budget of {name}"}, 429)
        with self.told:
            self.evicted.append(name)
            self.told.notify_all()
        return reply(handler, {"status": "Success"})

    def wait_for(self, *names: str) -> bool:
        with self.told:
            return self.told.wait_for(lambda: set(self.evicted) >= set(names), 5)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(armed, "AGAIN_S", 0.02)
    monkeypatch.setattr(undoing, "PAUSE_S", 0.0)


def test_a_node_is_emptied_as_kubectl_does_it(tmp_path: Path) -> None:
    node, seen = Node([*WEB, *OTHERS]), list[Observation]()
    with serving(node, tmp_path) as (api, _):
        with Armed(api, Trigger.EVACUATE_NODE, TARGET, seen.append) as trigger:
            accepted = trigger.fire(timeout_s=5)
            assert node.evicted[:2] == ["web-1", "web-2"], "t = 0 is ours"
            assert node.wait_for("db-0", "job")
            assert node.unschedulable
        assert not node.unschedulable
    assert sorted(node.evicted) == ["db-0", "job", "web-1", "web-2"]
    assert accepted.targets == ("uid-1", "uid-2"), "the third is on another node"
    (cordoned,) = [o for o in seen if o.event is Event.NODE_CORDONED]
    assert cordoned.data == {"node": "n1", "already": False}
    assert cordoned.at.hi <= accepted.at.lo
    (evacuated,) = [o for o in seen if o.event is Event.NODE_EVACUATED]
    assert evacuated.data == {"others": 2, "left": 0}


def test_a_budget_lets_them_go_one_after_the_other(tmp_path: Path) -> None:
    """Refused once the first is on its way out: asked again until it is let go."""
    node, seen = Node(WEB), list[Observation]()
    node.refuse["web-2"] = 3
    with (
        serving(node, tmp_path) as (api, _),
        Armed(api, Trigger.EVACUATE_NODE, TARGET, seen.append) as trigger,
    ):
        accepted = trigger.fire(timeout_s=5)
        assert node.evicted == ["web-1"]
        assert accepted.targets == ("uid-1", "uid-2"), "it is a target all the same"
        assert node.wait_for("web-2")
    assert [o.event for o in seen].count(Event.TRIGGER_BLOCKED) == 3
    assert [o.data["what"] for o in seen if o.event is Event.TRIGGER_CONTINUED] == ["pod web-2"]


def test_what_holds_back_other_pods_is_not_the_trials_affair(tmp_path: Path) -> None:
    node, seen = Node([*WEB, *OTHERS]), list[Observation]()
    node.refuse["db-0"] = 2
    with (
        serving(node, tmp_path) as (api, _),
        Armed(api, Trigger.EVACUATE_NODE, TARGET, seen.append) as trigger,
    ):
        trigger.fire(timeout_s=5)
        assert node.wait_for("db-0")
    told = [o.event for o in seen]
    assert Event.TRIGGER_BLOCKED not in told
    assert Event.TRIGGER_CONTINUED not in told
    assert "db-0" not in str([o.data for o in seen])


def test_it_stops_asking_when_the_trial_is_over(tmp_path: Path) -> None:
    node, seen = Node(WEB), list[Observation]()
    node.refuse["web-2"] = 10**6
    with serving(node, tmp_path) as (api, script):
        with Armed(api, Trigger.EVACUATE_NODE, TARGET, seen.append) as trigger:
            trigger.fire(timeout_s=5)
        left = [o.data["left"] for o in seen if o.event is Event.NODE_EVACUATED]
        assert left == [1]
        before = len(script.calls)
        threading.Event().wait(0.1)
        assert len(script.calls) == before
    assert not node.unschedulable


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_nobody_else_is_evicted_once_the_trial_is_over(
    error: type[BaseException] | None, tmp_path: Path
) -> None:
    """The node has many pods, and the trial ends while the first of them is being asked for."""
    many = [item(f"db-{n}", f"uid-db-{n}") for n in range(20)]
    node, seen = Node([*WEB, *many]), list[Observation]()
    asked, over = threading.Event(), threading.Event()

    def slow(call: Call) -> bool:
        if call.path.endswith("/db-0/eviction"):
            asked.set()
            assert over.wait(5)
        return False

    node.broken = slow

    def trial(api: Api) -> None:
        with Armed(api, Trigger.EVACUATE_NODE, TARGET, seen.append) as trigger:
            trigger.fire(timeout_s=5)
            assert asked.wait(5)
            threading.Timer(0.2, over.set).start()  # meanwhile it is told to stop
            if error is not None:
                raise error

    with serving(node, tmp_path) as (api, script):
        with pytest.raises(error) if error else nullcontext():
            trial(api)
        assert script.calls[-1].method == "PATCH", "it takes pods again when nobody is asked for"
        assert node.evicted == ["web-1", "web-2", "db-0"]
    assert not node.unschedulable
    (evacuated,) = [o for o in seen if o.event is Event.NODE_EVACUATED]
    assert evacuated.data == {"others": 1, "left": 19}


def test_a_node_that_was_cordoned_stays_so(tmp_path: Path) -> None:
    node, seen = Node(WEB, cordoned=True), list[Observation]()
    with (
        serving(node, tmp_path) as (api, script),
        Armed(api, Trigger.EVACUATE_NODE, TARGET, seen.append) as trigger,
    ):
        trigger.fire(timeout_s=5)
    assert node.unschedulable
    assert not [c for c in script.calls if c.method == "PATCH"]
    assert seen[0].data == {"node": "n1", "already": True}


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_it_is_uncordoned_whatever_ends_the_trial(
    error: type[BaseException], tmp_path: Path
) -> None:
    node = Node(WEB)

    def trial(api: Api) -> None:
        with Armed(api, Trigger.EVACUATE_NODE, TARGET, lambda _: None) as trigger:
            trigger.fire(timeout_s=5)
            assert node.unschedulable
            raise error

    with serving(node, tmp_path) as (api, _), pytest.raises(error):
        trial(api)
    assert not node.unschedulable


def test_a_refusal_for_good_uncordons_as_well(tmp_path: Path) -> None:
    node = Node(WEB)
    node.refuse["web-1"] = 10**6
    with (
        serving(node, tmp_path) as (api, _),
        pytest.raises(TriggerFailed, match="is blocked"),
        Armed(api, Trigger.EVACUATE_NODE, TARGET, lambda _: None) as trigger,
    ):
        trigger.fire(timeout_s=0.5, sleep=lambda _: None)
    assert not node.unschedulable


def test_what_cannot_be_put_back_is_said_with_its_command(tmp_path: Path) -> None:
    node, told = Node(WEB), list[str]()

    def trial(api: Api, failure: Exception | None = None) -> None:
        with Armed(api, Trigger.EVACUATE_NODE, TARGET, lambda _: None, told.append) as trigger:
            trigger.fire(timeout_s=5)
            node.broken = lambda call: call.method == "PATCH"
            if failure is not None:
                raise failure

    with serving(node, tmp_path) as (api, script):
        with pytest.raises(TriggerFailed, match=r"node n1 stays cordoned.*kubectl uncordon n1"):
            trial(api)
        assert len([c for c in script.calls if c.method == "PATCH"]) == 1 + undoing.ATTEMPTS
        node.broken, node.unschedulable = lambda _: False, False
        with pytest.raises(KeyError):
            trial(api, KeyError())
    assert "kubectl uncordon n1" in told[-1], "another failure is on its way, and is not hidden"


BARE = item("bare", "uid-bare", metadata={"ownerReferences": []})
KEEPS = item("keeps", "uid-keeps", spec={"volumes": [{"name": "v", "emptyDir": {}}]})
DAEMONS = [item("web-1", "uid-1", "ns", metadata={"ownerReferences": DAEMON})]


@pytest.mark.parametrize(
    ("pods", "observed"),
    [
        ([*WEB, *OTHERS], None),
        ([*WEB, BARE], "other/bare: no controller would make it again"),
        ([*WEB, KEEPS], "other/keeps: its emptyDir would be lost"),
        (DAEMONS, "pod web-1 would stay: it is of a DaemonSet"),
    ],
)
def test_what_kubectl_would_refuse_is_an_obstacle(
    pods: list[dict[str, Any]], observed: str | None, tmp_path: Path
) -> None:
    with serving(Node(pods), tmp_path) as (api, _):
        found = obstacle(api, Trigger.EVACUATE_NODE, TARGET)
    if observed is None:
        assert found is None
    else:
        assert found is not None
        assert observed in found.observed
        assert "kubectl drain n1" in found.look_at


def test_nobody_is_evicted_where_no_trial_may_run(tmp_path: Path) -> None:
    """The workload's own namespace was looked at before; a node has pods of others."""
    asked: list[str] = []

    def admit(namespace: str) -> None:
        asked.append(namespace)
        if namespace == "production":
            raise ClusterError("no trial runs where real users may be")

    def check(api: Api) -> None:
        stage: Any = SimpleNamespace(
            api=api,
            namespace="ns",
            scenario=Scenario(trigger=Trigger.EVACUATE_NODE),
            cluster=SimpleNamespace(admit=admit),
        )

        def must(found: Callable[[], Check], _: float) -> None:
            require(found, lambda _: None, timeout_s=0)

        check_trigger(stage, TARGET, must)

    node = Node([*WEB, *OTHERS, BARE])  # an obstacle, so that nothing further is asked
    with serving(node, tmp_path) as (api, script):
        with pytest.raises(TrialVoid, match="'trigger-possible' failed"):
            check(api)
        assert asked == ["other"], "and not of what stays: DaemonSet and mirror pods, our client"
        node.pods[:] = [*WEB, item("db", "uid-p", "production")]
        with pytest.raises(ClusterError, match="real users"):
            check(api)
        assert {call.method for call in script.calls} == {"GET"}


def test_a_pod_of_no_known_node_cannot_be_evacuated(tmp_path: Path) -> None:
    nowhere = replace(MINE, node=None)
    target = replace(TARGET, pod=nowhere, pods=(nowhere,))
    with serving(Node([]), tmp_path) as (api, _):
        found = obstacle(api, Trigger.EVACUATE_NODE, target)
    assert found is not None
    assert "not seen on any node" in found.observed


def test_a_signal_does_not_keep_it_from_being_put_back() -> None:
    """Whoever presses Ctrl-C again is heard when the node takes pods again."""
    put_back: list[str] = []

    def told(what: str) -> None:
        signal.raise_signal(signal.SIGINT)
        put_back.append(what)

    changes = [
        undoing.Undo(left=f"{name} stays", command="…", send=partial(told, name))
        for name in ("first", "second")
    ]
    with pytest.raises(KeyboardInterrupt):
        undoing.undo(changes, partial(told, "before"))
    assert put_back == ["before", "second", "first"]
