"""A simulated run of requests, judged: the judge counts what the model counted."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.http.document import Requests
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.pod.ending import EndedBy
from pytest_drainwatch.core.recording import dumps, loads
from pytest_drainwatch.core.scenario import Behavior, ScenarioError
from pytest_drainwatch.core.simulation.http_recording import recording
from pytest_drainwatch.core.simulation.inputs import Inputs
from pytest_drainwatch.core.simulation.presets import PRESETS
from pytest_drainwatch.core.simulation.requests import Outcome
from pytest_drainwatch.core.simulation.run import Simulated, simulate
from pytest_drainwatch.render import terminal
from pytest_drainwatch.render.page.trial import trial as page_trial
from pytest_drainwatch.render.trace.trials import picture

# What the first try of a request met, as the judge calls it.
FATES = {
    Outcome.SERVED: "served",
    Outcome.SLOW: "served",
    Outcome.REFUSED: "refused",
    Outcome.RESET: "written-then-reset",
    Outcome.KILLED: "written-then-closed",
}


def judged(inputs: Inputs) -> tuple[Report, Requests]:
    told = derive(recording(simulate(inputs)))
    assert told.trial.requests is not None
    return told, told.trial.requests


def fates(found: Requests) -> Counter[str]:
    total = Counter[str]()
    for kind in found.kinds:
        total.update(kind.fates)
        total.update(kind.fates_before)
    return total


def counted(run: Simulated) -> Counter[str]:
    return Counter(FATES[one.outcome] for one in run.requests)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_each_preset_is_judged_as_it_was_simulated(preset: object) -> None:
    inputs = preset.inputs  # type: ignore[attr-defined]
    told, found = judged(inputs)
    assert told.simulated
    assert fates(found) == counted(simulate(inputs))
    assert found.lost == 0
    assert "SIMULATED" in terminal.show(told)
    assert page_trial(told)["simulated"]
    assert picture(told).name.startswith("SIMULATED ")


def test_the_end_of_the_pod_is_the_models() -> None:
    drained, _ = judged(Inputs())
    ignored, _ = judged(Inputs(behavior=Behavior.IGNORE))
    assert [end.ended_by for end in drained.trial.pod_ends] == [EndedBy.EXIT]
    assert [end.ended_by for end in ignored.trial.pod_ends] == [EndedBy.SIGKILL_AT_GRACE]


def test_the_pooled_connection_is_closed_cleanly_only_if_the_app_closes_it() -> None:
    _, closes = judged(Inputs())
    _, leaves = judged(Inputs(close_idle=False))
    assert [one.outcomes for one in closes.old_connections] == [{"drained-clean-close": 1}]
    assert [one.outcomes for one in leaves.old_connections] == [{"severed": 1}]


def test_a_retry_mends_a_request_and_not_what_its_first_try_met() -> None:
    inputs = Inputs(pre_stop_ns=0, client_retries=10)
    run = simulate(inputs)
    assert run.totals[Outcome.RETRIED]
    assert not run.totals[Outcome.REFUSED]
    assert fates(judged(inputs)[1])["refused"] == run.totals[Outcome.RETRIED]


def test_what_no_trial_takes_is_refused() -> None:
    with pytest.raises(ScenarioError, match="grace_period_s is 4000"):
        recording(simulate(Inputs(grace_period_s=4000)))


@settings(max_examples=25)
@given(
    inputs=st.builds(
        Inputs,
        grace_period_s=st.integers(1, 60),
        pre_stop_ns=st.integers(0, 60 * NS_PER_S),
        behavior=st.sampled_from(Behavior),
        drain_ns=st.integers(0, 40 * NS_PER_S),
        close_idle=st.booleans(),
        nodes=st.integers(1, 4),
        propagation_ns=st.integers(0, 20 * NS_PER_S),
        longest_ns=st.integers(10 * NS_PER_MS, 30 * NS_PER_S),
        keepalive=st.booleans(),
        kubelet_ns=st.integers(0, NS_PER_S),
        handler_ns=st.integers(0, NS_PER_S),
        kill_ns=st.integers(0, NS_PER_S),
    )
)
def test_the_judge_and_the_model_agree_on_every_request(inputs: Inputs) -> None:
    run = simulate(inputs)
    rec = recording(run)
    assert loads(dumps(rec)) == rec
    told = derive(rec).trial.requests
    assert (fates(told) if told else Counter()) == counted(run)
