"""Which budgets select which pods, by the rules of policy/v1 label selectors."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.workload import budgets
from tests.conductor.api_server import Call, reply, serving

WEB = {"app": "web", "tier": "front"}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "back"}}, False),
        ({"matchLabels": {"other": "web"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "x"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "none", "operator": "NotIn", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "none", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
        (
            {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["front"]}],
            },
            False,
        ),
    ],
)
def test_a_selector(selector: dict[str, Any] | None, matches: bool) -> None:
    assert budgets.selects(selector, WEB) is matches


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"))


@given(LABELS, st.sampled_from("abc"), st.sets(st.sampled_from("xyz"), min_size=1))
def test_each_rule_and_its_opposite_share_out_all_pods(
    labels: dict[str, str], key: str, values: set[str]
) -> None:
    def says(operator: str, *given: str) -> bool:
        rule = {"key": key, "operator": operator, "values": list(given)}
        return budgets.selects({"matchExpressions": [rule]}, labels)

    assert says("In", *values) is not says("NotIn", *values)
    assert says("Exists") is not says("DoesNotExist")


def cluster_with(rules: dict[str, Any], **status: Any) -> Any:
    pods = [{"metadata": {"name": name, "labels": WEB}} for name in ("p", "q")]
    pods.append({"metadata": {"name": "bare"}})

    def answer(handler: BaseHTTPRequestHandler, call: Call) -> None:
        if "poddisruptionbudgets" not in call.path:
            return reply(handler, {"items": pods})
        items = [
            {
                "metadata": {"name": name, "generation": 1},
                "spec": {"selector": rule, "minAvailable": 1},
                "status": status,
            }
            for name, rule in rules.items()
        ]
        reply(handler, {"items": items})

    return answer


def test_budgets_are_told_for_the_pods_that_are_to_go(tmp_path: Path) -> None:
    rules = {
        "mine": {"matchLabels": {"app": "web"}},
        "everybody": {},
        "typo": {"matchLabels": {"app": "wep"}},
        "nobody": None,
    }
    with serving(cluster_with(rules), tmp_path) as (api, _):
        found = budgets.read(api, "ns", ["p"])
    assert {pod: [b.name for b in on] for pod, on in found.selecting.items()} == {
        "p": ["mine", "everybody"]
    }
    assert found.idle == ("nobody", "typo")
    assert found.problem is None


def test_a_budget_on_another_pod_is_not_idle(tmp_path: Path) -> None:
    rules = {"bare": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}
    with serving(cluster_with(rules), tmp_path) as (api, _):
        found = budgets.read(api, "ns", ["p"])
    assert (found.selecting, found.idle) == ({"p": ()}, ())


JUDGED = {"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (
            {**JUDGED, "observedGeneration": 1},
            "mine (minAvailable 1), which allows 0 now: 2 pods are healthy and 2 must be",
        ),
        # Of the form before: what it allows is not known (K10: the API server refuses for 10 s).
        (JUDGED, "mine (minAvailable 1), not judged yet"),
        ({}, "mine (minAvailable 1), not judged yet"),
    ],
)
def test_a_budget_tells_what_it_allows(status: dict[str, Any], said: str, tmp_path: Path) -> None:
    rules = {"mine": {"matchLabels": {"app": "web"}}}
    with serving(cluster_with(rules, **status), tmp_path) as (api, _):
        ((budget,),) = budgets.read(api, "ns", ["p"]).selecting.values()
    assert str(budget) == said


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (403, {"message": "not for you"}, "HTTP 403"),
        (200, {"items": [{}]}, "an odd answer"),
        (200, {"odd": 1}, "an odd answer"),
        (200, [], "an odd answer"),
    ],
)
def test_what_is_not_told_is_not_known(
    status: int, body: object, says: str, tmp_path: Path
) -> None:
    def answer(handler: BaseHTTPRequestHandler, _: Call) -> None:
        reply(handler, body, status)

    with serving(answer, tmp_path) as (api, _):
        found = budgets.read(api, "ns", ["p"])
    assert says in str(found.problem)
    assert not found.selecting
