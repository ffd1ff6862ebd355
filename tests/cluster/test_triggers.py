"""Triggers in real trials: several pods at once, a rollout, and none at all."""

from __future__ import annotations

import itertools

import pytest

from pytest_drainwatch import App, Behavior, Controller, Flows, Mechanism, Scenario, Trial
from pytest_drainwatch import Trigger as Verb
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.recording import loads
from pytest_drainwatch.core.scenario import ClusterNeeds
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.workload import manifests
from tests.cluster.harness import measure_stage

pytestmark = pytest.mark.cluster

FEW = Flows(tcp=4, udp=2, probe_interval_ns=None)


def recorded(trial: Trial) -> tuple[Observation, ...]:
    return tuple(loads((trial.folder / "recording.jsonl").read_text()).observations)


def accepted(trial: Trial) -> Observation:
    (found,) = [o for o in recorded(trial) if o.event is Event.TRIGGER_ACCEPTED]
    return found


def pods_deleted(trial: Trial) -> set[str]:
    return {
        o.subject for o in recorded(trial) if o.event is Event.POD and o.data["type"] == "DELETED"
    }


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(
            Scenario(
                app=App(grace_period_s=5, drain_ns=2 * NS_PER_S, replicas=3),
                flows=FEW,
                settle_ns=NS_PER_S,
                trigger=verb,
                targets=2,
                name=f"two-of-three-{verb}",
            ),
            marks=marks,
        )
        # One eviction is in test_trials, and two of anything is the delete here.
        for verb, marks in ((Verb.DELETE, ()), (Verb.EVICT, pytest.mark.slow))
    ],
)
def test_two_of_three_pods_are_told_together(trial: Trial) -> None:
    report = trial.report.trial
    assert len(report.trigger.targets) == 2
    calls = accepted(trial).data["calls"]
    assert isinstance(calls, list)
    stamps = list(itertools.chain(*calls))
    assert (len(calls), stamps) == (2, sorted(stamps))
    assert report.trigger.accepted_ns == (0, stamps[-1] - stamps[0])
    assert pods_deleted(trial) == set(report.trigger.targets), "the third lives"
    assert trial.exit_codes == (0, 0)
    # Flows of both are targets, and those of the third survive.
    assert trial.tcp.mechanisms == {Mechanism.ANNOUNCED_FIN: trial.tcp.total}
    assert trial.tcp.total >= 4
    served = {f.responders[0].partition("/")[0] for f in trial.flows if f.role == "target"}
    assert served <= set(report.trigger.targets)
    bystanders = trial.summary.bystander_tcp
    assert bystanders.survived_window == bystanders.total


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(grace_period_s=6, drain_ns=2 * NS_PER_S, replicas=2),
            flows=FEW,
            settle_ns=NS_PER_S,
            trigger=Verb.ROLLOUT,
            name="rollout-of-two",
        )
    ],
)
def test_a_rollout_ends_every_pod_of_before_and_every_flow(trial: Trial) -> None:
    report = trial.report.trial
    assert report.trigger.verb == "rollout"
    old = set(report.trigger.targets)
    assert len(old) == 2
    assert pods_deleted(trial) == old, "none of those that came is gone"
    assert {f.role for f in trial.flows} == {"target"}
    assert trial.tcp.mechanisms == {Mechanism.ANNOUNCED_FIN: trial.tcp.total}
    assert trial.tcp.total >= 4
    assert trial.exit_codes == (0, 0)
    # maxUnavailable 0: when a pod of before is told to end, another is ready for it.
    ready: set[str] = set()
    for o in recorded(trial):
        if o.event is not Event.POD or o.at.lo < accepted(trial).at.lo:
            continue
        if o.data["ready"] and not o.data["deletion_timestamp"]:
            ready.add(o.subject)
        elif o.data["deletion_timestamp"] and o.subject in old & ready:
            ready.discard(o.subject)
    assert not ready & old
    assert len(ready) == 2


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(behavior=Behavior.EXIT_NOW, grace_period_s=5),
            flows=FEW,
            settle_ns=NS_PER_S,
            observe_timeout_ns=4 * NS_PER_S,
            trigger=Verb.NONE,
            name="control",
        )
    ],
)
def test_without_a_trigger_nothing_is_lost(trial: Trial) -> None:
    """The positive control is every other trial here: the same flows, and they end."""
    assert accepted(trial).data["calls"] == []
    assert (trial.tcp.survived_window, trial.udp.survived_window) == (4, 2)
    assert not pods_deleted(trial)
    assert trial.exit_codes == ()
    assert not [end for end in trial.pod_ends if end.ended_ns is not None]
    closed = [o for o in recorded(trial) if o.event is Event.OBSERVATION_WINDOW_CLOSED]
    assert closed, "it was looked at until the end"
    assert closed[0].at.lo - accepted(trial).at.lo >= 4 * NS_PER_S


def frames(trial: Trial, uid: str) -> list[Observation]:
    """What was seen of that pod since the trigger."""
    since = accepted(trial).at.lo
    return [
        o for o in recorded(trial) if o.event is Event.POD and o.subject == uid and o.at.lo >= since
    ]


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(grace_period_s=5, drain_ns=2 * NS_PER_S),
            flows=Flows(tcp=2, udp=2, probe_interval_ns=20 * NS_PER_MS),
            settle_ns=NS_PER_S,
            trigger=Verb.CONTAINER_KILL,
            name="container-kill",
        )
    ],
)
def test_a_killed_container_comes_back_in_the_same_pod(trial: Trial) -> None:
    """Past the API: no deletion, no SIGTERM; the pod's uid stays and its restarts grow by one."""
    report = trial.report.trial
    (uid,) = report.trigger.targets
    assert not pods_deleted(trial)
    assert not any(o.data["deletion_timestamp"] for o in frames(trial, uid))
    assert frames(trial, uid)[-1].data["containers"][0]["restarts"] == 1  # type: ignore[index]
    (end,) = trial.pod_ends
    assert (end.pod_uid, end.restart) == (uid, 0)
    assert (end.ended_by, end.initiator) == ("killed-by-trigger", "container-kill")
    assert (end.exit_code, end.sigterm_ns, end.deletion_ns) == (137, None, None)
    trigger = report.trigger
    assert trigger.requested_ns == (0, 0)
    assert trigger.effective_ns is not None
    assert 0 <= trigger.accepted_ns[1] < trigger.effective_ns[1] < 10 * NS_PER_S
    # Nobody drained: every TCP flow was cut, within the time of one system call and a poll.
    assert trial.tcp.mechanisms.keys() <= {Mechanism.FIN_UNANNOUNCED, Mechanism.RST}
    assert trial.tcp.total == 2
    assert all(f.terminal_ns and f.terminal_ns[1] < NS_PER_S for f in trial.flows if "tcp" in f.id)
    (tried,) = report.new_connections
    assert tried.failed > 0, "nobody listened until it had started again"
    assert tried.observed_failing is not None
    # Who answers again is another process of the same pod.
    runs = [o.data for o in recorded(trial) if o.event is Event.NEW_CONNECTIONS]
    nonces = {str(run["responder"]) for run in runs if run["result"] == "answered"}
    assert len(nonces) == 2
    assert {nonce.partition("/")[0] for nonce in nonces} == {uid}


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(grace_period_s=6, drain_ns=3 * NS_PER_S),
            flows=FEW,
            settle_ns=NS_PER_S,
            trigger=Verb.FORCE_DELETE,
            name="force-delete",
        )
    ],
)
def test_a_forced_delete_takes_the_object_before_the_process(trial: Trial) -> None:
    report = trial.report.trial
    (uid,) = report.trigger.targets
    (end,) = [each for each in trial.pod_ends if each.pod_uid == uid]
    assert end.initiator == "force-delete"
    assert end.deletion_grace_period_s == 0
    gone = next(o.at.hi for o in frames(trial, uid) if o.data["type"] == "DELETED")
    assert gone - accepted(trial).at.lo < NS_PER_S, "the object goes at once"
    # Its process learns of it later than that, and its flows end later still.
    assert end.sigterm_ns is not None
    ends = [flow.terminal_ns for flow in trial.flows if flow.role == "target" and "tcp" in flow.id]
    assert all(at is not None and at[1] > gone - accepted(trial).at.lo for at in ends)


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(grace_period_s=5, drain_ns=2 * NS_PER_S),
            flows=FEW,
            settle_ns=NS_PER_S,
            trigger=Verb.EVACUATE_NODE,
            name="evacuate-the-only-node",
        )
    ],
)
def test_the_only_node_is_evacuated_and_takes_pods_again(trial: Trial, dw_namespace: Stage) -> None:
    report = trial.report.trial
    (end,) = trial.pod_ends
    assert end.initiator == "evacuate-node"
    assert trial.exit_codes == (0,)
    assert trial.tcp.mechanisms == {Mechanism.ANNOUNCED_FIN: 4}
    (cordoned,) = [o for o in recorded(trial) if o.event is Event.NODE_CORDONED]
    assert cordoned.at.hi <= accepted(trial).at.lo
    assert any(entry.event == "node_cordoned" for entry in report.timeline)
    # Its replacement had nowhere to go while the trial lasted.
    others = {o.subject for o in recorded(trial) if o.event is Event.POD} - {end.pod_uid}
    assert others
    over = next(o.at.lo for o in recorded(trial) if o.event is Event.ALL_FLOWS_TERMINAL)
    seen = [o for o in recorded(trial) if o.event is Event.POD and o.subject in others]
    assert not [o for o in seen if o.data["node"] and o.at.hi < over]
    api = dw_namespace.api
    assert not any(node.spec.unschedulable for node in api.core.list_node().items)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(grace_period_s=4, drain_ns=NS_PER_S, replicas=4, spread_over_nodes=True),
            flows=FEW,
            cluster=ClusterNeeds(nodes=2),
            settle_ns=NS_PER_S,
            trigger=Verb.EVACUATE_NODE,
            name="evacuate-one-of-two-nodes",
        )
    ],
)
def test_a_budget_lets_the_pods_of_a_node_go_one_after_the_other(dw_namespace: Stage) -> None:
    """As kubectl drain: the second is asked again every 5 s, until the first is replaced."""
    stage = dw_namespace
    stage.api.policy.create_namespaced_pod_disruption_budget(
        stage.namespace,
        {
            "metadata": {"name": "one-at-a-time"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": manifests.SELECTOR}},
        },
    )
    trial = measure_stage(stage)
    report = trial.report.trial
    targets = set(report.trigger.targets)
    assert len(targets) == 2, "those of one node"
    ends = sorted(trial.pod_ends, key=lambda end: end.deletion_ns or (0, 0))
    assert [end.initiator for end in ends] == ["evacuate-node"] * 2
    assert pods_deleted(trial) == targets, "those of the other node live"
    first, second = (end.deletion_ns for end in ends)
    assert first is not None
    assert second is not None
    assert first[1] < NS_PER_S
    assert second[1] > 4 * NS_PER_S
    assert any("disruption budget" in text for text in report.trigger.blocked)
    assert any(entry.event == "trigger_continued" for entry in report.timeline)
    seen = [o for o in recorded(trial) if o.event is Event.POD and o.data["ready"]]
    left = {o.data["node"] for o in seen if o.subject in targets}
    after = accepted(trial).at.lo
    taken = {o.data["node"] for o in seen if o.subject not in targets and o.at.lo > after}
    assert taken
    assert not taken & left, "replacements go to the node that is left"
    assert not any(node.spec.unschedulable for node in stage.api.core.list_node().items)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(
                grace_period_s=6,
                drain_ns=2 * NS_PER_S,
                replicas=replicas,
                controller=controller,
            ),
            flows=FEW,
            settle_ns=NS_PER_S,
            trigger=Verb.ROLLOUT,
            name=f"rollout-of-a-{controller}",
        )
        for controller, replicas in ((Controller.STATEFUL_SET, 2), (Controller.DAEMON_SET, 1))
    ],
)
def test_a_controller_that_ends_a_pod_before_it_makes_its_replacement(trial: Trial) -> None:
    """Attributed by uid: a StatefulSet's pods have the names of those before them."""
    report = trial.report.trial
    old = set(report.trigger.targets)
    assert len(old) == len(trial.pod_ends) == trial.scenario.app.replicas
    assert pods_deleted(trial) == old
    assert {end.initiator for end in trial.pod_ends} == {"rollout"}
    assert trial.tcp.mechanisms == {Mechanism.ANNOUNCED_FIN: trial.tcp.total}
    names: dict[str, list[str]] = {}
    ended: list[str] = []
    for o in recorded(trial):
        if o.event is not Event.POD:
            continue
        seen = names.setdefault(str(o.data["name"]), [])
        if o.subject not in seen:
            assert not seen or seen[-1] in ended, "its predecessor of that name is gone"
            seen.append(o.subject)
        if o.data["type"] == "DELETED":
            ended.append(o.subject)
    if trial.scenario.app.controller is Controller.STATEFUL_SET:
        assert all(len(uids) == 2 for uids in names.values())
        # One after the other, the highest ordinal first.
        by_time = sorted(trial.pod_ends, key=lambda end: end.deletion_ns or (0, 0))
        assert [end.pod[-2:] for end in by_time] == ["-1", "-0"]
        first, second = by_time
        assert first.ended_ns is not None
        assert second.deletion_ns is not None
        assert second.deletion_ns[1] > first.ended_ns[1]
