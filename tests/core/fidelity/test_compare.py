"""A true model holds, a false one is caught, and what cannot be compared is refused in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.fidelity.document import Arm, Fidelity, Figure
from pytest_drainwatch.core.fidelity.replay import Simulate, compare
from pytest_drainwatch.core.fidelity.trial import FidelityError, Trial, measured
from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.recording import Recording
from pytest_drainwatch.core.repeats.metrics import Metric, OwnMetric
from pytest_drainwatch.core.scenario import Behavior, Readiness, Scenario, Trigger
from pytest_drainwatch.core.simulation.latencies import Latencies
from pytest_drainwatch.core.simulation.trial import simulate_trial
from tests.core.fidelity.made import DRAINS, EXITS, IGNORES, SCALED, as_behaving, repeats, trial

TOOK = [
    Latencies(
        sigterm_ns=n * 11 * NS_PER_MS, status_ns=(180 + n * 20) * NS_PER_MS, ready_ns=900_000_000
    )
    for n in (1, 2, 3)
]
TRIALS = [each for asked in (DRAINS, EXITS, IGNORES) for each in repeats(asked, TOOK)]


def arm(found: Fidelity, scenario: Scenario) -> Arm:
    return next(a for one in found.clusters for a in one.arms if a.scenario == scenario.id)


def figure(found: Fidelity, scenario: Scenario, metric: Metric | OwnMetric) -> Figure:
    return next(each for each in arm(found, scenario).figures if each.metric == metric)


def slower(name: str, by_ms: int) -> Simulate:
    """A model that adds to one of the latencies that it is told."""

    def simulate(scenario: Scenario, took: Latencies) -> Recording:
        later = {name: getattr(took, name) + by_ms * NS_PER_MS}
        return simulate_trial(scenario, replace(took, **later))

    return simulate


def mistaking(change: Callable[[Scenario], Scenario]) -> Simulate:
    """A model that simulates another scenario than it is asked for."""

    def simulate(scenario: Scenario, took: Latencies) -> Recording:
        return simulate_trial(change(scenario), took)

    return simulate


def in_app(**fields: object) -> Callable[[Scenario], Scenario]:
    return lambda scenario: replace(scenario, app=replace(scenario.app, **fields))  # type: ignore[arg-type]


# --- a true model, and false ones ----------------------------------------------------------


def test_a_true_model_holds() -> None:
    found = compare(TRIALS, simulate_trial, "1")
    assert found.broken == ()
    assert found.holds
    for scenario in (DRAINS, EXITS, IGNORES):
        for fates in arm(found, scenario).fates:
            assert fates.outcomes_equal == fates.mechanisms_equal == fates.flows == 9
    assert found.clusters[0].trials == 9


@pytest.mark.parametrize(
    ("model", "scenario", "said"),
    [
        (mistaking(in_app(behavior=Behavior.EXIT_NOW)), DRAINS, "0 outcomes of 9 as predicted"),
        (mistaking(in_app(behavior=Behavior.DRAIN)), EXITS, "0 outcomes of 9 as predicted"),
        (mistaking(in_app(exit_now_reset=False)), EXITS, "rst as often as no trial measured it"),
        (mistaking(in_app(grace_period_s=8)), IGNORES, str(Metric.LAST_TCP)),
        (mistaking(in_app(readiness_on_drain=Readiness.KEEP)), DRAINS, str(Metric.LAST_UDP)),
        (slower("sigterm_ns", 80), DRAINS, str(Metric.SIGTERM)),
        (slower("status_ns", 200), DRAINS, str(Metric.DEAD_WINDOW)),
        (slower("ready_ns", 3000), EXITS, str(OwnMetric.NEW_TCP_FAILING)),
    ],
)
def test_a_false_model_is_caught(model: Simulate, scenario: Scenario, said: str) -> None:
    mine = [each for each in TRIALS if each.scenario.id == scenario.id]
    found = compare(mine, model, "1")
    assert not found.holds
    assert any(said in line and scenario.id in line for line in found.broken), found.broken
    assert compare(mine, simulate_trial, "1").holds


def test_a_model_that_foretells_nothing_of_a_metric_is_no_pass() -> None:
    """Of a pod that is killed nobody reads when its readiness ended, nor new connections."""
    blind = mistaking(lambda s: replace(s, flows=replace(s.flows, probe_interval_ns=None)))
    found = compare([each for each in TRIALS if each.scenario.id == EXITS.id], blind, "1")
    assert figure(found, EXITS, OwnMetric.NEW_TCP_FAILING).inside is False
    assert any("not predicted" in line for line in found.broken)


def test_how_many_flows_a_pod_has_is_chance_with_several_replicas() -> None:
    """How they end is not."""
    asked = replace(DRAINS, app=replace(DRAINS.app, replicas=3))
    trials = [without_a_bystander(each) for each in repeats(asked, TOOK)]
    found = compare(trials, simulate_trial, "1")
    assert {each.group for each in arm(found, asked).fates} >= {"target tcp", "bystander tcp"}
    assert all(each.flows == each.outcomes_equal for each in arm(found, asked).fates)
    assert found.holds
    false = compare(trials, mistaking(in_app(behavior=Behavior.EXIT_NOW)), "1")
    assert any("target tcp flows: 0 outcomes of 9" in line for line in false.broken)


def test_of_one_replica_each_flow_counts() -> None:
    trials = [without(each, "tcp-0002") for each in TRIALS if each.scenario.id == DRAINS.id]
    found = compare(trials, simulate_trial, "1")
    assert any("target tcp flows: 6 outcomes of 9" in line for line in found.broken)


def without_a_bystander(made: Trial) -> Trial:
    flows = made.report.trial.flows
    first = next(flow.id for flow in flows if flow.role is Role.BYSTANDER)
    return without(made, first)


def without(made: Trial, flow_id: str) -> Trial:
    flows = tuple(flow for flow in made.report.trial.flows if flow.id != flow_id)
    return replace(made, report=replace(made.report, trial=replace(made.report.trial, flows=flows)))


def test_what_was_never_measured_is_not_judged() -> None:
    untried = [unprobed(each) for each in TRIALS if each.scenario.id == DRAINS.id]
    found = compare(untried, simulate_trial, "1")
    each = figure(found, DRAINS, OwnMetric.NEW_TCP_FAILING)
    assert each.predicted.median is not None
    assert each.measured.median is None
    assert (each.inside, each.error_ns) == (None, None)
    assert found.holds


def unprobed(made: Trial) -> Trial:
    """The same trial, of whose new connections nothing is known."""
    report = replace(made.report, trial=replace(made.report.trial, new_connections=()))
    return replace(made, report=report)


# --- held out --------------------------------------------------------------------------------


def test_a_trial_is_predicted_from_the_others_alone() -> None:
    took = [replace(TOOK[0], sigterm_ns=n * NS_PER_MS) for n in (10, 50, 90)]
    found = compare(repeats(DRAINS, took), simulate_trial, "1")
    each = figure(found, DRAINS, Metric.SIGTERM)
    deletion = took[0].deletion_ns
    # Without the first: the middle of 50 and 90, and so on.
    assert each.predicted.minimum == deletion + 30 * NS_PER_MS
    assert each.predicted.median == deletion + 50 * NS_PER_MS
    assert each.predicted.maximum == deletion + 70 * NS_PER_MS
    assert (each.error_ns, each.error_percent, each.inside) == (0, 0.0, True)
    # Each with its own latencies is itself again.
    assert (each.replay_error_ns, each.replayed.minimum) == (0, deletion + 10 * NS_PER_MS)
    assert each.from_others_ns is None


def test_predicted_from_the_other_scenarios_alone() -> None:
    slow = [replace(each, sigterm_ns=70 * NS_PER_MS) for each in TOOK]
    found = compare([*repeats(DRAINS, TOOK), *repeats(EXITS, slow)], simulate_trial, "1")
    each = figure(found, DRAINS, Metric.SIGTERM)
    assert each.from_others_ns == TOOK[0].deletion_ns + 70 * NS_PER_MS
    assert each.others_inside is False
    assert each.inside is True
    assert found.holds  # it is not judged


@given(order=st.permutations(range(len(TRIALS))))
@settings(max_examples=1, deadline=None, phases=(Phase.generate,))
def test_in_which_order_trials_are_given_decides_nothing(order: Sequence[int]) -> None:
    told = [TRIALS[place] for place in order]
    assert compare(told, simulate_trial, "1") == compare(TRIALS, simulate_trial, "1")


def test_trials_of_two_clusters_are_not_mixed() -> None:
    later = [on_version(each, "v1.40.0") for each in TRIALS if each.scenario.id == DRAINS.id]
    found = compare([*TRIALS, *later], simulate_trial, "1")
    assert [one.trials for one in found.clusters] == [9, 3]


def on_version(made: Trial, version: str) -> Trial:
    environment = replace(made.report.environment, kubernetes_version=version)
    report = replace(made.report, environment=environment)
    return replace(made, report=report, label=f"{version}/{made.label}")


# --- refused ---------------------------------------------------------------------------------


def test_a_simulated_trial_is_refused_for_fitting_to_it_would_be_circular() -> None:
    made = TRIALS[0].report
    with pytest.raises(FidelityError, match="x/r00: this trial is simulated"):
        measured("x/r00", replace(made, simulated=True))
    with pytest.raises(FidelityError, match="simulated"):  # its recording tells as well
        measured("x/r00", made, simulate_trial(DRAINS, TOOK[0]))
    assert measured("x/r00", made).label == "x/r00"


def test_one_trial_alone_cannot_be_predicted() -> None:
    with pytest.raises(FidelityError, match=r"the only trial of drain-delete.*--dw-repeat 5"):
        compare(TRIALS[:1], simulate_trial, "1")


def test_no_trial_at_all_is_refused() -> None:
    with pytest.raises(FidelityError, match="no trial"):
        compare([], simulate_trial, "1")


def test_trials_of_one_name_with_other_settings_are_no_repeats() -> None:
    other = replace(DRAINS, app=replace(DRAINS.app, drain_ns=3_000_000_000))
    with pytest.raises(FidelityError, match=r"no repeats.*config\.drain_max_seconds is 3\.0"):
        compare([TRIALS[0], trial(other, TOOK[0], "other")], simulate_trial, "1")


def test_a_scenario_that_is_not_modelled_is_refused_with_what_of_it() -> None:
    again = [rolled(each) for each in TRIALS if each.scenario.id == DRAINS.id]
    with pytest.raises(FidelityError, match="trigger is 'rollout', expected one of"):
        compare(again, simulate_trial, "1")


def rolled(made: Trial) -> Trial:
    """The same trial, if another trigger had brought it about."""
    told = replace(made.report.trial, config={**made.report.trial.config, "trigger": "rollout"})
    asked = replace(made.scenario, trigger=Trigger.ROLLOUT, observe_timeout_ns=60_000_000_000)
    return replace(made, scenario=asked, report=replace(made.report, trial=told))


def test_a_control_ends_nothing_that_could_be_predicted() -> None:
    made = TRIALS[0].report
    nobody = replace(made.trial, trigger=replace(made.trial.trigger, targets=()))
    with pytest.raises(FidelityError, match="nothing was terminated"):
        measured("x", replace(made, trial=nobody))


def test_a_workload_of_the_users_is_refused() -> None:
    made = TRIALS[0].report
    theirs = replace(made.trial, config={**made.trial.config, "attached": {"kind": "Deployment"}})
    with pytest.raises(FidelityError, match="a workload of the user's"):
        measured("x", replace(made, trial=theirs))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("drain_behavior", "explode", "drain_behavior|behavior is 'explode'"),
        ("replicas", -1, "replicas is -1"),
        ("grace_period_seconds", "30", "grace_period_s is '30'"),
        ("settle_seconds", float("nan"), "configuration"),
        ("drain_max_seconds", 10.0**290, "drain_ns"),
        ("cluster", {"moons": 2}, "moons"),
        ("something_new", 1, "something_new is 1 in the report and None"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(name: str, value: object, said: str) -> None:
    made = TRIALS[0].report
    odd = replace(made.trial, config={**made.trial.config, name: value})
    with pytest.raises(FidelityError, match=said):
        measured("x", replace(made, trial=odd))


def test_a_configuration_of_which_something_is_missing_is_refused() -> None:
    made = TRIALS[0].report
    less = {name: v for name, v in made.trial.config.items() if name != "replicas"}
    with pytest.raises(FidelityError, match="no 'replicas'"):
        measured("x", replace(made, trial=replace(made.trial, config=less)))


def test_the_arms_that_are_used_here_differ() -> None:
    """Else a mistaken model could be right."""
    assert len({DRAINS.id, EXITS.id, IGNORES.id, SCALED.id}) == 4
    assert as_behaving(Behavior.DRAIN) == DRAINS
