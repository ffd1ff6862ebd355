"""Flows and moments -> the headline values of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_drainwatch.core.document import (
    Counts,
    FlowReport,
    OrderReport,
    Summary,
    whole_ms,
)
from pytest_drainwatch.core.flow.classify import Outcome, Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import Interval, bounds
from pytest_drainwatch.core.moments import Moments


def summarise(flows: Sequence[FlowReport], moments: Moments, t0_ns: int) -> Summary:
    """Counts per transport and role, and the durations between the moments."""

    def since_t0(at: Interval | None) -> Interval | None:
        return None if at is None else at.since(t0_ns)

    sigterm = since_t0(moments.sigterm)
    ready_false = since_t0(moments.ready_false)
    removed = since_t0(moments.endpoint_removed)
    terminated = since_t0(moments.container_terminated)
    one = moments.pods == 1
    sigterm_to_ready = _between(sigterm, ready_false) if one else None
    sigterm_to_last = _between(sigterm, moments.last_end) if one else None
    dead_window = _between(moments.last_tcp_end, removed) if one else None
    return Summary(
        tcp=count(f for f in flows if f.proto is Proto.TCP and f.role is not Role.BYSTANDER),
        udp=count(f for f in flows if f.proto is Proto.UDP and f.role is not Role.BYSTANDER),
        bystander_tcp=count(f for f in flows if f.proto is Proto.TCP and f.role is Role.BYSTANDER),
        bystander_udp=count(f for f in flows if f.proto is Proto.UDP and f.role is Role.BYSTANDER),
        trigger_to_sigterm_ms=_upper_ms(sigterm),
        sigterm_to_ready_false_ms=_shown_ms(sigterm, ready_false) if one else None,
        sigterm_to_last_flow_terminal_ms=_shown_ms(sigterm, moments.last_end) if one else None,
        trigger_to_endpoint_removed_ms=_upper_ms(removed),
        trigger_to_container_terminated_ms=_upper_ms(terminated),
        dead_endpoint_window_ms=_shown_ms(moments.last_tcp_end, removed) if one else None,
        trigger_to_sigterm_ns=bounds(sigterm),
        sigterm_to_ready_false_ns=bounds(sigterm_to_ready),
        sigterm_to_last_flow_terminal_ns=bounds(sigterm_to_last),
        trigger_to_endpoint_removed_ns=bounds(removed),
        trigger_to_container_terminated_ns=bounds(terminated),
        dead_endpoint_window_ns=bounds(dead_window),
        orders=tuple(
            OrderReport(first=first, second=second, order=a.order(b))
            for first, a, second, b in (
                ("sigterm", sigterm, "endpoint_ready_false", ready_false),
                ("sigterm", sigterm, "last_flow_terminal", moments.last_end),
                ("last_tcp_terminal", moments.last_tcp_end, "endpoint_removed", removed),
                ("container_terminated", terminated, "endpoint_removed", removed),
            )
            if one and a is not None and b is not None
        ),
    )


def count(flows: Iterable[FlowReport]) -> Counts:
    """Outcomes and mechanisms of the flows given."""
    flows = list(flows)
    outcomes = Counter(flow.outcome for flow in flows)
    mechanisms = Counter(str(flow.mechanism) for flow in flows)
    return Counts(
        total=len(flows),
        drained=outcomes[Outcome.DRAINED],
        severed=outcomes[Outcome.SEVERED],
        read_timeout=outcomes[Outcome.READ_TIMEOUT],
        survived_window=outcomes[Outcome.SURVIVED],
        not_measured=outcomes[Outcome.NOT_MEASURED],
        mechanisms=dict(sorted(mechanisms.items())),
    )


def _between(start: Interval | None, end: Interval | None) -> Interval | None:
    return None if start is None or end is None else end - start


def _upper_ms(at: Interval | None) -> int | None:
    return None if at is None else whole_ms(at.hi)


def _shown_ms(start: Interval | None, end: Interval | None) -> int | None:
    """The difference of the two shown values, as the ancestor computes it."""
    return None if start is None or end is None else whole_ms(end.hi - start.hi)
