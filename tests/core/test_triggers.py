"""What follows from each trigger before anything is measured: for how long, and how closely."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.plan import dense_stretches
from pytest_drainwatch.core.pod.ending import EndedBy, Initiator
from pytest_drainwatch.core.pod.kubelet import kill_after
from pytest_drainwatch.core.scenario import App, ClusterNeeds, Controller, Scenario, Trigger
from tests.core import story as s
from tests.core.endings import NO_HOOK, log, term
from tests.core.story import OLD

APP = App(grace_period_s=10, drain_ns=3 * NS_PER_S, replicas=3)


def asked(trigger: Trigger, app: App = APP) -> Scenario:
    return Scenario(app=app, trigger=trigger)


@pytest.mark.parametrize(
    ("trigger", "replicas", "whole"),
    [
        (Trigger.ROLLOUT, 1, True),
        (Trigger.NAMESPACE_DELETE, 1, True),
        (Trigger.EVACUATE_NODE, 3, True),  # a budget may let them go one after the other
        (Trigger.EVACUATE_NODE, 1, False),
        (Trigger.FORCE_DELETE, 3, False),
        (Trigger.CONTAINER_KILL, 3, False),
    ],
)
def test_where_pods_end_when_the_cluster_likes_all_is_looked_at_closely(
    trigger: Trigger, replicas: int, whole: bool
) -> None:
    scenario = asked(trigger, App(grace_period_s=60, drain_ns=3 * NS_PER_S, replicas=replicas))
    covered = sum(at.width for at in dense_stretches(scenario))
    assert (covered >= scenario.observe_ns) is whole


def test_a_kill_is_looked_at_closely_when_it_happens_and_no_grace_is_waited_for() -> None:
    (only,) = dense_stretches(asked(Trigger.CONTAINER_KILL))
    assert only.lo < 0 < only.hi
    (*_, last) = dense_stretches(asked(Trigger.DELETE))
    assert only.hi < last.hi


@given(st.integers(1, 20), st.integers(0, 60))
def test_a_rollout_that_replaces_what_is_gone_is_watched_for_as_long_as_it_takes(
    replicas: int, grace_s: int
) -> None:
    """Each pod may take its whole grace period before the next one is told."""
    each = App(grace_period_s=grace_s, replicas=replicas, controller=Controller.STATEFUL_SET)
    window_ns = asked(Trigger.ROLLOUT, each).observe_ns
    assert window_ns >= replicas * kill_after(grace_s, 0)
    surging = App(grace_period_s=grace_s, replicas=replicas)
    assert window_ns > asked(Trigger.ROLLOUT, surging).observe_ns


def test_a_daemon_set_has_a_pod_for_each_node() -> None:
    app = App(controller=Controller.DAEMON_SET, replicas=2)
    found = Scenario(app=app, cluster=ClusterNeeds(nodes=2), trigger=Trigger.ROLLOUT)
    assert found.config()["workload"] == "daemonset"


@pytest.mark.parametrize("trigger", list(Trigger))
def test_several_pods_at_once_are_for_those_that_choose_pods(trigger: Trigger) -> None:
    chooses = trigger in ("delete", "force-delete", "evict", "container-kill")
    if chooses:
        assert Scenario(app=APP, targets=2, trigger=trigger).targets == 2
    else:
        with pytest.raises(ValueError, match="targets is 2"):
            Scenario(app=APP, targets=2, trigger=trigger)


def test_an_evacuation_says_that_others_pods_go_too() -> None:
    assert any("others' pods too" in flag for flag in asked(Trigger.EVACUATE_NODE).flags)
    assert not asked(Trigger.DELETE).flags


def test_who_is_killed_is_not_warned_of_a_drain_that_is_too_long() -> None:
    long = App(grace_period_s=1, drain_ns=9 * NS_PER_S)
    assert asked(Trigger.DELETE, long).flags
    assert not asked(Trigger.CONTAINER_KILL, long).flags


def test_what_outlives_its_pods_object_ended_nobody_knows_how() -> None:
    """A forced delete: the kubelet makes its grace period two seconds, and tells nobody."""
    leaving = {"deletion_timestamp": "then", "deletion_grace_period_s": 0, "containers": [s.LIVE]}
    told = [
        [s.accepted(verb="force-delete")],
        s.alive("tcp-0001", 2000),
        log(term(40)),
        [s.pod(OLD, -6000, containers=[s.LIVE]), s.pod(OLD, 30, **leaving)],
        [s.pod(OLD, 60, type="DELETED", **leaving)],
    ]
    (end,) = derive(s.recording(*told, config=NO_HOOK)).trial.pod_ends
    assert (end.ended_by, end.initiator) == (EndedBy.UNKNOWN, Initiator.FORCE_DELETE)
    assert (end.deletion_grace_period_s, end.ended_ns) == (0, None)
    assert end.expected_kill_ns is not None
    assert end.expected_kill_ns[0] == 2 * NS_PER_S
    assert "its pod's object was gone while it still ran" in end.evidence[0]


def test_evictions_that_were_refused_after_the_first_are_told_apart() -> None:
    def refused(ms: float) -> Observation:
        data = {"attempt": 1, "status": 429, "message": "the budget"}
        return Observation(
            source=Source.ORCHESTRATOR, event=Event.TRIGGER_BLOCKED, at=s.at(ms), data=data
        )

    def notes(*at_ms: float) -> str:
        told = [[s.accepted(verb="evacuate-node")], s.cluster(), [refused(ms) for ms in at_ms]]
        return " ".join(derive(s.recording(*told)).trial.notes)

    assert "the API refused the trigger first: the budget" in notes(-1000)
    assert "of further target pods" not in notes(-1000)
    assert "refused 2 eviction(s), which were asked for again" in notes(5000, 10_000)
    assert "refused the trigger first" not in notes(5000)
