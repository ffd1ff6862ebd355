"""The fit finds the latencies that a trial was made with."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.fidelity.fit import ALL, NOT_SHOWN, Fit, Fitted, fit, own
from pytest_drainwatch.core.fidelity.readings import READINGS
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.scenario import PreStop, Scenario
from pytest_drainwatch.core.simulation.latencies import Latencies
from tests.core.fidelity.made import DRAINS, EXITS, IGNORES, SCALED, repeats, trial

# Between two attempts, or two datagrams of different flows, lies what is known of an instant.
GRID_NS = 12 * NS_PER_MS
EXACTLY = frozenset(
    {
        "call_ns",
        "deletion_ns",
        "terminating_ns",
        "endpoint_ns",
        "sigterm_ns",
        "status_ns",
        "deleted_ns",
        "replacement_ns",
        "listening_ns",
        "ready_ns",
    }
)
# What a trial of each kind shows beside those, and how exactly.
SHOWN = {
    DRAINS: {"handling_ns": 0, "lingering_ns": 0, "farewell_ns": NS_PER_MS, "unready_ns": 0},
    EXITS: {"exit_ns": 0, "farewell_ns": NS_PER_MS, "network_ns": GRID_NS},
    IGNORES: {"kill_ns": NS_PER_MS},
}
# To shrink a counter-example takes minutes here, and tells little.
CHEAPLY = settings(max_examples=12, deadline=None, phases=(Phase.explicit, Phase.generate))


def ms(low: float, high: float) -> st.SearchStrategy[int]:
    return st.integers(round(low * NS_PER_MS), round(high * NS_PER_MS))


TOOK = st.builds(
    Latencies,
    call_ns=ms(1, 40),
    deletion_ns=ms(5, 60),
    terminating_ns=ms(5, 60),
    endpoint_ns=ms(2, 30),
    sigterm_ns=ms(10, 90),
    unready_ns=ms(20, 900),
    kill_ns=ms(2, 40),
    status_ns=ms(100, 500),
    network_ns=ms(60, 400),
    deleted_ns=ms(50, 900),
    handling_ns=ms(0.1, 5),
    farewell_ns=ms(0.5, 5),
    lingering_ns=ms(6, 20),
    exit_ns=ms(6, 15),
    replacement_ns=ms(10, 90),
    listening_ns=ms(300, 700),
    ready_ns=ms(60, 900),
)


def found(made: Fit) -> dict[str, Fitted]:
    return {each.name: each for each in made.parameters}


@pytest.mark.parametrize("scenario", list(SHOWN), ids=lambda s: s.id)
@given(took=TOOK)
@CHEAPLY
def test_a_fit_finds_the_latencies_that_a_trial_met(scenario: Scenario, took: Latencies) -> None:
    fitted = found(fit([trial(scenario, took)], scenario))
    for name, off_ns in {**dict.fromkeys(EXACTLY, 0), **SHOWN[scenario]}.items():
        each = fitted[name]
        assert each.observed == 1, name
        assert abs(each.value_ns - getattr(took, name)) <= off_ns, name


@given(sync_ms=st.integers(5, 90), conntrack_ms=st.integers(5, 90), ready_ms=st.integers(60, 1900))
@CHEAPLY
def test_a_fit_finds_how_long_kube_proxy_takes_however_many_syncs_were_waited_for(
    sync_ms: int, conntrack_ms: int, ready_ms: int
) -> None:
    took = Latencies(
        sync_ns=sync_ms * NS_PER_MS,
        conntrack_ns=conntrack_ms * NS_PER_MS,
        ready_ns=ready_ms * NS_PER_MS,
    )
    fitted = found(fit([trial(DRAINS, took)], DRAINS))
    # Which attempt, and which datagram, was the first.
    assert abs(fitted["conntrack_ns"].value_ns - took.conntrack_ns) <= 2 * GRID_NS
    assert abs(fitted["sync_ns"].value_ns - took.sync_ns) <= 2 * GRID_NS


def test_each_latency_has_a_reading_and_each_reading_a_latency() -> None:
    assert READINGS.keys() == {each.name for each in fields(Latencies)}


def test_what_no_trial_shows_is_the_default_and_says_so() -> None:
    fitted = found(fit([trial(DRAINS, Latencies())], DRAINS))
    assert fitted["kill_ns"].note == NOT_SHOWN
    assert fitted["kill_ns"].observed == 0
    assert fitted["kill_ns"].value_ns == Latencies().kill_ns
    assert fitted["sigterm_ns"].note is None


def test_the_median_and_the_range_of_several_trials() -> None:
    took = [Latencies(sigterm_ns=each * NS_PER_MS) for each in (20, 50, 90)]
    each = found(fit(repeats(DRAINS, took), DRAINS))["sigterm_ns"]
    assert (each.least_ns, each.value_ns, each.greatest_ns) == tuple(
        ms * NS_PER_MS for ms in (20, 50, 90)
    )
    assert (each.observed, each.trials) == (3, DRAINS.id)


def test_a_scenarios_own_trials_come_before_those_of_others() -> None:
    other = Latencies(status_ns=400 * NS_PER_MS, kill_ns=7 * NS_PER_MS)
    trials = [trial(DRAINS, Latencies(), "a"), *repeats(IGNORES, [other, other])]
    fitted = found(fit(trials, DRAINS))
    assert (fitted["status_ns"].value_ns, fitted["status_ns"].trials) == (
        Latencies().status_ns,
        DRAINS.id,
    )
    assert abs(fitted["kill_ns"].value_ns - other.kill_ns) < NS_PER_MS
    assert fitted["kill_ns"].trials == ALL


def test_what_depends_on_the_trigger_is_taken_from_trials_with_the_same_one() -> None:
    slow = Latencies(deletion_ns=90 * NS_PER_MS, deleted_ns=900 * NS_PER_MS)
    trials = [*repeats(SCALED, [slow, slow]), trial(DRAINS, Latencies(), "a")]
    fitted = found(fit(trials, EXITS))
    assert fitted["deletion_ns"].value_ns == Latencies().deletion_ns
    assert fitted["deleted_ns"].value_ns == slow.deleted_ns  # that is the median of all three


def test_a_trials_own_latencies_come_before_those_of_the_fit() -> None:
    here, there = (Latencies(sigterm_ns=n * NS_PER_MS, kill_ns=5_000_000) for n in (20, 80))
    fitted = fit([*repeats(DRAINS, [there, there]), trial(IGNORES, there)], DRAINS)
    shown = own(trial(DRAINS, here), fitted)
    assert shown.sigterm_ns == here.sigterm_ns
    assert shown.kill_ns == fitted.latencies.kill_ns  # a drained pod is not killed


def test_a_negative_reading_counts_and_is_told_to_the_simulator_as_0() -> None:
    """SIGTERM may be logged before the watch tells of the deletion."""
    made = trial(DRAINS, Latencies(sigterm_ns=0))
    lines = [
        replace(line, t_ns=(line.t_ns[0] - NS_PER_MS, line.t_ns[1] - NS_PER_MS))
        if line.event == "sigterm_received"
        else line
        for line in made.report.trial.timeline
    ]
    told = replace(made.report, trial=replace(made.report.trial, timeline=tuple(lines)))
    each = found(fit([replace(made, report=told)], DRAINS))["sigterm_ns"]
    assert (each.least_ns, each.value_ns) == (-NS_PER_MS, 0)


def test_of_a_hook_the_latency_of_sigterm_is_not_read() -> None:
    hooked = replace(DRAINS, app=replace(DRAINS.app, pre_stop=PreStop(sleep_s=1)))
    assert found(fit([trial(hooked, Latencies())], hooked))["sigterm_ns"].observed == 0
