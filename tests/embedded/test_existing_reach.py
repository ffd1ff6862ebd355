"""From a kubeconfig to a cluster: what is refused before anything is asked, and what is read."""

from __future__ import annotations

import base64
import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.cluster import ClusterError, ClusterSettings
from pytest_drainwatch.cluster.existing import nodes
from pytest_drainwatch.cluster.existing.credentials import expiry
from pytest_drainwatch.cluster.existing.production import looks_like_production
from pytest_drainwatch.cluster.opening import open_cluster
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import loads
from pytest_drainwatch.core.scenario import Scenario, Workload
from pytest_drainwatch.placement import Placement
from pytest_drainwatch.trial import TrialVoid, prepare
from tests.conductor.api_server import Call, reply, serving
from tests.conductor.test_interrupts import Silent


@pytest.mark.parametrize(
    "text",
    [
        "prod",
        "eu-prod",
        "prod_eu",
        "PROD",
        "my.production.cluster",
        "prod1",
        "live",
        "https://live.x",
    ],
)
def test_what_looks_like_production(text: str) -> None:
    assert looks_like_production({"context": "dev", "cluster": text}) == f"cluster {text!r}"


@pytest.mark.parametrize(
    "text", ["", "dev", "product", "reproduce", "delivery", "alive", "olive", "liveness", "preprod"]
)
def test_what_does_not(text: str) -> None:
    assert looks_like_production({"context": text}) is None


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1), st.sampled_from("-_. /:0"))
def test_a_word_is_one_wherever_it_stands(word: str, between: str) -> None:
    assert looks_like_production({"context": f"{word}{between}live{between}{word}"})
    assert looks_like_production({"context": f"x{word}live"}) is None


def renamed(folder: Path, what: str, name: str) -> Path:
    """The kubeconfig of the scripted server, its context or cluster called otherwise."""
    told = yaml.safe_load((folder / "kubeconfig").read_text())
    if what == "context":
        told["current-context"] = told["contexts"][0]["name"] = name
    else:
        told["clusters"][0]["name"] = told["contexts"][0]["context"]["cluster"] = name
    file = folder / "renamed"
    file.write_text(yaml.safe_dump(told))
    return file


class Answers:
    """An API server with nodes; keeps what it was asked."""

    def __init__(self, status: int = 200, message: str = "no") -> None:
        self.status, self.message = status, message

    def __call__(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        if call.path.startswith("/api/v1/nodes"):
            items = [node_object("a", "10.0.0.1")]
            body = {"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": items}
            return reply(
                handler, body if self.status == 200 else {"message": self.message}, self.status
            )
        return reply(handler, {"message": "not here"}, 404)


def node_object(name: str, address: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {},
        "status": {
            "addresses": [{"type": "InternalIP", "address": address}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


@pytest.mark.parametrize("what", ["context", "cluster"])
def test_a_context_that_looks_like_production_is_not_even_asked(what: str, tmp_path: Path) -> None:
    with serving(Answers(), tmp_path) as (_, script):
        wanted = ClusterSettings(provider="existing", kubeconfig=renamed(tmp_path, what, "eu-prod"))
        with pytest.raises(ClusterError, match=f"'context-allowed' failed[^§]*{what} 'eu-prod'"):
            open_cluster(wanted, why="", log=print)
        assert script.calls == []


@pytest.mark.parametrize(("what", "allowed"), [("context", "eu-prod"), ("cluster", "c")])
def test_it_is_used_if_its_context_is_named(what: str, allowed: str, tmp_path: Path) -> None:
    with serving(Answers(), tmp_path):
        config = renamed(tmp_path, what, "eu-prod")
        wanted = ClusterSettings(provider="existing", kubeconfig=config, allow_context=allowed)
        assert open_cluster(wanted, why="", log=print).node_address == "10.0.0.1"


def test_the_name_of_another_context_allows_nothing(tmp_path: Path) -> None:
    with serving(Answers(), tmp_path):
        config = renamed(tmp_path, "context", "eu-prod")
        wanted = ClusterSettings(provider="existing", kubeconfig=config, allow_context="us-prod")
        with pytest.raises(ClusterError, match="--dw-allow-context=us-prod names another one"):
            open_cluster(wanted, why="", log=print)


@pytest.mark.parametrize("context", [None, "c"])
def test_it_is_named_after_its_context_and_never_after_a_path(
    context: str | None, tmp_path: Path
) -> None:
    """What it cannot do is recorded with its name, and a path may say whose home it is."""
    with serving(Answers(), tmp_path):
        config = tmp_path / "kubeconfig"
        wanted = ClusterSettings(provider="existing", kubeconfig=config, context=context)
        cluster = open_cluster(wanted, why="", log=print)
    assert cluster.name == "c"
    with pytest.raises(ClusterError) as caught:
        cluster.killer("uid", "id")
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("given", [False, True], ids=["attached", "given"])
@pytest.mark.parametrize(
    ("namespace", "allowed", "refused"),
    [
        ("production", None, True),
        ("shop-prod", "another", True),
        ("production", "c", False),
        ("shop", None, False),
    ],
)
def test_somebodys_namespace_that_looks_like_production_is_left_alone(
    namespace: str, allowed: str | None, refused: bool, given: bool, tmp_path: Path
) -> None:
    """A context called "main" says nothing of the namespaces in it."""
    theirs = Workload.attach("deployment/web", namespace=namespace)
    with serving(Answers(), tmp_path) as (_, script):
        wanted = ClusterSettings(
            provider="existing",
            kubeconfig=tmp_path / "kubeconfig",
            allow_context=allowed,
            probe_image="probe",
        )
        cluster = open_cluster(wanted, why="", log=print)
        before = len(script.calls)
        with (
            pytest.raises(TrialVoid) as caught,
            prepare(
                cluster,
                Scenario(workload=None if given else theirs),
                folder=tmp_path / "r00",
                keep=lambda **_: False,
                progress=Silent(),
                placement=Placement(namespace=namespace if given else None),
            ),
        ):
            pass
        assert (len(script.calls) == before) is refused, "nothing of it is asked for"
    said = str(caught.value)
    assert ("'context-allowed' failed" in said) is refused
    if refused:
        assert f"namespace {namespace!r} has the word" in said
        assert "--dw-allow-context c" in said
    recorded = loads((tmp_path / "r00" / "recording.jsonl").read_text()).observations
    assert recorded[-1].event is Event.VOID


def test_nodes_that_may_not_be_listed_are_not_known(tmp_path: Path) -> None:
    with serving(Answers(403), tmp_path):
        wanted = ClusterSettings(provider="existing", kubeconfig=tmp_path / "kubeconfig")
        found = open_cluster(wanted, why="", log=print)
    assert found.node_address is None
    assert found.node_addresses == {}
    assert found.facts().nodes is None


def test_credentials_that_are_not_accepted_are_named(tmp_path: Path) -> None:
    with serving(Answers(401), tmp_path):
        wanted = ClusterSettings(provider="existing", kubeconfig=tmp_path / "kubeconfig")
        with pytest.raises(ClusterError, match=r"'credentials-accepted' failed[^§]*auth whoami"):
            open_cluster(wanted, why="", log=print)


def test_without_credentials_one_is_nobody_and_is_told_so(tmp_path: Path) -> None:
    """Else the command that helps would grant rights to everybody."""
    message = 'nodes is forbidden: User "system:anonymous" cannot list resource "nodes"'
    with serving(Answers(403, message), tmp_path):
        wanted = ClusterSettings(provider="existing", kubeconfig=tmp_path / "kubeconfig")
        with pytest.raises(ClusterError, match=r"'credentials-accepted' failed[^§]*anonymous"):
            open_cluster(wanted, why="", log=print)


def test_any_other_refusal_is_told_as_it_is(tmp_path: Path) -> None:
    with serving(Answers(503), tmp_path):
        wanted = ClusterSettings(provider="existing", kubeconfig=tmp_path / "kubeconfig")
        with pytest.raises(ClusterError, match="can't be asked for its nodes: HTTP 503"):
            open_cluster(wanted, why="", log=print)


def node(name: str, address: str | None = None, **differs: Any) -> Any:
    spec = {"unschedulable": None, "taints": None, **differs}
    told = [SimpleNamespace(type="Hostname", address=name)]
    if address:
        told.append(SimpleNamespace(type="InternalIP", address=address))
    ready = SimpleNamespace(type="Ready", status=differs.get("ready", "True"))
    return SimpleNamespace(
        metadata=SimpleNamespace(name=name),
        spec=SimpleNamespace(**spec),
        status=SimpleNamespace(addresses=told, conditions=[ready]),
    )


CORDON = SimpleNamespace(key=nodes.CORDONED, effect="NoSchedule")
TAINT = [SimpleNamespace(key="role", effect="NoSchedule")]


def test_nodes_that_take_pods_come_first() -> None:
    found = nodes.read(
        [
            node("control", "10.0.0.1", taints=TAINT),
            node("b", "10.0.0.3", taints=[SimpleNamespace(key="role", effect="PreferNoSchedule")]),
            node("a", "10.0.0.2"),
            node("cordoned", "10.0.0.4", unschedulable=True),
            node("uncordoned", "10.0.0.6", taints=[CORDON]),
            node("dead", "10.0.0.5", ready="Unknown"),
            node("nameless"),
        ]
    )
    assert (found.seen, found.taking) == (7, 4)
    assert found.addresses == {"a": "10.0.0.2", "b": "10.0.0.3", "uncordoned": "10.0.0.6"}
    assert found.first == "10.0.0.2"


def test_a_node_port_answers_on_nodes_that_take_no_pods_too() -> None:
    found = nodes.read([node("control", "10.0.0.1", taints=TAINT)])
    assert (found.taking, found.addresses, found.first) == (0, {}, "10.0.0.1")
    assert nodes.read([node("a")]).first is None


def jwt(claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"Bearer e30.{body}.c2ln"


def test_a_token_says_when_it_expires() -> None:
    token = jwt({"exp": 1_000_000_000})
    assert expiry(token, 1_000_000_000) == "the token expired 2001-09-09 01:46:40 UTC"
    assert expiry(token, 999_999_999.0) == "the token is good until 2001-09-09 01:46:40 UTC"


@given(st.text())
def test_what_is_no_token_says_nothing(text: str) -> None:
    assert expiry(text) is None or "exp" in text


@pytest.mark.parametrize("claims", [{}, [], {"exp": None}, {"exp": 1e300}, "text"])
def test_what_a_token_does_not_say_is_not_known(claims: object) -> None:
    assert expiry(jwt(claims)) is None
