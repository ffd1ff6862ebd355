"""Pooling repeats: what differs is refused, what was not measured stays so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import FlowReport, NodeFacts, Report
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome, Role
from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.repeats.aggregate import PoolError, Repeat, pool
from pytest_drainwatch.core.repeats.metrics import (
    Instants,
    Metric,
    Reading,
    first_of,
    last_of,
    metrics,
)
from pytest_drainwatch.core.repeats.repeat import figures, repeat
from pytest_drainwatch.core.scenario import Scenario
from tests.core.trials import recording_of


def reading(shown_ms: int, lo_ms: int | None = None) -> Reading:
    within = None if lo_ms is None else Interval(lo_ms * NS_PER_MS, shown_ms * NS_PER_MS)
    return Reading(shown_ns=shown_ms * NS_PER_MS, within=within)


def one(label: str, value: Reading | None, **conditions: object) -> Repeat:
    return Repeat(
        label=label,
        conditions={"git_commit": "abc", "environment.kube_proxy_mode": "iptables", **conditions},
        metrics={Metric.FIRST_UDP: value},
        fates={"udp severed by rehomed": 10},
    )


def test_repeats_become_statistics_with_bounds() -> None:
    found = pool("B", [one("r00", reading(2417, 1914)), one("r01", reading(2434, 1932))])
    metric = found.metrics["trigger_to_first_udp_terminal_ms"]
    assert (metric.observed, metric.not_measured) == (2, 0)
    assert (metric.min_ms, metric.median_ms, metric.max_ms) == (2417, 2425, 2434)
    assert metric.values_ms == (2417, 2434)
    assert metric.bracket_ms is not None
    assert (metric.bracket_ms.lo, metric.bracket_ms.hi) == (1923, 2425.5)
    assert metric.min_ns == (1914 * NS_PER_MS, 2417 * NS_PER_MS)
    assert metric.max_ns == (1932 * NS_PER_MS, 2434 * NS_PER_MS)
    assert metric.median_interval is not None
    assert (metric.median_interval.lo_ms, metric.median_interval.hi_ms) == (1914, 2434)
    assert metric.median_interval.coverage == 0.5


def test_what_one_repeat_did_not_measure_is_missing_and_not_zero() -> None:
    found = pool("B", [one("r00", reading(2417, 1914)), one("r01", None)])
    metric = found.metrics["trigger_to_first_udp_terminal_ms"]
    assert (metric.observed, metric.not_measured, metric.min_ms) == (1, 1, 2417)
    assert metric.values_ms == (2417, None)
    # Missing perhaps because of its size: nothing can be said about chance then.
    assert metric.median_interval is None


def test_what_nobody_measured_has_no_figures() -> None:
    metric = pool("B", [one("r00", None)]).metrics["trigger_to_sigterm_ms"]
    assert (metric.observed, metric.not_measured) == (0, 1)
    assert {metric.min_ms, metric.median_ms, metric.max_ms, metric.bracket_ms} == {None}
    assert (metric.values_ms, metric.median_interval) == ((None,), None)


def test_one_value_without_bounds_takes_them_from_the_statistic() -> None:
    found = pool("B", [one("r00", reading(2417, 1914)), one("r01", reading(2434))])
    metric = found.metrics["trigger_to_first_udp_terminal_ms"]
    assert (metric.bracket_ms, metric.median_ns, metric.max_ms) == (None, None, 2434)


@pytest.mark.parametrize(
    ("field", "here", "there"),
    [
        ("git_commit", "abc", "def"),
        ("drainwatch_version", "0.1.0", "0.2.0"),
        ("environment.kubernetes_version", "v1.34.0", "v1.37.2"),
        ("environment.kube_proxy_mode", "iptables", "nftables"),
        ("environment.node_count", 1, 2),
        ("config.drain_behavior", "drain", "ignore"),
        ("config.trigger", "delete", "evict"),
        ("config.grace_period_seconds", 30, 10),
        ("config.tcp_flows", 10, 20),
        ("config.drain_max_seconds", 25.0, 5.0),
        ("config.settle_seconds", 10.0, 3.0),
        ("config.exit_now_reset", True, 1),
        ("environment.nodes", [("6.1", "amd64")], [("6.1", "arm64")]),
        ("environment.cni", None, "kindnet"),
    ],
)
def test_what_differs_is_not_pooled(field: str, here: object, there: object) -> None:
    value = reading(1)
    pair = [one("r00", value, **{field: here}), one("r01", value, **{field: there})]
    with pytest.raises(PoolError) as refusal:
        pool("B", pair)
    assert f"{field} is {_plain(here)} in r00 and {_plain(there)} in r01" in str(refusal.value)
    assert pool("B", [pair[0], replace(pair[0], label="r01")]).repeats == ("r00", "r01")


def _plain(value: object) -> str:
    return repr(int(value) if isinstance(value, float) else value)


def test_every_field_that_differs_is_named_and_the_first_repeat_decides() -> None:
    alike = one("r00", None)
    other = one("r02", None, git_commit="def", cpus=4)
    with pytest.raises(PoolError) as refusal:
        pool("B", [alike, replace(alike, label="r01"), other])
    assert "cpus is absent in r00 and 4 in r02; git_commit is 'abc' in r00 and 'def' in r02" in str(
        refusal.value
    )


def test_whole_seconds_are_equal_however_they_are_written() -> None:
    pair = [one("r00", None, grace=25), one("r01", None, grace=25.0)]
    assert pool("B", pair).repeats == ("r00", "r01")


def test_repeats_that_ended_otherwise_are_reported_and_pooled() -> None:
    first = one("r00", None)
    other = replace(one("r01", None), fates={"udp severed by refused": 6, **first.fates})
    assert pool("B", [first, other]).disagreements == ("udp severed by refused: 0, 6 flows",)
    assert pool("B", [first, replace(first, label="r01")]).disagreements == ()


def test_equal_names_that_prove_nothing_are_noted() -> None:
    dirty = one("r00", None, git_commit="abc-dirty", **{"environment.cni": "unknown"})
    notes = pool("B", [dirty], ["its source"]).notes
    assert notes[0] == "its source"
    assert "abc-dirty" in notes[1]
    assert notes[2] == "not known in any repeat, so not compared: environment.cni"
    assert pool("B", [one("r00", None)]).notes == ()


def test_a_setting_that_was_not_asked_for_is_known_and_compared() -> None:
    """None is "no hook" there; of a place or a build it is "could not be read"."""
    plain = one("r00", None, **{"config.pre_stop": None, "git_commit": None, "environment.os": ""})
    assert pool("B", [plain]).notes == (
        "not known in any repeat, so not compared: environment.os, git_commit",
    )
    other = one("r01", None, **{**plain.conditions, "config.pre_stop": {"kind": "sleep"}})
    with pytest.raises(PoolError, match=r"config\.pre_stop is None in r00 and \{'kind'"):
        pool("B", [plain, other])


def test_nothing_cannot_be_pooled() -> None:
    with pytest.raises(PoolError, match="has no repeats"):
        pool("B", [])


def test_the_first_and_the_last_of_bounded_ends() -> None:
    ends = [reading(2417, 1920), reading(2410, 1925)]
    first, last = first_of(ends), last_of(ends)
    assert first == Reading(
        shown_ns=2410 * NS_PER_MS, within=Interval(1920 * NS_PER_MS, 2410 * NS_PER_MS)
    )
    assert last == Reading(
        shown_ns=2417 * NS_PER_MS, within=Interval(1925 * NS_PER_MS, 2417 * NS_PER_MS)
    )
    assert first_of([]) is None
    mixed = first_of([*ends, reading(2411)])
    assert mixed is not None
    assert mixed.within is None


def test_a_missing_instant_leaves_its_figures_out() -> None:
    found = metrics(Instants(sigterm=reading(40), ready_false=reading(30)))
    assert found[Metric.SIGTERM_TO_READY_FALSE] == reading(-10)
    assert found[Metric.SIGTERM_TO_REMOVED] is None
    assert {m for m in Metric if found[m]} == {Metric.SIGTERM, Metric.SIGTERM_TO_READY_FALSE}


# --- our own reports -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def own() -> Report:
    return derive(recording_of(Scenario()))


def with_flows(report: Report, *flows: FlowReport) -> Report:
    return replace(report, trial=replace(report.trial, flows=flows))


def changed(flow: FlowReport, **changes: Any) -> FlowReport:
    return replace(flow, **changes)


def test_our_own_report_gives_the_same_figures_with_bounds(own: Report) -> None:
    found, summary = figures(own), own.trial.summary
    (flow,) = own.trial.flows
    for metric, at in {
        Metric.FIRST_TCP: flow.terminal_ns,
        Metric.LAST_TCP: flow.terminal_ns,
        Metric.SIGTERM: summary.trigger_to_sigterm_ns,
        Metric.SIGTERM_TO_READY_FALSE: summary.sigterm_to_ready_false_ns,
        Metric.ENDPOINT_REMOVED: summary.trigger_to_endpoint_removed_ns,
        Metric.CONTAINER_TERMINATED: summary.trigger_to_container_terminated_ns,
        Metric.DEAD_WINDOW: summary.dead_endpoint_window_ns,
    }.items():
        value = found[metric]
        assert at is not None
        assert value is not None
        assert value.within == Interval(*at)
    assert found[Metric.FIRST_UDP] is None
    assert found[Metric.FIRST_UDP_TO_EXIT] is None


def test_the_figures_shown_are_those_of_the_report(own: Report) -> None:
    found = pool("drain-delete", [repeat(own, "r00"), repeat(own, "r01")])
    summary = own.trial.summary
    for name, shown in {
        "trigger_to_sigterm_ms": summary.trigger_to_sigterm_ms,
        "sigterm_to_ready_false_ms": summary.sigterm_to_ready_false_ms,
        "tcp_dead_before_endpoint_removed_ms": summary.dead_endpoint_window_ms,
        "trigger_to_endpoint_removed_ms": summary.trigger_to_endpoint_removed_ms,
        "trigger_to_last_tcp_terminal_ms": own.trial.flows[0].t_terminal_ms,
    }.items():
        assert (found.metrics[name].min_ms, found.metrics[name].observed) == (shown, 2)


def test_while_a_flow_lives_nobody_knows_when_the_last_one_ends(own: Report) -> None:
    (ended,) = own.trial.flows
    alive = changed(ended, id="tcp-0002", outcome=Outcome.SURVIVED, terminal_ns=None)
    found = figures(with_flows(own, ended, alive))
    assert found[Metric.FIRST_TCP] == figures(own)[Metric.FIRST_TCP]
    assert found[Metric.LAST_TCP] is None
    assert found[Metric.DEAD_WINDOW] is None


def test_a_flow_that_was_not_measured_may_have_been_the_first(own: Report) -> None:
    (ended,) = own.trial.flows
    stalled = changed(
        ended,
        id="tcp-0002",
        outcome=Outcome.NOT_MEASURED,
        mechanism=Mechanism.CLIENT_STALL,
        terminal_ns=None,
    )
    found = figures(with_flows(own, ended, stalled))
    assert found[Metric.FIRST_TCP] is None
    assert found[Metric.LAST_TCP] is None


def test_bystanders_are_no_part_of_the_figures(own: Report) -> None:
    (ended,) = own.trial.flows
    other = changed(ended, id="tcp-0002", role=Role.BYSTANDER, terminal_ns=(1, 2))
    assert figures(with_flows(own, ended, other)) == figures(own)


@pytest.mark.parametrize(("field", "value"), [("drain_behavior", "ignore"), ("udp_rate_hz", 5)])
def test_our_trials_of_two_questions_are_not_pooled(own: Report, field: str, value: object) -> None:
    config = {**Scenario().config(), field: value}
    first = replace(own, trial=replace(own.trial, config=Scenario().config()))
    other = replace(own, trial=replace(own.trial, config=config))
    with pytest.raises(PoolError, match=rf"config\.{field} is .+ in r00 and {value!r} in r01"):
        pool("x", [repeat(first, "r00"), repeat(other, "r01")])


def test_our_trials_in_two_places_are_not_pooled(own: Report) -> None:
    environment = replace(own.environment, kubernetes_version="v1.34.0", kube_proxy_mode="ipvs")
    with pytest.raises(PoolError) as refusal:
        pool("x", [repeat(own, "r00"), repeat(replace(own, environment=environment), "r01")])
    assert "environment.kube_proxy_mode is None in r00 and 'ipvs' in r01" in str(refusal.value)
    assert "environment.kubernetes_version is" in str(refusal.value)


def test_two_clusters_that_name_their_nodes_apart_are_pooled(own: Report) -> None:
    def on(name: str, kernel: str) -> Repeat:
        nodes = (NodeFacts(name=name, kernel_version=kernel),)
        environment = replace(own.environment, nodes=nodes, wall_clock_start=name)
        return repeat(replace(own, environment=environment), name)

    assert pool("x", [on("node-1", "6.1"), on("node-2", "6.1")]).repeats == ("node-1", "node-2")
    with pytest.raises(PoolError, match=r"environment\.nodes"):
        pool("x", [on("node-1", "6.1"), on("node-2", "6.8")])


def test_repeats_in_other_namespaces_and_on_other_clusters_are_pooled(own: Report) -> None:
    """Each trial has a namespace of its own, each xdist worker a cluster at its own address."""

    def at(namespace: str, host: str) -> Repeat:
        config = {**own.trial.config, "namespace": namespace, "target_host": host}
        return repeat(replace(own, trial=replace(own.trial, config=config)), namespace)

    pooled = pool("same", [at("dw-a", "10.0.0.1"), at("dw-b", "10.0.1.1")])
    assert pooled.repeats
    assert not pooled.disagreements
