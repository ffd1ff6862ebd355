"""Everything that happened, from all sources, on one clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from pytest_drainwatch.core import clock
from pytest_drainwatch.core.blind import Blind
from pytest_drainwatch.core.document import FlowReport, TimelineEntry, whole_ms
from pytest_drainwatch.core.http.document import Requests
from pytest_drainwatch.core.http.fate import FAILED as BROKEN
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.probing.document import FAILED, NewConnections
from pytest_drainwatch.core.transitions import Transition

_ORCHESTRATOR = {
    Event.WORKLOAD_APPLIED: "workload_applied",
    Event.PREFLIGHT_PASSED: "preflight_passed",
    Event.SETTLE_COMPLETE: "settle_complete",
    Event.NODE_CORDONED: "node_cordoned",
    Event.NODE_EVACUATED: "node_evacuated",
    Event.TRIGGER_BLOCKED: "trigger_blocked",
    Event.TRIGGER_CONTINUED: "trigger_continued",
    Event.ALL_FLOWS_TERMINAL: "all_flows_terminal",
    Event.OBSERVATION_WINDOW_CLOSED: "observation_window_closed",
}
_HIDDEN = frozenset({"containers", "config"})


def timeline(
    seen: Iterable[Observation],
    changes: Iterable[Transition],
    flows: Iterable[FlowReport],
    clocks: Mapping[str, clock.Clock],
    t0_ns: int,
    targets: AbstractSet[str],
    tried: Iterable[NewConnections] = (),
    asked: Requests | None = None,
) -> tuple[TimelineEntry, ...]:
    """All entries by (t_ms, source, event), as the ancestor sorts them."""
    seen = tuple(seen)
    entries = [
        *_own(seen, t0_ns),
        *_probe(seen, clocks, t0_ns),
        *_cluster(changes, t0_ns, targets, seen),
        *_balancer(seen, t0_ns),
        *_ends(flows),
        *_failing(tried),
        *_failing_requests(asked),
    ]
    return tuple(sorted(entries, key=lambda e: (e.t_ms, e.source, e.event)))


def _own(seen: Iterable[Observation], t0_ns: int) -> Iterator[TimelineEntry]:
    for o in seen:
        if o.event is Event.TRIGGER_ACCEPTED:
            at, verb = o.at.since(t0_ns), o.data.get("verb")
            yield _entry(Interval.point(0), Source.ORCHESTRATOR, "trigger_issued", f"verb={verb}")
            yield _entry(at, Source.ORCHESTRATOR, "trigger_api_returned", f"verb={verb}")
        elif o.event in _ORCHESTRATOR:
            yield _entry(o.at.since(t0_ns), Source.ORCHESTRATOR, _ORCHESTRATOR[o.event], _words(o))


def _probe(
    seen: Iterable[Observation], clocks: Mapping[str, clock.Clock], t0_ns: int
) -> Iterator[TimelineEntry]:
    for o in seen:
        if o.source is not Source.PROBE or o.event is Event.UDP_RECEIVED:
            continue
        at = clock.to_harness(o, clocks)
        if at is None:
            continue  # not placeable in time: the notes say so
        yield _entry(
            at.since(t0_ns),
            Source.PROBE,
            o.event,
            _words(o),
            subject=o.subject,
            approximate=at.width > 0,
        )


def _cluster(
    changes: Iterable[Transition],
    t0_ns: int,
    targets: AbstractSet[str],
    seen: tuple[Observation, ...],
) -> Iterator[TimelineEntry]:
    """A change lies before its receipt: after the trigger if that caused it, else after the
    workload was applied, which says little, so such an entry is marked approximate. So is
    one that a gap over the trigger may have hidden.
    """
    blind = Blind.of(seen, t0_ns)
    applied = min((o.at.lo for o in seen if o.event is Event.WORKLOAD_APPLIED), default=t0_ns)
    applied -= t0_ns
    for change in changes:
        received = change.received_ns - t0_ns
        caused = change.uid in targets and received >= 0
        since = blind.since(change, t0_ns) - t0_ns if caused else applied
        yield _entry(
            Interval(min(since, received), received),
            Source.K8S,
            change.event,
            change.detail,
            subject=change.uid,
            approximate=not caused or since < 0,
        )


def _balancer(seen: Iterable[Observation], t0_ns: int) -> Iterator[TimelineEntry]:
    """What the load balancer did with the nodes."""
    for o in seen:
        if o.event is Event.BALANCER_SERVER:
            event = "balancer_server_up" if o.data.get("up") else "balancer_server_down"
        elif o.event is Event.BALANCER_DEREGISTERED:
            event = "balancer_deregistered"
        else:
            continue
        yield _entry(o.at.since(t0_ns), Source.BALANCER, event, f"node={o.subject} {_words(o)}")


def _ends(flows: Iterable[FlowReport]) -> Iterator[TimelineEntry]:
    for flow in flows:
        if flow.terminal_ns is not None:
            because = f": {flow.detail}" if flow.detail else ""
            yield _entry(
                Interval(*flow.terminal_ns),
                Source.CLIENT,
                "flow_terminal",
                f"{flow.outcome} by {flow.mechanism}{because}",
                flow_id=flow.id,
            )


def _failing(tried: Iterable[NewConnections]) -> Iterator[TimelineEntry]:
    """The first and the last new connection that failed; those between are in its runs."""
    for prober in tried:
        failing = prober.observed_failing
        if failing is None:
            continue
        how = ", ".join(f"{n} {name}" for name, n in prober.results.items() if name in FAILED)
        text = f"{failing.failures} of {failing.attempts} attempts: {how}"
        ends = [("new_connections_fail", failing.first_ns)]
        if failing.failures > 1:
            ends.append(("new_connections_last_failed", failing.last_ns))
        for event, at in ends:
            yield _entry(Interval(*at), Source.CLIENT, event, text, subject=prober.prober)


def _failing_requests(asked: Requests | None) -> Iterator[TimelineEntry]:
    """The same of HTTP requests, for each kind of lanes; and when requests were served again."""
    for kind in asked.kinds if asked is not None else ():
        failing = kind.failing
        if failing is None:
            continue
        how = ", ".join(f"{n} {name}" for name, n in kind.fates.items() if name in BROKEN)
        text = f"{failing.failures} of {failing.requests} requests: {how}"
        ends = [("http_requests_fail", failing.first_ns, text)]
        if failing.failures > 1:
            ends.append(("http_requests_last_failed", failing.last_ns, text))
        if failing.recovered_ns is not None:
            ends.append(("http_requests_served_again", failing.recovered_ns, ""))
        for event, at, words in ends:
            yield _entry(Interval(*at), Source.CLIENT, event, words, subject=str(kind.kind))


def _entry(
    at: Interval,
    source: Source,
    event: str,
    detail: str,
    *,
    subject: str | None = None,
    flow_id: str | None = None,
    approximate: bool = False,
) -> TimelineEntry:
    return TimelineEntry(
        t_ms=whole_ms(at.hi) or 0,
        t_ns=(at.lo, at.hi),
        source=source,
        event=str(event),
        subject=subject or None,
        flow_id=flow_id,
        detail=detail or None,
        approximate=approximate,
    )


def _words(seen: Observation) -> str:
    return " ".join(f"{k}={v}" for k, v in seen.data.items() if k not in _HIDDEN)
