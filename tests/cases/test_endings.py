"""Cases of section C, and C67: signals, hooks and the grace budget."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch import App, Behavior, Scenario, Trial
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import PodEnd
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.pod.ending import EndedBy, Initiator, PreStopOutcome
from pytest_drainwatch.core.pod.kubelet import kill_after, sigterm_after
from pytest_drainwatch.core.scenario import Pid1, PreStop, ScenarioError
from pytest_drainwatch.core.start import CannotDerive
from tests.cluster.endings import FEW, asking, end_of, within
from tests.core import story as s
from tests.core.endings import NO_HOOK, TERM, end, ends, log, served, term
from tests.core.story import OLD, OTHER, at

# The probe's image has no `sleep`, as many have none.
FOREVER = ("python3", "-c", "import time; time.sleep(9999)")


@pytest.mark.cluster
@asking("shell-is-pid-1", App(behavior=Behavior.EXIT_NOW, grace_period_s=3, pid1=Pid1.SHELL))
def test_c22_a_shell_as_pid_1_keeps_sigterm_to_itself(trial: Trial) -> None:
    """What looks like an app that ignores SIGTERM never got it."""
    end = end_of(trial)
    assert end.ended_by is EndedBy.SIGNAL_NOT_DELIVERED
    assert end.exit_code == 137
    assert end.sigterm_ns is None
    assert end.in_flight_at_sigterm is None
    within(end.ended_ns, 3 * NS_PER_S)
    assert trial.tcp.severed == FEW.tcp
    assert "does not pass SIGTERM on" in trial.report.trial.flags[-1]


@pytest.mark.cluster
@asking(
    "pre-stop-hangs",
    App(
        behavior=Behavior.IGNORE,
        grace_period_s=4,
        pre_stop=PreStop(exec=FOREVER, exec_lasts_ns=3600 * NS_PER_S),
    ),
)
def test_c24_a_hook_that_hangs_costs_the_grace_period_and_leaves_two_seconds(trial: Trial) -> None:
    """SIGTERM at the end of the grace period, SIGKILL two seconds later."""
    end = end_of(trial)
    assert end.pre_stop is PreStopOutcome.CUT_OFF
    assert end.ended_by is EndedBy.SIGKILL_AT_GRACE
    within(end.sigterm_ns, 4 * NS_PER_S)
    within(end.ended_ns, 6 * NS_PER_S)
    assert end.expected_kill_ns is not None
    within(end.expected_kill_ns, 6 * NS_PER_S)
    assert "the app gets 2 s" in trial.report.trial.flags[0]


@pytest.mark.cluster
@asking(
    "pre-stop-has-no-such-program",
    App(
        drain_ns=NS_PER_S,
        grace_period_s=5,
        pre_stop=PreStop(exec=("sleep", "3"), exec_lasts_ns=3 * NS_PER_S),
    ),
)
def test_c27_a_hook_without_its_program_delays_nothing(trial: Trial) -> None:
    """SIGTERM at once, and the kubelet says FailedPreStopHook."""
    end = end_of(trial)
    assert end.pre_stop is PreStopOutcome.FAILED
    assert end.ended_by is EndedBy.EXIT
    within(end.sigterm_ns, 0)  # far from the three seconds that were asked for
    assert end.pre_stop_ns is not None
    assert any("FailedPreStopHook" in text for text in end.evidence)


def test_c25_a_hook_longer_than_the_grace_period_leaves_two_seconds() -> None:
    """A five-minute preStop with the default grace period blocks nothing."""
    hook = PreStop(exec=("drain-all",), exec_lasts_ns=300 * NS_PER_S)
    asked = Scenario(app=App(grace_period_s=30, drain_ns=NS_PER_S, pre_stop=hook))
    assert asked.flags == (
        "preStop (300 s) >= grace period (30 s): SIGTERM comes at the end of the grace period "
        "and the app gets 2 s",
    )
    assert sigterm_after(30, hook.lasts_ns) == 30 * NS_PER_S
    assert kill_after(30, hook.lasts_ns) == 32 * NS_PER_S
    # As an action of the API's own the server refuses it, and so do we.
    with pytest.raises(ScenarioError, match=r"sleep_s is 300, expected a whole number 0\.\.30"):
        Scenario(app=App(grace_period_s=30, pre_stop=PreStop(sleep_s=300)))
    short = PreStop(exec=("drain-all",), exec_lasts_ns=20 * NS_PER_S)
    assert Scenario(app=App(grace_period_s=30, drain_ns=NS_PER_S, pre_stop=short)).flags == ()


def test_c29_a_kubelet_eviction_is_never_filed_under_the_trigger() -> None:
    """The node was short of memory while the trial had asked for an eviction."""
    why = {"reason": "Evicted", "message": "The node was low on resource: memory."}
    evicted = [
        s.pod(OLD, -6000, containers=[s.LIVE]),
        s.pod(
            OLD,
            500,
            phase="Failed",
            disruption="TerminationByKubelet",
            containers=[s.gone(137, reason="Error")],
            **why,
        ),
        s.pod(OLD, 600, type="DELETED", deletion_timestamp="then", **why),
    ]

    def judged(frames: list[Observation]) -> PodEnd:
        asked = s.accepted(verb="evict")
        parts = ([asked], served(400), log(term(100)), frames)
        trial = derive(s.recording(*parts, config={**NO_HOOK, "trigger": "evict"})).trial
        assert trial.trigger.verb == "evict"
        (found,) = trial.pod_ends
        return found

    found = judged(evicted)
    assert found.initiator is Initiator.KUBELET_EVICTION
    # Since when the kubelet was at it nothing says, so neither whether it gave it two seconds.
    assert found.ended_by is EndedBy.UNKNOWN
    assert found.expected_kill_ns is None
    assert "pod status: Evicted (The node was low on resource: memory.)" in found.evidence
    # Not even where the trigger's own eviction had been carried out already.
    both = [replace(o, data={**o.data, "deletion_timestamp": "then"}) for o in evicted[1:]]
    mark = s.pod(OLD, 12, containers=[s.LIVE], deletion_timestamp="then")
    assert judged([evicted[0], mark, *both]).initiator is Initiator.KUBELET_EVICTION
    # The trigger's own eviction alone is filed under it.
    ours = judged(s.cluster(0, 420, disruption="EvictionByEvictionAPI"))
    assert ours.initiator is Initiator.API_EVICT


def test_c35_the_grace_period_is_the_one_that_was_set() -> None:
    """The spec says 10 s, the API server set 3."""
    frames = s.cluster(137, 3080, grace_s=3)
    found = end(served(3030), log(TERM), frames, config={**NO_HOOK, "grace_period_seconds": 10})
    assert found.deletion_grace_period_s == 3
    assert found.ended_by is EndedBy.SIGKILL_AT_GRACE


def restarted() -> list[Observation]:
    """Another pod's container that failed its liveness probe, and came back."""
    again = {**s.LIVE, "restarts": 1, "last_state": s.gone(0, reason="Completed")}
    return [
        s.pod(OTHER, -6000, containers=[s.LIVE]),
        s.pod(OTHER, 3000, containers=[again]),
        s.log(Event.PROBE_STARTED, -5950, uid=OTHER, nonce="a"),
        s.log(Event.SIGTERM_RECEIVED, 1900, uid=OTHER, nonce="a"),
        s.log(Event.EXITING, 2900, uid=OTHER, nonce="a"),
        s.log(Event.PROBE_STARTED, 3000, uid=OTHER, nonce="b"),
    ]


def test_c67_a_drain_without_a_deletion_is_a_restart() -> None:
    """It happened to a bystander, and is no termination of this trial."""
    found = ends(served(5100), log(TERM), s.cluster(0, 5200), restarted())
    assert [(e.pod_uid, e.role) for e in found] == [(OLD, "target"), (OTHER, "bystander")]
    other = found[1]
    assert (other.initiator, other.ended_by) == (Initiator.CONTAINER_RESTART, EndedBy.EXIT)
    assert (other.restart, other.deletion_ns, other.expected_kill_ns) == (0, None, None)
    assert other.ended_ns == (2900 * NS_PER_MS, 3000 * NS_PER_MS)
    assert other.sigterm_ns == (1900 * NS_PER_MS, 1900 * NS_PER_MS)


def test_c67_a_drain_that_goes_on_without_a_deletion_is_one_too() -> None:
    """The hook's container drains and the pod stays, unready."""
    draining = [
        s.pod(OTHER, -6000, containers=[s.LIVE]),
        s.log(Event.SIGTERM_RECEIVED, 1900, uid=OTHER, nonce="a"),
    ]
    later = s.pod(OTHER, 4000, ready=False, containers=[s.LIVE])
    whole = [served(5100), log(TERM), s.cluster(0, 5200), draining]
    assert [e.initiator for e in ends(*whole, [later])][1] is Initiator.CONTAINER_RESTART
    # Without that later frame a deletion may have gone unseen.
    assert [e.initiator for e in ends(*whole)][1] is Initiator.UNKNOWN


def test_c67_a_trial_in_which_only_a_container_restarted_is_none() -> None:
    with pytest.raises(CannotDerive, match="expected one accepted trigger"):
        derive(s.recording(restarted()))
    held = [
        *s.alive("tcp-0001", 5000, OTHER),
        s.client(Event.FLOW_OPEN_AT_END, "tcp-0001", at(5001), sent=9, answered=9),
    ]
    with pytest.raises(CannotDerive, match="did not carry it out"):
        derive(s.recording([s.accepted(targets=(OTHER,))], held, restarted()))
