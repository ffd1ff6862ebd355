"""Where the Service answers outside of the cluster: the user's word, a balancer's, a node's."""

from __future__ import annotations

import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_drainwatch import outside
from pytest_drainwatch.core.scenario import Access, Scenario, Service
from pytest_drainwatch.placement import Address, Placement
from pytest_drainwatch.preflight import TrialVoid
from pytest_drainwatch.stage import Stage
from tests.conductor.api_server import Call, reply, serving
from tests.conductor.test_interrupts import stage

Answer = Callable[[BaseHTTPRequestHandler, Call], None]


def staged(folder: Path, **differs: Any) -> Stage:
    found = stage(folder)
    cluster: Any = SimpleNamespace(node_address=None)
    found.cluster = cluster
    for name, value in differs.items():
        setattr(found, name, value)
    return found


def test_what_the_user_says_goes_before_all_else(tmp_path: Path) -> None:
    said = Placement(address=Address(host="192.0.2.7", port=30080))
    cluster: Any = SimpleNamespace(node_address="10.0.0.1")
    asking = staged(tmp_path, placement=said, cluster=cluster)
    assert outside.address(asking) == "192.0.2.7"
    assert outside.port(asking, 7001) == 30080
    asking.placement = Placement(address=Address(host="192.0.2.7"))
    assert outside.port(asking, 7001) == 7001
    asking.placement = Placement()
    assert outside.address(asking) == "10.0.0.1"
    assert outside.port(asking, 7001) == 7001
    asking.recorder.close()


def test_a_name_becomes_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flows and probers connect without waiting for a resolver."""

    def resolve(host: str, *_: object, **__: object) -> list[object]:
        if host != "lb.example.com":
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.9", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    asking = staged(tmp_path, placement=Placement(address=Address(host="lb.example.com")))
    assert outside.address(asking) == "192.0.2.9"
    asking.placement = Placement(address=Address(host="nobody"))
    with pytest.raises(TrialVoid, match="nobody cannot be resolved: Name or service not known"):
        outside.address(asking)
    asking.recorder.close()


def services(*answers: tuple[object, int]) -> Answer:
    left = list(answers)

    def answer(handler: BaseHTTPRequestHandler, _: Call) -> None:
        body, status = left.pop(0) if len(left) > 1 else left[0]
        reply(handler, body, status)

    return answer


def service(kind: str, *ingress: dict[str, str]) -> dict[str, object]:
    return {
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"type": kind, "ports": []},
        "status": {"loadBalancer": {"ingress": list(ingress)} if ingress else {}},
    }


BALANCED = Scenario(service=Service(access=Access.LOAD_BALANCER))
PENDING, GIVEN = service("LoadBalancer"), service("LoadBalancer", {"ip": "192.0.2.8"})


def test_a_balancer_is_waited_for(tmp_path: Path) -> None:
    answer = services(({"message": "later"}, 500), (PENDING, 200), (PENDING, 200), (GIVEN, 200))
    with serving(answer, tmp_path) as (api, script):
        asking = staged(tmp_path, api=api, scenario=BALANCED)
        assert outside.address(asking) == "192.0.2.8"
        assert len(script.calls) == 4
    asking.recorder.close()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((PENDING, 200), "it has no ingress address"),
        ((service("NodePort"), 200), "the Service's type is NodePort"),
        (({"message": "no"}, 403), "HTTP 403: no"),
    ],
)
def test_a_balancer_that_does_not_come_is_named(
    answer: tuple[object, int], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "LOAD_BALANCER_TIMEOUT_S", 0.0)
    with serving(services(answer), tmp_path) as (api, _):
        asking = staged(tmp_path, api=api, scenario=BALANCED)
        with pytest.raises(TrialVoid, match=f"'address-known' failed[^§]*{said}"):
            outside.address(asking)
    asking.recorder.close()


def pods(*told: str | None) -> dict[str, object]:
    return {"items": [{"status": {"hostIP": each} if each else {}} for each in told]}


def test_where_nodes_may_not_be_listed_a_pod_tells_of_its_own(tmp_path: Path) -> None:
    answer = services((pods(), 200), (pods(None), 200), (pods(None, "10.0.0.3"), 200))
    with serving(answer, tmp_path) as (api, _):
        asking = staged(tmp_path, api=api)
        assert outside.address(asking) == "10.0.0.3"
    asking.recorder.close()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((pods(None), 200), r"none of 1 pod\(s\) is on a node yet"),
        (({"items": None}, 200), "an odd answer to the list of pods"),
        (({"message": "no"}, 403), "HTTP 403: no"),
    ],
)
def test_a_node_that_nobody_tells_is_named(
    answer: tuple[object, int], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "NODE_TIMEOUT_S", 0.0)
    with serving(services(answer), tmp_path) as (api, _):
        asking = staged(tmp_path, api=api)
        with pytest.raises(TrialVoid, match=f"'address-known' failed[^§]*{said}"):
            outside.address(asking)
    asking.recorder.close()
