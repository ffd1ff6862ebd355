"""Rights are asked for, all of them, and what is missing is named at once."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from pytest_drainwatch.api import Api
from pytest_drainwatch.cli import main
from pytest_drainwatch.core.scenario import Scenario, Trigger, Workload
from pytest_drainwatch.preflight import Check
from pytest_drainwatch.rights.checking import grant_command, look
from pytest_drainwatch.rights.review import Subject, attributes
from pytest_drainwatch.rights.right import Right, Where
from pytest_drainwatch.workload.place import Place
from tests.conductor.api_server import Call, reply, serving


class Authorizer:
    """Allows all but some verbs on some resources; keeps what it was asked."""

    def __init__(
        self,
        *refused: tuple[str, str],
        who: str | None = "jane",
        says: dict[str, str] | None = None,
    ) -> None:
        self.refused, self.who, self.says = set(refused), who, says or {}
        self.asked: list[dict[str, Any]] = []

    def __call__(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        if "selfsubjectreviews" in call.path:
            if self.who is None:
                return reply(handler, {"message": "no such resource"}, 404)
            return reply(handler, {"status": {"userInfo": {"username": self.who}}}, 201)
        spec = call.body["spec"]
        self.asked.append(spec)
        about = spec.get("resourceAttributes") or spec["nonResourceAttributes"]
        subresource = about.get("subresource")
        what = about.get("resource", about.get("path")) + (f"/{subresource}" if subresource else "")
        allowed = (about.get("verb"), what) not in self.refused
        status = {"allowed": allowed} | ({} if allowed else self.says)
        return reply(handler, {**call.body, "status": status}, 201)


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
    assert re.fullmatch(
        "drainwatch rbac --service-account ci:runner --trigger evict --controller deployment "
        r"--access nodeport --name drainwatch-[0-9a-f]{8} \| kubectl apply -f -",
        found.look_at,
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


def test_a_path_that_is_not_everybodys_any_more_is_given_back_by_its_own_role(
    tmp_path: Path,
) -> None:
    """Within a namespace no Role holds a path, and the ClusterRole of other trials is too broad."""
    found = looked(Authorizer(("get", "/version")), tmp_path, Scenario(), trial="dw-x")
    assert re.fullmatch(
        "kubectl create clusterrolebinding drainwatch-[0-9a-f]{8} "
        "--clusterrole system:public-info-viewer --user jane",
        found.look_at,
    )
    both = Authorizer(("get", "/version"), ("create", "services"), who=None)
    found = looked(both, tmp_path, Scenario(), trial="dw-x")
    assert found.look_at.startswith("drainwatch rbac --namespace n ")
    assert found.look_at.endswith("--group system:authenticated")
    found = looked(Authorizer(("get", "/version")), tmp_path, Scenario())
    assert "clusterrolebinding" not in found.look_at, "the ClusterRole has it"


def test_a_right_on_nodes_does_not_make_the_rest_a_cluster_role(tmp_path: Path) -> None:
    theirs = Scenario(
        workload=Workload.attach("deployment/web", namespace="n"), trigger=Trigger.EVACUATE_NODE
    )
    found = looked(Authorizer(("patch", "nodes")), tmp_path, theirs)
    words = shlex.split(found.look_at.partition(" | ")[0])[2:]
    granted_of = objects_of(words)
    assert {o["metadata"].get("namespace") for o in granted_of if o["kind"] == "Role"} == {"n"}
    (role,) = [o for o in granted_of if o["kind"] == "ClusterRole"]
    assert {tuple(rule["resources"]) for rule in role["rules"]} == {
        ("nodes",),
        ("pods",),
        ("pods/eviction",),
    }, "and no more than that everywhere"


def objects_of(words: list[str]) -> list[dict[str, Any]]:
    """What the command prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert main(["rbac", *words]) == 0
    return list(yaml.safe_load_all(said.getvalue()))


ATTACHED = Workload.attach("deployment/web", namespace="n")


@pytest.mark.parametrize("trigger", [Trigger.EVICT, Trigger.EVACUATE_NODE])
@pytest.mark.parametrize(("theirs", "given"), [(False, False), (False, True), (True, False)])
def test_what_the_printed_command_applies_takes_no_right_away(
    trigger: Trigger, theirs: bool, given: bool
) -> None:
    """`kubectl apply` replaces a role's rules and a binding's subjects, by kind and name."""
    scenario = Scenario(workload=ATTACHED if theirs else None, trigger=trigger)
    stage: Any = SimpleNamespace(
        scenario=scenario, namespace="n", place=Place(namespace="n", trial="x" if given else None)
    )
    applied: dict[tuple[str, str, str], dict[str, Any]] = {}

    def apply(words: list[str]) -> None:
        for each in objects_of(words):
            about = each["metadata"]
            key = (each["kind"], str(about.get("namespace")), about["name"])
            assert applied.get(key, each) == each, "it replaces another one"
            applied[key] = each

    apply([*(["--namespace", "n"] if theirs or given else []), *(["--attach"] if theirs else [])])
    for who in ("jane", "system:serviceaccount:ci:runner"):
        missing = [Right(verb="watch", resource="pods", why="x")]
        command, pipe, _ = grant_command(stage, Subject(who), missing).partition(" | kubectl apply")
        assert pipe
        apply(shlex.split(command)[2:])


def test_an_authorizer_that_fails_is_told_as_one(tmp_path: Path) -> None:
    """Then nobody knows whether we may: the API server says no, and why."""
    says = {"evaluationError": "webhook authz: connection refused", "reason": "no opinion"}
    found = looked(Authorizer(("watch", "pods"), says=says), tmp_path, Scenario())
    assert not found.passed
    assert found.observed.endswith(
        ". The API server says: no opinion, webhook authz: connection refused"
    )
    found = looked(Authorizer(("list", "nodes"), says=says), tmp_path, Scenario())
    assert found.passed
    assert "The API server says" not in found.observed


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
