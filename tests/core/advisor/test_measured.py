"""What measured trials say for advice: one value a trial, or why it says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from pytest_drainwatch import report as reports
from pytest_drainwatch.core.advisor.measured import Figure, MeasuredError, Name, measured
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.pod.ending import EndedBy

SAMPLE = Path(__file__).resolve().parents[3] / "results/sample/kubernetes-1.37"
Q = Fraction(95, 100)


@pytest.fixture(scope="module")
def drained() -> Report:
    """A draining app that is deleted, and has no other pod."""
    text = (SAMPLE / "B-drain-delete/r00/report.json").read_text(encoding="utf-8")
    return reports.loads(text)


def changed(report: Report, config: Mapping[str, object] | None = None, **trial: object) -> Report:
    own = replace(report.trial, config={**report.trial.config, **(config or {})}, **trial)  # type: ignore[arg-type]
    return replace(report, trial=own)


def failing_until(report: Report, ms: int | None, **tcp: object) -> Report:
    """One of two pods is deleted; new connections fail up to then, or never."""
    found = []
    for each in report.trial.new_connections:
        window = each.observed_failing
        assert window is not None
        bound = (ms or 0) * NS_PER_MS
        window = replace(window, begun_ns=(window.begun_ns[0], bound))
        found.append(
            replace(each, observed_failing=window if ms is not None else None, not_judged=0, **tcp)  # type: ignore[arg-type]
        )
    return changed(report, {"replicas": 2}, new_connections=tuple(found), degraded=())


def figure(name: Name, *found: Report, quantile: Fraction = Q) -> Figure:
    named = [(f"trial {number}", report) for number, report in enumerate(found)]
    return measured(named, quantile, Q).figure(name)


def test_connections_come_until_the_one_after_the_last_that_failed(drained: Report) -> None:
    (interval_ns,) = {each.interval_ns for each in drained.trial.new_connections if each.attempts}
    assert interval_ns is not None
    found = figure(Name.PROPAGATION, *(failing_until(drained, ms) for ms in (900, 300, 700)))
    assert found.values_ns == tuple(ms * NS_PER_MS + interval_ns for ms in (300, 700, 900))
    assert (found.bounds_only, found.left_out, found.limit.value) == (0, {}, None)
    assert found.limit.needed == 59


def test_with_enough_trials_there_is_a_limit_and_it_is_no_median(drained: Report) -> None:
    many = [failing_until(drained, ms) for ms in range(1, 60)]
    found = figure(Name.PROPAGATION, *many)
    assert found.limit.value == found.values_ns[-1]
    assert figure(Name.PROPAGATION, *many[:-1]).limit.value is None
    assert figure(Name.PROPAGATION, *many[:-1], quantile=Fraction(9, 10)).limit.value is not None


def test_where_none_failed_they_had_stopped_when_the_pod_stopped_accepting(drained: Report) -> None:
    found = figure(Name.PROPAGATION, failing_until(drained, None), failing_until(drained, 900))
    sigterm_ns = drained.trial.summary.trigger_to_sigterm_ns
    assert sigterm_ns is not None
    assert (found.values_ns[0], found.bounds_only) == (sigterm_ns[1], 1)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"replicas": 1}, "no other pod"),
        ({"external_traffic_policy": "Local"}, "Local"),
    ],
)
def test_a_trial_that_ends_with_the_replacement_tells_nothing_of_the_way(
    drained: Report, config: Mapping[str, object], reason: str
) -> None:
    found = figure(Name.PROPAGATION, changed(failing_until(drained, 900), config))
    assert found.values_ns == ()
    assert [reason in told for told in found.left_out] == [True]


@pytest.mark.parametrize("config", [{"accept_on_drain": "keep"}, {"drain_behavior": "ignore"}])
def test_none_failed_says_nothing_of_a_pod_that_goes_on_accepting(
    drained: Report, config: Mapping[str, object]
) -> None:
    assert figure(Name.PROPAGATION, changed(failing_until(drained, None), config)).values_ns == ()
    assert figure(Name.PROPAGATION, changed(failing_until(drained, 900), config)).values_ns != ()


def test_what_nobody_knows_is_left_out_and_counted(drained: Report) -> None:
    good = failing_until(drained, 900)
    found = figure(
        Name.PROPAGATION,
        good,
        failing_until(drained, 900, lost=3),
        failing_until(drained, 900, lost=None),
        changed(good, degraded=("the machine was busy",)),
        changed(good, new_connections=()),
        changed(good, trigger=replace(good.trial.trigger, verb="rollout")),
    )
    assert len(found.values_ns) == 1
    assert sum(found.left_out.values()) == 5
    assert len(found.left_out) == 4


def test_a_shutdown_is_from_sigterm_to_the_containers_own_end(drained: Report) -> None:
    found = figure(Name.SHUTDOWN, drained)
    (took_ns,) = found.values_ns
    assert 25_000 <= took_ns // NS_PER_MS <= 26_000, "the sample drains for 25 s"
    cut = tuple(replace(end, ended_by=EndedBy.SIGKILL_AT_GRACE) for end in drained.trial.pod_ends)
    found = figure(Name.SHUTDOWN, changed(drained, pod_ends=cut))
    assert (found.values_ns, len(found.left_out)) == ((), 1)


def test_another_application_takes_another_time(drained: Report) -> None:
    other = changed(drained, {"drain_max_seconds": 5.0})
    found = figure(Name.SHUTDOWN, drained, other)
    assert found.values_ns == ()
    assert found.left_out == {"applications differ in drain_max_seconds": 2}
    # how long its hook is does not matter for what comes after it
    assert len(figure(Name.SHUTDOWN, drained, changed(drained, {"pre_stop": {}})).values_ns) == 2


def test_ways_that_differ_are_not_pooled(drained: Report) -> None:
    other = replace(drained, environment=replace(drained.environment, min_sync_period_ms=9))
    with pytest.raises(MeasuredError, match="min_sync_period_ms is 1000 in a and 9 in b"):
        measured([("a", drained), ("b", other)], Q, Q)
    with pytest.raises(MeasuredError, match=r"config\.access is 'nodeport' in a"):
        measured([("a", drained), ("b", changed(drained, {"access": "clusterip"}))], Q, Q)


def test_what_a_model_predicted_is_no_measurement(drained: Report) -> None:
    with pytest.raises(MeasuredError, match="b is a simulated trial"):
        measured([("a", drained), ("b", replace(drained, simulated=True))], Q, Q)


def test_nothing_is_no_measurement() -> None:
    with pytest.raises(MeasuredError, match="there is no trial"):
        measured([], Q, Q)
