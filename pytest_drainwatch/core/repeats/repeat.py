"""Our own report as a repeat to pool.

The figures that the ancestor has mean the same here. One thing is stricter: while a
flow of the target has no known end, nobody can say when the last one ended, nor,
if it was not measured, when the first did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_drainwatch.core.document import Environment, FlowReport, NodeFacts, Report
from pytest_drainwatch.core.flow.classify import Outcome, Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.http.document import Requests
from pytest_drainwatch.core.http.fate import UNKNOWN
from pytest_drainwatch.core.interval import NS_PER_MS, Bounds, Interval
from pytest_drainwatch.core.probing.document import NewConnections
from pytest_drainwatch.core.repeats.aggregate import Repeat
from pytest_drainwatch.core.repeats.alike import SIMULATED
from pytest_drainwatch.core.repeats.fates import FlowFate, counted
from pytest_drainwatch.core.repeats.metrics import (
    Instants,
    Metric,
    OwnMetric,
    Reading,
    Tally,
    first_of,
    last_of,
    metrics,
)

# Facts that name a place or a time and do not shape a result.
# The build is a condition of its own, and would differ twice.
_BUILD = frozenset({"drainwatch_version", "git_commit"})
_IDLE_FACTS = frozenset({"wall_clock_start", "warnings", "provider_why", "nodes", *_BUILD})
_IDLE_CONFIG = frozenset({"namespace", "target_host"})
# Differences of instants that with several pods may be those of two of them.
_OF_ONE_POD = (
    Metric.DEAD_WINDOW,
    Metric.FIRST_UDP_TO_EXIT,
    Metric.LAST_UDP_TO_EXIT,
    Metric.SIGTERM_TO_REMOVED,
)
_SPARSE = ("probe_sparse_interval_ms", "udp_probe_sparse_interval_ms")
_FAILING = {OwnMetric.NEW_TCP_FAILING: Proto.TCP, OwnMetric.NEW_UDP_FAILING: Proto.UDP}


def repeat(report: Report, label: str) -> Repeat:
    """One report of ours, ready to be pooled."""
    flows = (*map(_fate, report.trial.flows), *_pooled(report.trial.requests))
    return Repeat(
        label=label,
        conditions=conditions(report),
        metrics=figures(report),
        own_metrics={
            **failing(report.trial.new_connections),
            **failed_for(report),
            **requests_failing(report.trial.requests),
        },
        fates=counted(flows),
        flows=flows,
        tallies=tallies(report),
    )


def figures(report: Report) -> Mapping[Metric, Reading | None]:
    """The figures of one trial of ours, each with its bounds."""
    # A one-way flow of which nobody knows whose it is may be the target's.
    unknown = [flow for flow in report.trial.flows if flow.one_way and flow.role is None]
    flows = [*(flow for flow in report.trial.flows if flow.role is Role.TARGET), *unknown]
    tcp = [flow for flow in flows if flow.proto is Proto.TCP]
    udp = [flow for flow in flows if flow.proto is Proto.UDP]
    summary = report.trial.summary
    found = metrics(
        Instants(
            first_tcp_end=_first_end(tcp),
            last_tcp_end=_last_end(tcp),
            first_udp_end=_first_end(udp),
            last_udp_end=_last_end(udp),
            sigterm=_reading(summary.trigger_to_sigterm_ns),
            endpoint_removed=_reading(summary.trigger_to_endpoint_removed_ns),
            container_terminated=_reading(summary.trigger_to_container_terminated_ns),
        )
    )
    if len(report.trial.trigger.targets) > 1:
        return {**found, **dict.fromkeys(_OF_ONE_POD)}
    # The report holds this difference, and not the instant.
    at, shown_ms = summary.sigterm_to_ready_false_ns, summary.sigterm_to_ready_false_ms
    if at is not None and shown_ms is not None:
        reading = Reading(shown_ns=shown_ms * NS_PER_MS, within=Interval(*at))
        return {**found, Metric.SIGTERM_TO_READY_FALSE: reading}
    return found


def conditions(report: Report) -> Mapping[str, object]:
    """Everything that must be equal before two trials are repeats of each other."""
    environment, trial = report.environment, report.trial
    facts = {
        f"environment.{name}": getattr(environment, name)
        for name in Environment.__slots__
        if name not in _IDLE_FACTS
    }
    nodes = environment.nodes
    return {
        SIMULATED: report.simulated,
        "drainwatch_version": report.drainwatch_version,
        "git_commit": report.git_commit,
        **facts,
        "environment.nodes": None if nodes is None else sorted(_node(node) for node in nodes),
        **{
            f"config.{name}": value
            for name, value in trial.config.items()
            if name not in _IDLE_CONFIG
        },
        "trigger": trial.trigger.verb,
        "deviations": list(trial.deviations),
    }


def tallies(report: Report) -> Mapping[Tally, Interval | None]:
    """What must not be, counted: surely so many, and at most those that nobody could judge too.

    None where there was nothing that could be lost.
    """
    trial = report.trial
    return {
        Tally.TARGET_FLOWS_LOST: _lost(trial.flows, Role.TARGET),
        Tally.BYSTANDER_FLOWS_LOST: _lost(trial.flows, Role.BYSTANDER),
        Tally.NEW_CONNECTIONS_FAILED: _failed(trial.new_connections),
        **(_requests_failed(trial.requests) if trial.requests is not None else {}),
    }


def failing(probers: Sequence[NewConnections]) -> Mapping[OwnMetric, Reading | None]:
    """For how long new connections failed, of each transport of which any were tried."""
    return {
        name: _failing([prober for prober in probers if prober.proto is proto])
        for name, proto in _FAILING.items()
        if any(prober.proto is proto for prober in probers)
    }


def failed_for(report: Report) -> Mapping[OwnMetric, Reading | None]:
    """For how long new connections failed, if any were tried.

    Where the plan is denser more of them fail in the same time, so each counts as the time to
    the next. What nobody could judge may have failed; of those that are lost it is not known
    where they were, so they count as if they had been where the plan is sparsest.
    """
    probers = report.trial.new_connections
    if _failed(probers) is None:
        return {OwnMetric.NEW_FAILED: None} if probers else {}
    sparse_ms = [report.trial.config.get(name) for name in _SPARSE]
    longest_ns = max(
        (round(ms * NS_PER_MS) for ms in sparse_ms if isinstance(ms, (int, float))), default=0
    )
    failed_ns, unknown_ns = 0, 0
    for prober in probers:
        for interval_ns, failed, unknown in _apart(prober):
            if interval_ns is None:
                return {OwnMetric.NEW_FAILED: None}
            failed_ns += failed * interval_ns
            unknown_ns += unknown * interval_ns
            longest_ns = max(longest_ns, interval_ns)
    unknown_ns += longest_ns * sum(prober.lost or 0 for prober in probers)
    within = Interval(failed_ns, failed_ns + unknown_ns)
    return {OwnMetric.NEW_FAILED: Reading(shown_ns=failed_ns, within=within)}


def requests_failing(requests: Requests | None) -> Mapping[OwnMetric, Reading | None]:
    """From the first HTTP request that failed to the last one, if any were made."""
    if requests is None:
        return {}
    kinds = requests.kinds
    windows = [kind.failing for kind in kinds if kind.failing is not None]
    unknown = any(kind.not_judged for kind in kinds) or requests.lost != 0
    if not windows:
        surely_none = any(kind.attempts for kind in kinds) and not unknown
        return {OwnMetric.HTTP_FAILING: Reading.of(Interval.point(0)) if surely_none else None}
    begins, ends = [w.first_ns for w in windows], [w.last_ns for w in windows]
    failures = sum(w.failures for w in windows)
    if unknown:  # those of kinds without a window stand in the list alone
        if requests.not_served_left_out:
            return {OwnMetric.HTTP_FAILING: None}
        stretches = [one.at_ns for one in requests.not_served if one.fate in UNKNOWN]
        begins = [*begins, *((lo, begins[0][1]) for lo, _ in stretches)]
        ends = [*ends, *((ends[0][0], hi) for _, hi in stretches)]
    first = Interval(min(lo for lo, _ in begins), min(hi for _, hi in begins))
    last = Interval(max(lo for lo, _ in ends), max(hi for _, hi in ends))
    lasts = last - first
    if failures == 1:
        lasts = Interval(0, lasts.hi if unknown else 0)
    return {OwnMetric.HTTP_FAILING: Reading.of(lasts)}


def _apart(prober: NewConnections) -> Sequence[tuple[int | None, int, int]]:
    """How far apart attempts were; how many failed, and of how many that is not known."""
    # Reports of before there were two densities do not have them apart.
    if not prober.by_interval:
        return [(prober.interval_ns, prober.failed, prober.not_judged)]
    return [
        # Of a slot that was missed nobody knows what an attempt would have met.
        (
            each.interval_ns,
            each.failed,
            max(each.not_judged, (each.planned_slots or 0) - each.attempts),
        )
        for each in prober.by_interval
    ]


def _lost(flows: Sequence[FlowReport], role: Role) -> Interval | None:
    if not any(flow.role is role for flow in flows):
        return None
    # A flow that nobody answered before it ended may have been anybody's.
    ours = [flow for flow in flows if flow.role in (role, None)]
    may = [flow for flow in ours if flow.outcome not in (Outcome.DRAINED, Outcome.SURVIVED)]
    surely = [f for f in may if f.role is role and f.outcome is not Outcome.NOT_MEASURED]
    return Interval(len(surely), len(may))


def _failed(probers: Sequence[NewConnections]) -> Interval | None:
    failed, unknown = 0, 0
    for prober in probers:
        if prober.lost is None:
            return None
        failed += prober.failed
        unknown += prober.not_judged + prober.lost
    tried = sum(prober.attempts for prober in probers) + unknown
    return Interval(failed, failed + unknown) if tried else None


def _requests_failed(requests: Requests) -> Mapping[Tally, Interval | None]:
    if requests.lost is None:
        return {Tally.HTTP_REQUESTS_FAILED: None}
    failed = sum(kind.failed for kind in requests.kinds)
    unknown = requests.lost + sum(kind.not_judged for kind in requests.kinds)
    made = unknown + sum(kind.attempts for kind in requests.kinds)
    return {Tally.HTTP_REQUESTS_FAILED: Interval(failed, failed + unknown) if made else None}


def _failing(probers: Sequence[NewConnections]) -> Reading | None:
    """Of several, each at a node of its own, the longest."""
    lasts = [found for prober in probers if (found := _failing_at(prober)) is not None]
    if len(lasts) < len(probers):
        return None
    return Reading.of(Interval(max(one.lo for one in lasts), max(one.hi for one in lasts)))


def _failing_at(prober: NewConnections) -> Interval | None:
    if prober.observed_failing is not None:
        return Interval(*prober.observed_failing.lasts_ns)
    surely_none = prober.attempts and not prober.not_judged and prober.lost == 0
    return Interval.point(0) if surely_none else None


def _fate(flow: FlowReport) -> FlowFate:
    return FlowFate(
        id=flow.id,
        group=f"{flow.role or 'unanswered'} {flow.proto}",
        outcome=str(flow.outcome),
        mechanism=str(flow.mechanism),
    )


def _pooled(requests: Requests | None) -> Iterator[FlowFate]:
    """How pooled HTTP connections ended, each by the name of its lane."""
    for one in requests.connections if requests is not None else ():
        yield FlowFate(
            id=one.lane,
            group=f"{one.role or 'unknown'} http",
            outcome=str(one.outcome),
            mechanism=str(one.how),
        )


def _first_end(flows: Sequence[FlowReport]) -> Reading | None:
    if any(flow.outcome is Outcome.NOT_MEASURED for flow in flows):
        return None
    return first_of([Reading.of(Interval(*f.terminal_ns)) for f in flows if f.terminal_ns])


def _last_end(flows: Sequence[FlowReport]) -> Reading | None:
    ends = [Reading.of(Interval(*f.terminal_ns)) for f in flows if f.terminal_ns]
    return last_of(ends) if len(ends) == len(flows) else None


def _reading(at: Bounds | None) -> Reading | None:
    return None if at is None else Reading.of(Interval(*at))


def _node(node: NodeFacts) -> tuple[str, ...]:
    """What a node is, without what it is called: parallel clusters name theirs apart."""
    return tuple(str(getattr(node, name)) for name in NodeFacts.__slots__ if name != "name")
