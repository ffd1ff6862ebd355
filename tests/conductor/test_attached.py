"""What is read of a workload of the user's, and what is said where it cannot be attached to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_drainwatch import attaching, preflight
from pytest_drainwatch.core.scenario import (
    Access,
    Controller,
    Http,
    Scenario,
    Service,
    Workload,
)
from pytest_drainwatch.flows.process import HttpStatus
from pytest_drainwatch.placement import Address, Placement
from pytest_drainwatch.preflight import TrialVoid
from pytest_drainwatch.workload import attached
from pytest_drainwatch.workload.attached import Found, Sight
from pytest_drainwatch.workload.reduced import (
    NOT_RECORDED,
    ContainerSpec,
    PodSpec,
    Port,
    ServiceFacts,
)
from tests.conductor.api_server import Call, reply, serving

SECRET = "s3cr3t"
LABELS = {"app": "web"}


def pod_spec(**changes: Any) -> dict[str, Any]:
    """A pod's spec with a secret wherever one may be."""
    container = {
        "name": "server",
        "image": f"registry/{SECRET}/web",
        "command": ["sh", "-c", f"serve --token {SECRET}"],
        "args": [SECRET],
        "env": [{"name": "PASSWORD", "value": SECRET}],
        "envFrom": [{"secretRef": {"name": SECRET}}],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP", "hostIP": SECRET}],
        "readinessProbe": {
            "httpGet": {"path": f"/ready?token={SECRET}", "port": 8080},
            "periodSeconds": 2,
            "failureThreshold": 3,
        },
        "lifecycle": {"preStop": {"exec": {"command": ["curl", SECRET]}}, "stopSignal": "SIGQUIT"},
        **changes,
    }
    return {"terminationGracePeriodSeconds": 7, "containers": [container], "hostname": SECRET}


def controller(kind: Controller = Controller.DEPLOYMENT, **changes: Any) -> dict[str, Any]:
    daemon = kind is Controller.DAEMON_SET
    status = (
        {"desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberReady": 2,
         "updatedNumberScheduled": 2}
        if daemon
        else {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2}
    )  # fmt: skip
    spec = {
        "selector": {
            "matchLabels": LABELS,
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
        },
        "template": {
            "metadata": {"labels": {**LABELS, "tier": "a"}, "annotations": {"x": SECRET}},
            "spec": pod_spec(),
        },
    }
    return {
        "metadata": {"name": "web", "generation": 4, "annotations": {"y": SECRET}},
        "spec": spec if daemon else {**spec, "replicas": 2},
        "status": {"observedGeneration": 4, **status, **changes},
    }


def service(name: str = "web", **changes: Any) -> dict[str, Any]:
    spec = {
        "type": "NodePort",
        "clusterIP": "10.96.0.9",
        "selector": LABELS,
        "ports": [{"name": "http", "port": 80, "nodePort": 30_080, "targetPort": "http"}],
        **changes,
    }
    return {"metadata": {"name": name, "annotations": {"z": SECRET}}, "spec": spec, "status": {}}


def pod(owner: tuple[str, str] | None, name: str = "p") -> dict[str, Any]:
    refs = [{"kind": owner[0], "name": owner[1], "controller": True}] if owner else []
    return {
        "metadata": {"name": name, "uid": name, "labels": LABELS, "ownerReferences": refs},
        "spec": pod_spec(),
    }


def looked(asked: Workload, shown: Mapping[str, Any], folder: Path) -> Sight:
    """A look at an API server that shows these, by a pattern of their path; 404 else."""

    def answer(handler: BaseHTTPRequestHandler, call: Call) -> None:
        path = call.path.partition("?")[0]
        for pattern, found in shown.items():
            if re.search(pattern + "$", path):
                reply(handler, {"items": found} if isinstance(found, list) else found)
                return
        single = re.search(r"/(deployments|statefulsets|daemonsets|replicasets)/", path)
        reply(handler, {"items": []} if not single else {"message": "no"}, 404 if single else 200)

    with serving(answer, folder) as (api, script):
        sight = attached.look(api, asked)
        assert {call.method for call in script.calls} == {"GET"}, "nothing is changed by looking"
    return sight


@pytest.mark.parametrize("kind", Controller)
def test_a_controller_and_nothing_of_its_secrets(kind: Controller, tmp_path: Path) -> None:
    asked = Workload.attach(f"{kind}/web", namespace="shop", port=80)
    shown = {f"/shop/{kind}s/web": controller(kind), "/shop/services": [service()]}
    sight = looked(asked, shown, tmp_path)
    assert (sight.found, sight.kind, sight.replicas, sight.unsettled) == (True, kind, 2, None)
    assert sight.selector == "app=web,tier in (a,b)"
    assert sight.spec is not None
    assert sight.spec.grace_period_s == 7
    (container,) = sight.spec.containers
    assert container.pre_stop == {"exec": "(not recorded)"}
    assert container.stop_signal == "SIGQUIT"
    assert SECRET not in repr(sight)
    assert SECRET not in str(sight.spec.told())


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"readyReplicas": 1}, "1 of 2 ready"),
        ({"readyReplicas": None}, "0 of 2 ready"),
        ({"updatedReplicas": 1, "replicas": 3}, "1 of 2 up to date, 1 more than wanted"),
        ({"observedGeneration": 3}, "its controller has not seen its latest change"),
    ],
)
def test_in_what_it_is_not_settled(changes: dict[str, Any], why: str, tmp_path: Path) -> None:
    shown = {"/default/deployments/web": controller(**changes)}
    assert looked(Workload.attach("deployment/web"), shown, tmp_path).unsettled == why


def test_labels_lead_through_a_replica_set_to_its_deployment(tmp_path: Path) -> None:
    shown = {
        "/default/pods": [pod(("ReplicaSet", "web-1"))],
        "/default/replicasets/web-1": pod(("Deployment", "web")),
        "/default/deployments/web": controller(),
    }
    sight = looked(Workload.attach("app=web"), shown, tmp_path)
    assert (sight.kind, sight.name) == (Controller.DEPLOYMENT, "web")


def test_bare_pods_have_no_controller(tmp_path: Path) -> None:
    shown = {"/default/pods": [pod(None, "a"), pod(None, "b")]}
    sight = looked(Workload.attach("app=web"), shown, tmp_path)
    assert (sight.kind, sight.selector, sight.replicas) == (None, "app=web", 2)
    assert SECRET not in repr(sight)


def test_labels_of_two_workloads_are_none(tmp_path: Path) -> None:
    shown = {"/default/pods": [pod(("StatefulSet", "db"), "a"), pod(("DaemonSet", "log"), "b")]}
    sight = looked(Workload.attach("app=web"), shown, tmp_path)
    assert sight.owners == ("daemonset log", "statefulset db")
    found = preflight.workload_found(
        Workload.attach("app=web"), found=True, owners=sight.owners, there=()
    )
    assert not found.passed
    assert "daemonset log, statefulset db" in found.observed


def test_what_is_there_instead_is_named(tmp_path: Path) -> None:
    shown = {"/default/deployments": [controller()], "/default/daemonsets": []}
    sight = looked(Workload.attach("deployment/wbe"), shown, tmp_path)
    assert (sight.found, sight.there) == (False, ("deployment/web",))


def facts(name: str = "web", **changes: Any) -> ServiceFacts:
    http = Port(name="http", number=80, protocol="tcp", target=8080, node_port=30_080)
    values: dict[str, Any] = {
        "name": name,
        "kind": "NodePort",
        "cluster_ip": "10.96.0.9",
        "selector": LABELS,
        "ports": (http,),
        "ingress": (),
        "external_traffic_policy": "Cluster",
        "session_affinity": "None",
        "publish_not_ready": False,
    }
    return ServiceFacts(**{**values, **changes})


UDP = Port(name="dns", number=53, protocol="udp", target=53, node_port=None)
ADMIN = Port(name="admin", number=81, protocol="tcp", target=81, node_port=None)


@pytest.mark.parametrize(
    ("services", "about", "observed", "command"),
    [
        ([], {}, "no Service selects the pods; there are: none", "expose deployment/web"),
        ([facts(selector={})], {}, "without a selector: web", "expose"),
        ([facts(selector={})], {"service": "web"}, "has no selector", "set selector service web"),
        ([facts()], {"service": "api"}, "no Service api; there are: web", "get services"),
        ([facts(selector={"app": "x"})], {"service": "web"}, "app=x: not these pods", "kubectl"),
        ([facts()], {"port": 81}, "web has the ports http:80/tcp", "another --port"),
        ([facts()], {"port": "https"}, "web has the ports http:80/tcp", "another --port"),
        ([facts(ports=(UDP,))], {}, "web has the ports dns:53/udp", "--protocol"),
        ([facts(), facts("old")], {}, "2 Services fit: web, old", "--service"),
        ([facts(ports=(*facts().ports, ADMIN))], {}, "port http:80/tcp, admin:81/tcp", "--port"),
    ],
)
def test_a_service_that_is_not_the_one(
    services: list[ServiceFacts], about: dict[str, Any], observed: str, command: str
) -> None:
    check = preflight.service_found(Workload.attach("deployment/web", **about), services, LABELS)
    assert not check.passed
    assert observed in check.observed
    assert command in check.look_at
    assert "web" in check.invariant


@pytest.mark.parametrize(
    ("what", "command"),
    [
        ("deployment/web", "expose deployment/web --type=NodePort --port=PORT --protocol=TCP"),
        ("statefulset/web", "get pods -l 'app=web' -o name | head -n 1) --name=web "),
        ("daemonset/web", "--name=web --selector='app=web' --type=NodePort --port=PORT"),
        ("app=web,tier=x", "--name=NAME --selector='app=web' --type=NodePort --port=PORT"),
    ],
)
def test_the_command_that_puts_a_service_before_it_is_one(what: str, command: str) -> None:
    """kubectl exposes Deployments and pods: no StatefulSet, no DaemonSet, and no labels."""
    labels = {**LABELS, "pod-template-hash": "1", "controller-revision-hash": "2"}
    check = preflight.service_found(Workload.attach(what), [], labels)
    assert command in check.look_at
    assert f"expose {what} " not in check.look_at or what == "deployment/web"
    bare = preflight.service_found(Workload.attach(what, service="s"), [facts("s", selector={})],
                                   labels)  # fmt: skip
    assert bare.look_at == "kubectl -n default set selector service s 'app=web'"


@pytest.mark.parametrize(
    ("what", "kind", "command"),
    [
        ("deployment/web", Controller.DEPLOYMENT, "scale deployment/web --replicas=1"),
        ("app=web", Controller.STATEFUL_SET, "scale statefulset/web --replicas=1"),
        ("ds/web", Controller.DAEMON_SET, "get daemonset/web -o wide; kubectl get nodes"),
        ("app=web", None, "get pods -l app=web"),
    ],
)
def test_the_command_for_a_workload_without_pods_is_one_for_its_kind(
    what: str, kind: Controller | None, command: str
) -> None:
    check = preflight.workload_wanted(Workload.attach(what), 0, kind, "web" if kind else "")
    assert not check.passed
    assert check.look_at.startswith(f"kubectl -n default {command}")


@pytest.mark.parametrize("port", [None, 80, "http"])
def test_a_service_that_is_the_one(port: int | str | None) -> None:
    services = [facts("other", selector={"app": "x"}), facts(), facts("udp", ports=(UDP,))]
    check = preflight.service_found(Workload.attach("deployment/web", port=port), services, LABELS)
    assert check.passed
    assert check.observed == "Service web, port http:80/tcp"


@pytest.mark.parametrize(
    ("affinity", "pods", "going", "strangers", "passed"),
    [
        ("None", 3, 1, 0, True),
        ("None", 3, 3, 1, True),
        ("ClientIP", 3, 1, 0, False),
        ("ClientIP", 3, 3, 0, True),
        ("ClientIP", 1, 1, 0, True),
        ("ClientIP", 3, 3, 1, False),  # to a canary's, perhaps
    ],
)
def test_flows_that_are_pinned_to_one_pod_need_all_pods_to_end(
    affinity: str, pods: int, going: int, strangers: int, passed: bool
) -> None:
    check = preflight.target_reached(affinity, pods, going, strangers)
    assert check.passed is passed
    assert ("--service" in check.look_at) == (strangers > 0)


READY: dict[str, object] = {"name": "a", "ready": True}


@pytest.mark.parametrize(
    ("pods", "unsettled", "passed", "observed"),
    [
        ({"1": READY, "2": {**READY, "name": "b"}}, None, True, "2 ready of 2"),
        ({"1": READY}, None, False, "1 ready of 1"),
        ({}, None, False, "0 ready of 0"),
        ({"1": READY, "2": {"name": "b", "ready": False}}, None, False, "b not ready"),
        ({"1": READY, "2": {**READY, "deletion_timestamp": "x"}}, None, False, "a terminating"),
        ({"1": READY, "2": READY}, "1 of 2 up to date", False, "1 of 2 up to date"),
    ],
)
def test_pods_are_as_the_workload_wants_them(
    pods: dict[str, dict[str, object]], unsettled: str | None, passed: bool, observed: str
) -> None:
    check = preflight.pods_settled(Workload.attach("deployment/web"), pods, 2, unsettled)
    assert check.passed is passed
    assert observed in check.observed
    assert "rollout status deployment/web" in check.look_at


@pytest.mark.parametrize(
    ("status", "error", "passed", "observed"),
    [
        (HttpStatus(lanes=4, ready=4, identified=4), None, True, "4 of 4 clients"),
        (HttpStatus(lanes=4, ready=4, identified=3), None, False, "3 of them with X-Pod"),
        (HttpStatus(lanes=4, ready=1, problem="status 404"), None, False, "status 404"),
        (None, None, False, "0 of 4 clients"),
        (HttpStatus(lanes=4, ready=4, identified=4), "it died", False, "it died"),
    ],
)
def test_requests_are_answered_as_they_should_be(
    status: HttpStatus | None, error: str | None, passed: bool, observed: str
) -> None:
    wanted = Http(path=f"/x?token={SECRET}", keepalive=4, idle=0, identity_header="X-Pod")
    check = preflight.requests_answered(wanted, status, error)
    assert check.passed is passed
    assert check.hopeless is (error is not None)
    assert observed in check.observed
    assert SECRET not in str(check)


def staged(provider: str, asked: Scenario, address: Address | None = None) -> tuple[Any, list[Any]]:
    """As much of a stage as choosing an address takes, and what was recorded."""
    seen: list[Any] = []
    stage = SimpleNamespace(
        cluster=SimpleNamespace(provider=provider),
        placement=Placement(address=address),
        scenario=asked,
        recorder=seen.append,
    )
    return stage, seen


INSIDE = Scenario(
    workload=Workload.attach("deployment/web"), service=Service(access=Access.CLUSTER_IP)
)
ANY = Scenario(workload=Workload.attach("deployment/web"))
NO_NODE_PORT = {"ports": (replace(facts().ports[0], node_port=None),), "kind": "ClusterIP"}


@pytest.mark.parametrize(
    ("provider", "asked", "service", "address", "access"),
    [
        ("existing", ANY, {}, None, Access.NODE_PORT),
        ("existing", ANY, {"ingress": ("192.0.2.1",)}, None, Access.LOAD_BALANCER),
        ("existing", ANY, NO_NODE_PORT, Address(host="192.0.2.7"), Access.NODE_PORT),
        ("embedded", ANY, NO_NODE_PORT, None, Access.CLUSTER_IP),
        ("embedded", ANY, {}, None, Access.NODE_PORT),
        ("embedded", INSIDE, {}, None, Access.CLUSTER_IP),
        ("existing", INSIDE, {}, None, Access.NODE_PORT),  # nobody can be inside there
        ("existing", ANY, NO_NODE_PORT, None, None),
        ("embedded", ANY, {**NO_NODE_PORT, "cluster_ip": None}, None, None),
    ],
)
def test_by_which_address_it_is_reached(
    provider: str,
    asked: Scenario,
    service: dict[str, Any],
    address: Address | None,
    access: Access | None,
) -> None:
    spec = PodSpec(grace_period_s=30, containers=())
    behind = facts(**service)
    found = Found(
        namespace="shop", kind=Controller.DEPLOYMENT, name="web", selector="app=web", rule={},
        replicas=1, spec=spec, service=behind, port=behind.ports[0],
    )  # fmt: skip
    stage, seen = staged(provider, asked, address)
    if access is not None:
        assert attaching._access(stage, found) is access
        return
    with pytest.raises(TrialVoid, match="address-known") as caught:
        attaching._access(stage, found)
    assert "kubectl -n shop patch service web" in str(caught.value)
    assert "port-forward" in str(caught.value)
    assert seen[0].data["passed"] is False


@pytest.mark.parametrize(
    ("hook", "config"),
    [
        (None, None),
        ({"sleep_seconds": 5}, {"sleep_seconds": 5}),
        ({"exec": NOT_RECORDED}, {"exec": [NOT_RECORDED]}),
        ({"http_get": NOT_RECORDED}, {"exec": [NOT_RECORDED]}),
    ],
)
def test_the_scenario_says_what_is_known_of_the_workload(
    hook: dict[str, object] | None, config: dict[str, object] | None
) -> None:
    container = ContainerSpec(
        name="server", pre_stop=hook, stop_signal=None, readiness=None, ports=()
    )
    found = Found(
        namespace="shop", kind=Controller.DEPLOYMENT, name="web", selector="app=web", rule={},
        replicas=3, spec=PodSpec(grace_period_s=45, containers=(container,)),
        service=facts(session_affinity="ClientIP", publish_not_ready=True), port=facts().ports[0],
    )  # fmt: skip
    known = attaching._as_it_is(ANY, found, Access.NODE_PORT)
    said = known.config()
    assert (said["grace_period_seconds"], said["replicas"], said["pre_stop"]) == (45, 3, config)
    assert said["session_affinity"] == "ClientIP"
    assert said["publish_not_ready_addresses"] is True
    assert said["attached"]["service"] == "web"  # type: ignore[index]
    assert known.observe_ns > 45_000_000_000
