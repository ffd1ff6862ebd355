"""Whose pods are the workload's, also when their labels are gone."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.workload.following import Followed, rule_of

LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"))


def pod(uid: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"uid": uid, "labels": labels or None}}


def test_a_pod_that_loses_its_labels_is_followed_on() -> None:
    mine = Followed({"matchLabels": {"app": "web"}})
    assert mine(pod("one", app="web"))
    assert mine(pod("one"))
    assert not mine(pod("two")), "one that never had them is somebody else's"
    assert not mine(pod("three", app="db"))


@given(st.lists(st.tuples(st.sampled_from(["p", "q"]), LABELS)))
def test_once_one_of_them_always_one_of_them(seen: list[tuple[str, dict[str, str]]]) -> None:
    mine, known = Followed({"matchLabels": {"a": "x"}}), set[str]()
    for uid, labels in seen:
        expected = uid in known or labels.get("a") == "x"
        assert mine(pod(uid, **labels)) is expected
        known |= {uid} if expected else set()


def test_a_query_as_a_rule() -> None:
    assert rule_of("app=web,tier==front") == {"matchLabels": {"app": "web", "tier": "front"}}
