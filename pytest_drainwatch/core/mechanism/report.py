"""The looks of a recording -> each flow with its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.jsonvalue import text
from pytest_drainwatch.core.mechanism.evidence import Tracked, evidence_of
from pytest_drainwatch.core.mechanism.pods import pods_of
from pytest_drainwatch.core.mechanism.snapshot import Look
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.transitions import Transition


def with_evidence(
    flows: Sequence[FlowReport],
    looks: Sequence[Look],
    seen: Sequence[Observation],
    changes: Iterable[Transition],
    t0_ns: int,
) -> tuple[FlowReport, ...]:
    """The same flows, each with what the looks say about it."""
    if not looks:
        return tuple(flows)
    pods = pods_of(seen, changes)
    opened = {o.subject: o for o in seen if o.event is Event.FLOW_CONNECTED}
    answered: dict[str, list[Interval]] = {}
    for o in seen:
        if o.event is Event.FLOW_ANSWERED:
            answered.setdefault(o.subject, []).append(o.at)

    def judged(flow: FlowReport) -> FlowReport:
        connected = opened.get(flow.id)
        local = None if connected is None else _socket(connected.data.get("local"))
        remote = None if connected is None else _socket(connected.data.get("remote"))
        if local is None or remote is None:
            return flow
        tracked = Tracked(
            proto=flow.proto,
            address=local[0],
            port=local[1],
            to_port=remote[1],
            mechanism=flow.mechanism,
            end=None if flow.terminal_ns is None else Interval(*flow.terminal_ns),
            answered=tuple(answered.get(flow.id, ())),
        )
        found = evidence_of(tracked, looks, pods, t0_ns)
        return replace(flow, evidence=found) if found else flow

    return tuple(judged(flow) for flow in flows)


def _socket(said: object) -> tuple[str, int] | None:
    """Address and port of one end of a flow: how conntrack knows it."""
    address, _, port = text(said).rpartition(":")
    address = address.removeprefix("[").removesuffix("]")
    return (address, int(port)) if address and port.isdecimal() and len(port) <= 5 else None
