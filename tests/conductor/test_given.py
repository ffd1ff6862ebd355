"""A namespace that is given is left as it was: what the trial made goes, nothing else does."""

from __future__ import annotations

from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from pytest_drainwatch.workload import given, manifests
from pytest_drainwatch.workload.namespace import owner
from pytest_drainwatch.workload.place import TRIAL_LABEL, Place
from tests.conductor.api_server import Call, reply, serving

PLACE = Place(namespace="team", trial="dw-x")
KINDS = ("deployments", "statefulsets", "daemonsets", "services", "pods")


class Namespace:
    """Objects by kind and name; the trial of each, and its owner."""

    def __init__(self, *there: tuple[str, str, str | None, str]) -> None:
        self.there: dict[tuple[str, str], dict[str, Any]] = {
            (kind, name): {
                "metadata": {
                    "name": name,
                    "uid": f"uid-{name}",
                    "labels": {TRIAL_LABEL: trial} if trial else {},
                    "annotations": {manifests.OWNER_ANNOTATION: who} if who else {},
                }
            }
            for kind, name, trial, who in there
        }
        self.refused: set[str] = set()
        self.bodies: list[Any] = []

    def __call__(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        url = urlsplit(call.path)
        words = url.path.split("/namespaces/team/")[1].split("/")
        if call.method == "DELETE":
            kind, name = words
            self.bodies.append(call.body)
            if (kind, name) not in self.there:
                return reply(handler, {"message": "not found"}, 404)
            del self.there[kind, name]
            return reply(handler, {"kind": "Status"})
        (kind,) = words
        if kind in self.refused:
            return reply(handler, {"message": "no"}, 403)
        selector = parse_qs(url.query)["labelSelector"][0]
        key, _, value = selector.partition("=")
        found = [
            item
            for (of, _), item in self.there.items()
            if of == kind
            and key in item["metadata"]["labels"]
            and (not value or item["metadata"]["labels"][key] == value)
        ]
        return reply(handler, {"items": found})


def world() -> Namespace:
    return Namespace(
        ("deployments", "web", None, ""),
        ("deployments", "dw-x", "dw-x", "me"),
        ("services", "dw-x", "dw-x", "me"),
        ("services", "dw-y", "dw-y", "me"),
        ("pods", "dw-x-1", "dw-x", ""),
        ("pods", "dw-x-client", "dw-x", "me"),
        ("pods", "dw-y-1", "dw-y", ""),
        ("pods", "web-1", None, ""),
    )


OTHERS = {
    ("deployments", "web"),
    ("services", "dw-y"),
    ("pods", "dw-y-1"),
    ("pods", "web-1"),
}


@pytest.mark.parametrize("error", [None, LookupError, KeyboardInterrupt])
def test_what_the_trial_made_is_removed_however_it_ends(
    error: type[BaseException] | None, tmp_path: Path
) -> None:
    there, said = world(), list[str]()
    with serving(there, tmp_path) as (api, _):
        expected = pytest.raises(error) if error else nullcontext()
        with (
            expected,
            given.given_namespace(api, PLACE, keep=lambda: False, say=said.append),
        ):
            if error:
                raise error
    assert there.there.keys() == OTHERS
    assert said == []
    assert all(body["preconditions"]["uid"].startswith("uid-dw-x") for body in there.bodies)


def test_what_is_to_be_kept_stays(tmp_path: Path) -> None:
    there = world()
    with (
        serving(there, tmp_path) as (api, _),
        given.given_namespace(api, PLACE, keep=lambda: True, say=print),
    ):
        pass
    assert there.there.keys() == world().there.keys()


def test_what_could_not_be_removed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given, "PODS_GONE_S", 0.0)
    there, said = world(), list[str]()
    there.refused = {"services"}

    def stays(handler: BaseHTTPRequestHandler, call: Call) -> None:
        if call.method == "DELETE" and "/pods/" in call.path:
            return reply(handler, {"message": "no"}, 403)
        return there(handler, call)

    with (
        serving(stays, tmp_path) as (api, _),
        given.given_namespace(api, PLACE, keep=lambda: False, say=said.append),
    ):
        pass
    (line,) = said
    assert "perhaps services: they may not be listed" in line
    assert "pod dw-x-1, pod dw-x-client" in line
    assert "kubectl -n team get all -l drainwatch/trial=dw-x" in line


def test_a_sweep_takes_what_dead_runs_left_and_nothing_else(tmp_path: Path) -> None:
    boot, _, _, pid_namespace = owner().split("/")
    dead = f"{boot}/4194305/1/{pid_namespace}"
    there = Namespace(
        ("deployments", "dw-a", "dw-a", dead),
        ("services", "dw-a", "dw-a", dead),
        ("deployments", "dw-b", "dw-b", owner()),
        ("deployments", "dw-c", "dw-c", "another-boot/1/1/1"),
        ("deployments", "dw-d", "dw-d", ""),
        ("deployments", "web", None, dead),
    )
    there.refused = {"daemonsets"}
    with serving(there, tmp_path) as (api, _):
        assert given.sweep(api, "team") == ["dw-a"]
    assert {name for _, name in there.there} == {"dw-b", "dw-c", "dw-d", "web"}


def test_a_namespace_tells_its_phase_or_why_not(tmp_path: Path) -> None:
    answers = [
        ({"metadata": {"name": "team"}, "status": {"phase": "Terminating"}}, 200),
        ({"message": 'namespaces "team" not found'}, 404),
    ]

    def answer(handler: BaseHTTPRequestHandler, _: Call) -> None:
        body, status = answers.pop(0)
        reply(handler, body, status)

    with serving(answer, tmp_path) as (api, _):
        assert given.state(api, "team") == "Terminating"
        assert given.state(api, "team") == 'HTTP 404: namespaces "team" not found'
