"""Scenarios: what can be asked, what is refused, what is flagged."""

from __future__ import annotations

import pytest

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.scenario import App, Flows, Scenario, ScenarioError, Trigger, matrix


def test_ids_join_behavior_and_trigger() -> None:
    ids = [found.id for found in matrix(behavior=["drain", "ignore"], trigger=["delete", "scale"])]
    assert ids == ["drain-delete", "drain-scale", "ignore-delete", "ignore-scale"]


def test_only_drain_ids_hold_the_word_drain() -> None:
    """``pytest -k drain`` must mean the behaviour."""
    assert [found.id for found in matrix() if "drain" in found.id] == [
        f"drain-{trigger}" for trigger in Trigger
    ]


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (lambda: matrix(behavior=["dran"]), "drain, exit-now, ignore"),
        (lambda: matrix(trigger=["drop"]), "delete, evict, scale"),
        (lambda: Scenario(app=App(grace_period_s=-1)), "grace_period_s is -1"),
        (lambda: Scenario(app=App(drain_ns=10**20)), "drain_ns"),
        (lambda: Scenario(flows=Flows(tcp=0, udp=0)), "at least one flow"),
        (lambda: Scenario(flows=Flows(tcp=1_000_000)), "tcp flows is 1000000"),
        (lambda: Scenario(flows=Flows(udp_rate_hz=0)), "udp_rate_hz is 0"),
        (lambda: Scenario(settle_ns=-1), "settle_ns"),
        (lambda: Scenario(observe_timeout_ns=5), "observe_timeout_ns"),
        (lambda: Scenario(app=App(replicas=True)), "replicas is True"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(bad: object, named: str) -> None:
    assert callable(bad)
    with pytest.raises(ScenarioError, match=named):
        bad()


def test_a_drain_as_long_as_the_grace_period_is_allowed_and_flagged() -> None:
    too_long = Scenario(app=App(drain_ns=30 * NS_PER_S, grace_period_s=30))
    assert "kills the pod before it has drained" in too_long.flags[0]
    assert Scenario(app=App(drain_ns=29 * NS_PER_S, grace_period_s=30)).flags == ()
