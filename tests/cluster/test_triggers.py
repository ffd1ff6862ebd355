"""Triggers in real trials: several pods at once, a rollout, and none at all."""

from __future__ import annotations

import itertools

import pytest

from pytest_drainwatch import App, Behavior, Flows, Mechanism, Scenario, Trial
from pytest_drainwatch import Trigger as Verb
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.recording import loads

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
