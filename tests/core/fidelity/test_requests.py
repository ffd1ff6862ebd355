"""The two simulators of a pod's end are held together: one is fitted, and so is the other."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.fidelity.requests import STEP_NS, inputs_like, inputs_of
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario import App, Behavior, PreStop
from pytest_drainwatch.core.simulation.inputs import Inputs
from pytest_drainwatch.core.simulation.latencies import Latencies
from pytest_drainwatch.core.simulation.life import Ending, life, shutdown
from pytest_drainwatch.core.simulation.termination import termination
from tests.core.fidelity.made import DRAINS, IGNORES, repeats

TOOK = Latencies(farewell_ns=0, lingering_ns=0, exit_ns=0)
NEVER_IDLE_NS = 24 * 3600 * NS_PER_S


@given(
    behavior=st.sampled_from(Behavior),
    grace_s=st.integers(1, 40),
    hook_s=st.one_of(st.none(), st.integers(0, 40)),
    drain_ms=st.integers(0, 40_000),
    deletion_ms=st.integers(0, 900),
    sigterm_ms=st.integers(0, 900),
    kill_ms=st.integers(0, 900),
)
def test_both_simulators_end_a_pod_at_the_same_instants(
    behavior: Behavior,
    grace_s: int,
    hook_s: int | None,
    drain_ms: int,
    deletion_ms: int,
    sigterm_ms: int,
    kill_ms: int,
) -> None:
    """What a trial's model is found to get right, the requests' model gets right too."""
    hook = None if hook_s is None else PreStop(sleep_s=min(hook_s, grace_s))
    took = replace(
        TOOK,
        handling_ns=0,
        deletion_ns=deletion_ms * NS_PER_MS,
        sigterm_ns=sigterm_ms * NS_PER_MS,
        kill_ns=kill_ms * NS_PER_MS,
    )
    app = App(
        behavior=behavior, grace_period_s=grace_s, drain_ns=drain_ms * NS_PER_MS, pre_stop=hook
    )
    asked = replace(
        inputs_of(took, 1000),
        behavior=behavior,
        grace_period_s=grace_s,
        drain_ns=app.drain_ns,
        pre_stop_ns=hook.lasts_ns if hook else 0,
    )
    trial, fixed = termination(app, took), shutdown(asked)
    requests = life(asked, fixed, NEVER_IDLE_NS)
    assert trial.sigterm_ns == requests.sigterm_ns
    # The one holds its connections until the deadline, the other has work until then.
    killed = requests.ending is Ending.SIGKILL
    if abs(requests.kill_due_ns - (fixed.deadline_ns or 0)) > took.kill_ns:
        assert (trial.exit_ns, trial.killed) == (requests.exit_ns, killed)


def test_what_is_typed_is_what_was_fitted() -> None:
    took = Latencies(
        deletion_ns=20 * NS_PER_MS,
        sigterm_ns=33_333_333,
        terminating_ns=30 * NS_PER_MS,
        sync_ns=40 * NS_PER_MS,
        conntrack_ns=10 * NS_PER_MS,
        handling_ns=949_999,
        kill_ns=23 * NS_PER_MS,
    )
    asked = inputs_of(took, 500)
    assert asked.kubelet_ns == 533 * STEP_NS
    assert asked.handler_ns == 9 * STEP_NS
    assert asked.kill_ns == 23 * NS_PER_MS
    assert asked.propagation_ns == (20 + 30 + 40 + 10 + 500 + 40) * NS_PER_MS
    assert replace(asked, nodes=3) == replace(
        Inputs(),
        propagation_ns=asked.propagation_ns,
        kubelet_ns=asked.kubelet_ns,
        handler_ns=asked.handler_ns,
        kill_ns=asked.kill_ns,
    )


def test_the_inputs_of_a_cluster_are_of_all_its_trials() -> None:
    took = [Latencies(sigterm_ns=n * NS_PER_MS, kill_ns=7 * NS_PER_MS) for n in (20, 40, 90)]
    trials = [*repeats(DRAINS, took), *repeats(IGNORES, took)]
    found = inputs_like(trials)
    assert found is not None
    assert found.kubelet_ns == took[1].deletion_ns + 40 * NS_PER_MS
    assert found.kill_ns // NS_PER_MS == 7
    nobody = replace(trials[0].report.environment, min_sync_period_ms=None)
    unknown = replace(trials[0], report=replace(trials[0].report, environment=nobody))
    assert inputs_like([unknown]) is None
