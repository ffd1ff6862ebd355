"""Rights are asked for, all of them, and what is missing is named at once."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_drainwatch.api import Api
from pytest_drainwatch.core.scenario import Scenario, Trigger
from pytest_drainwatch.preflight import Check
from pytest_drainwatch.rights.checking import look
from pytest_drainwatch.rights.review import attributes
from pytest_drainwatch.rights.right import Right, Where
from pytest_drainwatch.workload.place import Place
from tests.conductor.api_server import Call, reply, serving


class Authorizer:
    """Allows all but some verbs on some resources; keeps what it was asked."""

    def __init__(self, *refused: tuple[str, str], who: str | None = "jane") -> None:
        self.refused, self.who = set(refused), who
        self.asked: list[dict[str, Any]] = []

    def __call__(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        if "selfsubjectreviews" in call.path:
            if self.who is None:
                return reply(handler, {"message": "no such resource"}, 404)
            return reply(handler, {"status": {"userInfo": {"username": self.who}}}, 201)
        spec = call.body["spec"]
        self.asked.append(spec)
        about = spec.get("resourceAttributes") or {}
        subresource = about.get("subresource")
        what = about.get("resource", "") + (f"/{subresource}" if subresource else "")
        allowed = (about.get("verb"), what) not in self.refused
        return reply(handler, {**call.body, "status": {"allowed": allowed}}, 201)


def stage_on(api: Api, scenario: Scenario, trial: str | None = None) -> Any:
    place = Place(namespace="n", trial=trial)
    return SimpleNamespace(api=api, scenario=scenario, namespace="n", place=place, found=None)


def looked(authorizer: Authorizer, folder: Path, scenario: Scenario, **where: str) -> Check:
    with serving(authorizer, folder) as (api, _):
        return look(stage_on(api, scenario, **where))


def test_with_every_right_the_check_passes(tmp_path: Path) -> None:
    authorizer = Authorizer()
    found = looked(authorizer, tmp_path, Scenario())
    assert found.passed
    assert found.observed == f"all of {len(authorizer.asked)}"
    namespaces = {s["resourceAttributes"]["namespace"] for s in authorizer.asked[1:]}
    assert namespaces == {"n", "kube-system", ""}


def test_everything_that_is_missing_is_named_at_once_with_the_command(tmp_path: Path) -> None:
    refused = [("create", "pods/eviction"), ("watch", "pods"), ("create", "namespaces")]
    authorizer = Authorizer(*refused, who="system:serviceaccount:ci:runner")
    found = looked(authorizer, tmp_path, Scenario(trigger=Trigger.EVICT))
    assert not found.passed
    assert found.hopeless, "waiting grants nothing"
    assert found.observed.startswith("system:serviceaccount:ci:runner may not: ")
    for words in (
        "create pods/eviction in namespace n (trigger evict)",
        "watch pods in namespace n (the pods' states, as they change)",
        "create namespaces (a namespace for each trial, removed after it)",
    ):
        assert words in found.observed
    assert found.look_at == (
        "drainwatch rbac --service-account ci:runner --trigger evict --controller deployment "
        "--access nodeport | kubectl apply -f -"
    )


def test_what_is_optional_is_told_and_fails_nothing(tmp_path: Path) -> None:
    found = looked(Authorizer(("list", "nodes"), ("get", "configmaps")), tmp_path, Scenario())
    assert found.passed
    assert "done without: list nodes (node addresses" in found.observed
    assert "get configmaps kube-proxy in namespace kube-system" in found.observed


def test_in_a_given_namespace_a_role_there_is_all_that_is_asked_for(tmp_path: Path) -> None:
    found = looked(Authorizer(("create", "services")), tmp_path, Scenario(), trial="dw-x")
    assert "--namespace n --user jane " in found.look_at
    # An API server that does not tell who we are leaves the name to whoever types.
    found = looked(Authorizer(("create", "services"), who=None), tmp_path, Scenario())
    assert found.observed.startswith("we may not: ")
    assert "--user" not in found.look_at


@pytest.mark.parametrize("status", [401, 403, 500])
def test_a_server_that_does_not_say_is_no_yes(status: int, tmp_path: Path) -> None:
    def refuse(handler: BaseHTTPRequestHandler, _: Call) -> None:
        reply(handler, {"message": "no"}, status)

    with serving(refuse, tmp_path) as (api, _):
        found = look(stage_on(api, Scenario()))
    assert not found.passed
    assert f"HTTP {status}" in found.observed


def test_each_place_is_asked_about_in_its_own_way() -> None:
    def about(where: Where, resource: str = "pods/log") -> dict[str, object]:
        return attributes(Right(verb="get", resource=resource, where=where, why="x"), "n")

    path = about(Where.PATH, "/version")
    assert path == {"nonResourceAttributes": {"verb": "get", "path": "/version"}}
    asked: Any = about(Where.NAMESPACE)["resourceAttributes"]
    assert (asked["resource"], asked["subresource"], asked["namespace"]) == ("pods", "log", "n")
    everywhere: Any = about(Where.EVERYWHERE)["resourceAttributes"]
    assert everywhere["namespace"] == ""
