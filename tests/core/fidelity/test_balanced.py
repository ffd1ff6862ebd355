"""Behind a load balancer: what is predicted of each trial by the others, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_drainwatch import report as reports
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.fidelity.balanced import behind, broken
from pytest_drainwatch.core.fidelity.document import Behind
from pytest_drainwatch.core.fidelity.trial import FidelityError, Trial, measured
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S

SAMPLE = Path(__file__).resolve().parents[3] / "results/sample/load-balancer"


@pytest.fixture(scope="module")
def of_haproxy() -> list[Trial]:
    """Two nodes with a pod each behind a real HAProxy: without hook, too short, long enough."""
    paths = sorted(SAMPLE.glob("*/r0*/report.json"))
    assert len(paths) == 9
    return [
        measured(f"{path.parent.parent.name}/{path.parent.name}", reports.loads(path.read_text()))
        for path in paths
    ]


def by_scenario(trials: list[Trial]) -> dict[str, Behind]:
    return {one.scenario.rpartition("balancer-")[2]: one for one in behind(trials)}


def test_measured_trials_fail_as_predicted_by_the_others(of_haproxy: list[Trial]) -> None:
    found = by_scenario(of_haproxy)
    assert found.keys() == {"no-hook", "short", "long"}
    assert [line for one in found.values() for line in broken(one)] == []
    assert [one.verdicts_equal for one in found.values()] == [3, 3, 3]
    assert found["long"].failing_predicted.maximum == 0
    none, short = found["no-hook"].failing_predicted, found["short"].failing_predicted
    assert none.minimum is not None
    assert short.maximum is not None
    assert none.minimum > short.maximum > 0


def test_the_command_simulates_the_same(of_haproxy: list[Trial]) -> None:
    short = by_scenario(of_haproxy)["short"]
    assert "--pre-stop 1s" in short.simulate
    assert "--load-balancer " in short.simulate


def sending_until(trial: Trial, ms: int) -> Trial:
    (pod,) = trial.report.trial.windows
    assert pod.load_balancer is not None
    at = (ms * NS_PER_MS, ms * NS_PER_MS)
    window = replace(pod.load_balancer, sends=replace(pod.load_balancer.sends, closes_ns=at))
    own = replace(trial.report.trial, windows=(replace(pod, load_balancer=window),))
    return replace(trial, report=replace(trial.report, trial=own))


def test_a_trial_is_no_part_of_its_own_prediction(of_haproxy: list[Trial]) -> None:
    one, *others = of_haproxy
    odd = [sending_until(one, 60_000), *others]
    name = one.scenario.id.rpartition("balancer-")[2]
    assert by_scenario(odd)[name].sends.maximum == 60 * NS_PER_S
    predicted = by_scenario(odd)[name].sends_predicted.maximum
    assert predicted is not None
    assert predicted < 10 * NS_PER_S


def test_a_load_balancer_that_stops_sooner_than_predicted_is_told(of_haproxy: list[Trial]) -> None:
    """As if the others had been measured behind a slow one: all would fail, and did not."""
    long = [trial for trial in of_haproxy if trial.scenario.id.endswith("long")]
    slow = [sending_until(trial, 9000) for trial in of_haproxy if trial not in long]
    found = by_scenario([*long, *slow])["long"]
    assert found.verdicts_equal == 0
    assert len(list(broken(found))) == 1


def test_a_model_that_has_the_listener_close_at_another_time_is_told(
    of_haproxy: list[Trial],
) -> None:
    """As if SIGTERM had come 300 ms later than new connections began to fail."""
    wrong = []
    for trial in of_haproxy:
        own = trial.report.trial
        at = own.summary.trigger_to_sigterm_ns
        assert at is not None
        later = (at[0] + 300 * NS_PER_MS, at[1] + 300 * NS_PER_MS)
        summary = replace(own.summary, trigger_to_sigterm_ns=later)
        report = replace(trial.report, trial=replace(own, summary=summary))
        wrong.append(replace(trial, report=report))
    found = by_scenario(wrong)
    assert found["no-hook"].replays_right == 0
    assert any("fail for another time than measured" in line for line in broken(found["no-hook"]))


def test_one_trial_alone_predicts_nothing(of_haproxy: list[Trial]) -> None:
    with pytest.raises(FidelityError, match="expected two or more"):
        behind(of_haproxy[:1])


def without(report: Report, what: str) -> Report:
    trial = report.trial
    if what == "window":
        windows = tuple(replace(pod, load_balancer=None) for pod in trial.windows)
        return replace(report, trial=replace(trial, windows=windows))
    if what == "sigterm":
        summary = replace(trial.summary, trigger_to_sigterm_ns=None)
        return replace(report, trial=replace(trial, summary=summary))
    return replace(report, trial=replace(trial, new_connections=()))


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("window", "0 ends of the load balancer's sending"),
        ("sigterm", "when SIGTERM came is not known"),
        ("prober", "no new TCP connections were tried"),
    ],
)
def test_what_a_trial_does_not_tell_is_said(of_haproxy: list[Trial], what: str, says: str) -> None:
    lacking = [replace(trial, report=without(trial.report, what)) for trial in of_haproxy]
    with pytest.raises(FidelityError, match=says):
        behind(lacking)
