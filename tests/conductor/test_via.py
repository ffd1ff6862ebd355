"""Through which node connections enter, and which pod is then the one to end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch import attaching, holding, via
from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.scenario import (
    Access,
    App,
    Controller,
    Flows,
    Scenario,
    Service,
    TrafficPolicy,
    Trigger,
    ViaNode,
    Workload,
)
from pytest_drainwatch.flows.process import AgentStatus, ProberStatus, ProtoStatus
from pytest_drainwatch.holding import agent_config
from pytest_drainwatch.targets import choose, choose_attached, pods_of
from pytest_drainwatch.trigger import Pod
from pytest_drainwatch.watch.frames import reduce_object
from pytest_drainwatch.way import Way
from pytest_drainwatch.workload import manifests
from pytest_drainwatch.workload.attached import Found
from pytest_drainwatch.workload.reduced import PodSpec, ServiceFacts
from pytest_drainwatch.workload.reduced import Port as ServicePort
from tests.conductor.test_interrupts import stage

LOCAL = Service(external_traffic_policy=TrafficPolicy.LOCAL)
NODES = {"a": "198.18.0.8", "b": "198.18.0.9", "c": "198.18.0.10"}
PODS = st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=6).map(
    lambda nodes: [Pod(name=f"p{n}", uid=f"u{n}", node=node) for n, node in enumerate(nodes)]
)


def test_the_address_says_which_node_it_is() -> None:
    assert via.entered(NODES, "198.18.0.9") == "b"
    assert via.others(NODES, "198.18.0.9") == (("a", "198.18.0.8"), ("c", "198.18.0.10"))
    assert via.entered({}, "192.0.2.1") is None


@given(PODS, st.sampled_from(ViaNode))
def test_the_first_pod_makes_the_way_true_or_there_is_none(pods: list[Pod], asked: ViaNode) -> None:
    right = {
        ViaNode.ANY: pods,
        ViaNode.TARGET_NODE: [pod for pod in pods if pod.node == "a"],
        ViaNode.OTHER_NODE: [pod for pod in pods if pod.node in ("b", "c")],
    }[asked]
    if not right:
        with pytest.raises(ClusterError, match="via_node is"):
            via.fitting(pods, asked, "a")
        return
    found = via.fitting(pods, asked, "a")
    assert list(found[: len(right)]) == right, "in the order that they had"
    assert sorted(pod.uid for pod in found) == sorted(pod.uid for pod in pods)


def test_a_way_of_which_the_node_is_not_known_is_refused() -> None:
    pods = [Pod(name="p", uid="u", node="a")]
    with pytest.raises(ClusterError, match="whose NodePort it leads to"):
        via.fitting(pods, ViaNode.OTHER_NODE, None)
    assert via.fitting(pods, ViaNode.ANY, None) == tuple(pods)


def test_where_no_pod_fits_the_error_says_where_they_are() -> None:
    pods = [Pod(name="p", uid="u", node="a")]
    with pytest.raises(ClusterError, match=r"p on a: expected one elsewhere\..*spread_over_nodes"):
        via.fitting(pods, ViaNode.OTHER_NODE, "a")


def test_a_pods_node_is_the_watchs_word() -> None:
    seen: dict[str, dict[str, object]] = {
        "u": {"name": "p", "node": "a"},
        "v": {"name": "q"},
        "w": {"name": "r", "node": 7},
    }
    assert [pod.node for pod in pods_of(seen)] == ["a", None, None]


def way(**fields: object) -> Way:
    known: dict[str, object] = {
        "command": list,
        "sources": tuple(f"198.18.0.{n}" for n in range(1, 8)),
        "address": NODES["a"],
        "tcp": 30001,
        "udp": 30002,
        "node": "a",
        "other_nodes": via.others(NODES, NODES["a"]),
        **fields,
    }
    return Way(**known)  # type: ignore[arg-type]


def test_each_node_has_a_prober_with_an_address_of_its_own() -> None:
    flows = Flows(probe_each_node=True, udp_probe_interval_ns=20 * NS_PER_MS)
    probers = agent_config(flows, way(), "u", Path()).probers
    assert [(p.subject, p.node, p.address) for p in probers] == [
        ("tcp-new", "a", NODES["a"]),
        ("udp-new", "a", NODES["a"]),
        ("tcp-new-2", "b", NODES["b"]),
        ("tcp-new-3", "c", NODES["c"]),
    ]
    sources = [p.source_address for p in probers]
    assert len({*sources, way().source(0)}) == 5, "and the flows as well"
    assert {(p.port, p.interval_ns) for p in probers if p.proto == "tcp"} == {(30001, 5_000_000)}


def test_without_being_asked_one_node_is_tried() -> None:
    assert [p.subject for p in agent_config(Flows(), way(), "u", Path()).probers] == ["tcp-new"]


def test_where_each_node_has_its_own_pods_each_must_have_one() -> None:
    pods = [Pod(name="p", uid="u", node="a"), Pod(name="q", uid="v", node="c")]
    via.check_local(pods, ["a", "c"])
    with pytest.raises(ClusterError, match=r"no pod is on b: .*3 replicas or more"):
        via.check_local(pods, ["a", "b", "c"])


def test_where_a_node_leads_to_its_own_pods_alone_one_of_those_is_the_target() -> None:
    pods = [Pod(name="p", uid="u", node="b"), Pod(name="q", uid="v", node="a")]
    assert [pod.name for pod in via.local(pods, "a")] == ["q", "p"]
    assert via.local(pods, None) == tuple(pods), "a load balancer's address is no node's"
    with pytest.raises(ClusterError, match=r"enter at node c, but the pods are p on b, q on a"):
        via.local(pods, "c")


def test_a_local_policys_target_is_a_pod_to_which_the_way_leads(tmp_path: Path) -> None:
    """Else no flow could ever be dialled to it."""
    asked = stage(tmp_path)
    pods = (Pod(name="p", uid="u", node="b"), Pod(name="q", uid="v", node="a"))
    for policy, chosen in (("Cluster", "p"), ("Local", "q")):
        asked.scenario = Scenario(
            app=App(replicas=2),
            service=Service(external_traffic_policy=policy),  # type: ignore[arg-type]
        )
        assert choose(asked, way(), pods).pod.name == chosen
    asked.recorder.close()


def test_of_a_users_workload_too_the_target_is_a_pod_to_which_the_way_leads(
    tmp_path: Path,
) -> None:
    asked = stage(tmp_path)
    found = attached(LOCAL)
    pods = (Pod(name="p", uid="u", node="b"), Pod(name="q", uid="v", node="a"))
    asked.scenario = Scenario(workload=Workload.attach("deployment/web", namespace="shop"))
    assert choose_attached(asked, found, way(), pods).pod.name == "p"
    asked.scenario = replace(asked.scenario, service=LOCAL)
    assert choose_attached(asked, found, way(), pods).pod.name == "q"
    with pytest.raises(ClusterError, match="none of them is reached") as caught:
        choose_attached(asked, found, way(), pods[:1])
    assert "kubectl -n shop get pods -o wide" in str(caught.value)
    assert "App(" not in str(caught.value), "of theirs nothing can be asked for in a scenario"
    asked.scenario = replace(asked.scenario, flows=Flows(probe_each_node=True))
    with pytest.raises(ClusterError, match="no pod is on c") as caught:
        choose_attached(asked, found, way(), pods)
    assert "App(" not in str(caught.value)
    asked.recorder.close()


@pytest.mark.parametrize("asked", [ViaNode.TARGET_NODE, ViaNode.OTHER_NODE])
def test_the_way_that_was_asked_for_is_kept_when_a_workload_is_found(asked: ViaNode) -> None:
    service = Service(via_node=asked)
    scenario = Scenario(workload=Workload.attach("deployment/web"), service=service)
    known = attaching._as_it_is(scenario, attached(service), Access.NODE_PORT)
    assert known.service.via_node is asked


def attached(service: Service) -> Found:
    """A Deployment of the user's behind such a Service."""
    port = ServicePort(name="", number=80, protocol="tcp", target=80, node_port=30001)
    return Found(
        namespace="shop", kind=Controller.DEPLOYMENT, name="web", selector="app=web", rule={},
        replicas=2, spec=PodSpec(grace_period_s=30, containers=()), port=port,
        service=ServiceFacts(
            name="web", kind="NodePort", cluster_ip="10.96.0.9", selector={"app": "web"},
            ports=(port,), ingress=(), session_affinity="None", publish_not_ready=False,
            external_traffic_policy=str(service.external_traffic_policy),
        ),
    )  # fmt: skip


def held_by(answered: dict[str, int], flows: Flows) -> list[bool]:
    """Whether each check of the traffic to a user's workload passes, tried at three nodes."""
    probers = {name: ProberStatus(attempts=9, answered=n) for name, n in answered.items()}
    well = ProtoStatus(dialled=flows.tcp, answered=flows.tcp, on_target=0, min_answers=99)
    agent: Any = SimpleNamespace(
        status=lambda: AgentStatus(tcp=well, probers=probers), check_alive=lambda: None
    )
    scenario = Scenario(workload=Workload.attach("deployment/web"), flows=flows)
    ready: Any = SimpleNamespace(stage=SimpleNamespace(scenario=scenario, recorder=None), way=way())
    return [check().passed for check in holding.checks_of(ready, agent)]


def test_a_users_workload_must_answer_at_each_node_that_is_tried() -> None:
    flows = Flows(tcp=2, udp=0, probe_each_node=True)
    everywhere = {"tcp-new": 9, "tcp-new-2": 9, "tcp-new-3": 9}
    assert held_by(everywhere, flows) == [True, True, True]
    assert held_by({**everywhere, "tcp-new-3": 0}, flows) == [True, True, False]
    assert held_by({"tcp-new": 9}, replace(flows, probe_each_node=False)) == [True, True, True]


@pytest.mark.parametrize(("strangers", "held"), [(0, 2), (2, 4), (6, 8)])
def test_pods_of_others_take_their_share_of_the_flows(
    strangers: int, held: int, tmp_path: Path
) -> None:
    """A canary's behind the same Service: about as many flows as asked for lead to a target."""
    asked = stage(tmp_path)
    pods = (Pod(name="p", uid="u"), Pod(name="q", uid="v"))
    workload = Workload.attach("deployment/web")
    asked.scenario = Scenario(workload=workload, flows=Flows(tcp=2), trigger=Trigger.ROLLOUT)
    target = choose_attached(asked, attached(Service()), way(), pods)
    ready: Any = SimpleNamespace(stage=asked, way=way(), target=target, strangers=strangers)
    config = holding.task_of(ready, agents=1)
    assert config.tcp is not None
    assert config.tcp.flows == held
    asked.recorder.close()


def test_each_node_cannot_be_tried_where_they_are_not_known() -> None:
    with pytest.raises(ClusterError, match="probe_each_node is True"):
        agent_config(Flows(probe_each_node=True), way(node=None, other_nodes=()), "u", Path())


@pytest.mark.parametrize("controller", list(Controller))
def test_spread_pods_are_within_one_of_each_other_by_revision(controller: Controller) -> None:
    app = App(controller=controller, replicas=2, spread_over_nodes=True)
    spec = manifests.workload(app, "image")["spec"]["template"]["spec"]  # type: ignore[index]
    (rule,) = spec["topologySpreadConstraints"]
    assert (rule["maxSkew"], rule["whenUnsatisfiable"]) == (1, "DoNotSchedule")
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    assert rule["labelSelector"]["matchLabels"] == manifests.SELECTOR
    assert len(rule["matchLabelKeys"]) == 1
    alone = manifests.workload(App(controller=controller), "image")["spec"]["template"]["spec"]  # type: ignore[index]
    assert "topologySpreadConstraints" not in alone


def test_an_endpoint_names_its_node() -> None:
    item = {
        "metadata": {"name": "s", "resourceVersion": "1"},
        "endpoints": [{"nodeName": "b", "targetRef": {"uid": "u"}}, {"targetRef": {"uid": "v"}}],
    }
    _, fields = reduce_object(Event.ENDPOINT_SLICE, item, "ADDED")
    assert [each["node"] for each in fields["endpoints"]] == ["b", None]  # type: ignore[attr-defined]
