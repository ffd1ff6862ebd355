"""The ancestor's report as a repeat to pool: its figures, computed from its facts.

Its summary and its aggregate are not read for this. Where it takes the *earliest*
event of a name over the whole timeline, of whatever pod, so does this: the aim is
its figures. Beside each UDP end stands our re-reading of it as a bracket.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.repeats.aggregate import Repeat
from pytest_drainwatch.core.repeats.alike import SIMULATED
from pytest_drainwatch.core.repeats.fates import FlowFate, counted
from pytest_drainwatch.core.repeats.metrics import Instants, Reading, first_of, last_of, metrics
from pytest_drainwatch.upstream.document import (
    Config,
    Environment,
    Flow,
    Happening,
    Node,
    Trial,
    UpstreamReport,
)
from pytest_drainwatch.upstream.instants import udp_end

# Names of places, times and remarks: they shape no result.
_IDLE_FACTS = frozenset({"wall_clock_start", "warnings", "nodes"})
_IDLE_CONFIG = frozenset({"namespace", "tcp_port", "udp_port"})
NOTES = (
    "drainwatch v0.1 kept no bounds: its k8s times are receipts (upper bounds), its probe "
    "times differences of two wall clocks",
    "its UDP ends are receipts on a 500 ms grid: each bracket runs from the last ack of "
    "the old responder to the first sign of its end; container exit counts as printed",
)


def repeat(report: UpstreamReport, label: str) -> Repeat:
    """One report of the ancestor, ready to be pooled."""
    flows = tuple(_fate(flow) for flow in report.trial.flows)
    return Repeat(
        label=label,
        conditions=conditions(report),
        metrics=metrics(instants(report.trial)),
        fates=counted(flows),
        flows=flows,
    )


def instants(trial: Trial) -> Instants:
    """When the things happened that the figures are made of; as it printed them."""
    tcp = [_end(flow) for flow in trial.flows if flow.proto is Proto.TCP]
    udp = [_end(flow) for flow in trial.flows if flow.proto is Proto.UDP]
    # Extremes ignore flows without an end, as its own do.
    tcp_ends = [end for end in tcp if end is not None]
    udp_ends = [end for end in udp if end is not None]
    return Instants(
        first_tcp_end=first_of(tcp_ends),
        last_tcp_end=last_of(tcp_ends),
        first_udp_end=first_of(udp_ends),
        last_udp_end=last_of(udp_ends),
        sigterm=_earliest(trial, "probe", Happening.SIGTERM_RECEIVED),
        ready_false=_earliest(trial, "k8s", Happening.ENDPOINTSLICE_READY_FALSE),
        endpoint_removed=_earliest(trial, "k8s", Happening.ENDPOINTSLICE_ENDPOINT_REMOVED),
        container_terminated=_earliest(trial, "k8s", Happening.CONTAINER_TERMINATED),
    )


def conditions(report: UpstreamReport) -> Mapping[str, object]:
    """Everything that must be equal before two trials are repeats of each other."""
    environment, config = report.environment, report.trial.config
    nodes = environment.nodes
    return {
        SIMULATED: False,  # it has no simulator
        "drainwatch_version": report.drainwatch_version,
        "git_commit": report.git_commit,
        **{
            f"environment.{fact.name}": getattr(environment, fact.name)
            for fact in fields(Environment)
            if fact.name not in _IDLE_FACTS
        },
        "environment.nodes": None if nodes is None else sorted(_node(node) for node in nodes),
        **{
            f"config.{fact.name}": getattr(config, fact.name)
            for fact in fields(Config)
            if fact.name not in _IDLE_CONFIG
        },
    }


def _fate(flow: Flow) -> FlowFate:
    """How a flow ended, in its words; instances are not told apart."""
    return FlowFate(
        id=flow.id,
        group=str(flow.proto),
        outcome=str(flow.outcome),
        mechanism=_route(flow.detail),
    )


def _route(detail: str | None) -> str:
    if detail is None:
        return "nothing said"
    return "another instance" if detail.startswith("answered by probe instance") else detail


def _end(flow: Flow) -> Reading | None:
    if flow.t_terminal_ms is None:
        return None
    bracket = udp_end(flow) if flow.proto is Proto.UDP else None
    return Reading(shown_ns=flow.t_terminal_ms * NS_PER_MS, within=bracket)


def _earliest(trial: Trial, source: str, event: Happening) -> Reading | None:
    times = [e.t_ms for e in trial.timeline or () if e.source == source and e.event is event]
    return Reading(shown_ns=min(times) * NS_PER_MS) if times else None


def _node(node: Node) -> tuple[str, ...]:
    """What a node is, without what it is called."""
    return tuple(getattr(node, fact.name) for fact in fields(Node) if fact.name != "name")
