"""The recording -> the windows of each target pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core import clock, transitions
from pytest_drainwatch.core.blind import Blind
from pytest_drainwatch.core.endpoints import Snapshot, snapshots
from pytest_drainwatch.core.interval import Bounds, Interval, bounds
from pytest_drainwatch.core.moments import PodMoments
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.transitions import Transition
from pytest_drainwatch.core.windows.document import PodWindows, Span

NOT_LISTED = "it was not seen in a slice of the Service before the trigger"
STILL = "still so when the recording ended"
NEVER_UNREADY = "ready:false was never shown: it came with the removal, or a frame was missed"
KEPT_READY = "publishNotReadyAddresses keeps it ready for as long as it is listed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What windows are judged by: the recording, and what was made of it."""

    seen: Sequence[Observation]
    t0_ns: int
    clocks: Mapping[str, clock.Clock]
    last_tcp_ends: Mapping[str, Interval | None]  # by pod uid, since t = 0
    local_only: bool  # externalTrafficPolicy Local on several nodes
    kept_ready: bool  # publishNotReadyAddresses


def windows(pods: Mapping[str, PodMoments], evidence: Evidence) -> tuple[PodWindows, ...]:
    """Those of each target pod, in the order of their names."""
    shown = tuple(snapshots(evidence.seen))
    logs = _Logs.of(evidence.seen, evidence.clocks)
    found = (_of_pod(pod, shown, logs, evidence) for pod in pods.values())
    return tuple(sorted(found, key=lambda w: (w.pod or "", w.pod_uid)))


def _of_pod(
    pod: PodMoments, shown: Sequence[Snapshot], logs: _Logs, evidence: Evidence
) -> PodWindows:
    t0_ns = evidence.t0_ns
    before = next((s for s in reversed(shown) if s.received_ns < t0_ns), None)
    listed = before is not None and pod.uid in before.by_uid
    ready = before is not None and before.has(pod.uid, "ready")
    removed = _since(pod.endpoint_removed, t0_ns)
    unready = _since(pod.ready_false, t0_ns)
    fallback: tuple[Span, ...] | None = None
    notes, hidden = list[str](), list(_gaps(evidence))
    if not shown:
        notes.append("no slice of the Service was seen: when it was routable is not known")
    elif evidence.local_only:
        notes.append(
            "fallback-routable is not known: with externalTrafficPolicy Local each node falls "
            "back by itself, and slices do not say whose endpoints are whose"
        )
    else:
        # None that was seen is none that was, unless something was hidden.
        fallback = tuple(_fallback(pod, shown, logs, evidence)) or (None if hidden else ())
    notes += hidden
    return PodWindows(
        pod_uid=pod.uid,
        pod=pod.name,
        advertised=_from_trigger(listed, removed, NOT_LISTED),
        ready_routable=_ready(ready, unready, removed, kept=evidence.kept_ready),
        fallback_routable=fallback,
        dead_endpoint=_dead(evidence.last_tcp_ends.get(pod.uid), removed),
        deletion_ns=bounds(_since(pod.deletion, t0_ns)),
        terminating_ns=bounds(_since(pod.terminating, t0_ns)),
        ready_false_ns=bounds(unready),
        removed_ns=bounds(removed),
        removed_by_family_ns=dict(_by_family(pod, shown, evidence)),
        notes=tuple(notes),
    )


def _from_trigger(open_then: bool, closes: Interval | None, absent: str) -> Span:
    """A window that was open at t = 0, if it was."""
    if not open_then:
        return Span(opens_ns=None, closes_ns=bounds(closes), note=absent)
    if closes is None:
        return Span(opens_ns=(0, 0), note=STILL)
    return Span(opens_ns=(0, 0), closes_ns=bounds(closes), lasts_ns=bounds(closes))


def _ready(
    open_then: bool, unready: Interval | None, removed: Interval | None, *, kept: bool
) -> Span:
    absent = "it was not seen ready in a slice of the Service before the trigger"
    if unready is not None or not open_then or removed is None:
        return _from_trigger(open_then, unready, absent)
    # While it is listed as ready it is routed to; when that ended is known by who keeps it so.
    closes = removed if kept else Interval(min(0, removed.lo), removed.hi)
    note = KEPT_READY if kept else NEVER_UNREADY
    return Span(opens_ns=(0, 0), closes_ns=bounds(closes), lasts_ns=bounds(closes), note=note)


def _dead(last_end: Interval | None, removed: Interval | None) -> Span:
    if last_end is None:
        why = "no TCP flow of it ended, or one of them has no end"
        return Span(opens_ns=None, closes_ns=bounds(removed), note=why)
    if removed is None:
        return Span(opens_ns=bounds(last_end), note="its endpoint was not seen going")
    return Span(
        opens_ns=bounds(last_end),
        closes_ns=bounds(removed),
        lasts_ns=bounds(removed - last_end),
    )


def _by_family(
    pod: PodMoments, shown: Sequence[Snapshot], evidence: Evidence
) -> Iterator[tuple[str, Bounds]]:
    """When the pod's entry of each family went, for the last time."""
    blind = Blind.of(evidence.seen, evidence.t0_ns)
    listed: frozenset[str] = frozenset()
    gone: dict[str, int] = {}
    for snapshot in shown:
        now = snapshot.families.get(pod.uid, frozenset())
        gone.update(dict.fromkeys(listed - now, snapshot.received_ns))
        for family in now:
            gone.pop(family, None)
        listed = now
    for family, received_ns in sorted(gone.items()):
        if received_ns < evidence.t0_ns:
            continue
        change = Transition(
            event=transitions.ENDPOINT_REMOVED,
            uid=pod.uid,
            name=pod.name or "",
            received_ns=received_ns,
            detail=family,
            fields={},
        )
        lo = blind.since(change, evidence.t0_ns)
        yield family, (lo - evidence.t0_ns, received_ns - evidence.t0_ns)


def _fallback(
    pod: PodMoments, shown: Sequence[Snapshot], logs: _Logs, evidence: Evidence
) -> Iterator[Span]:
    """Each stretch in which kube-proxy had nobody but terminating pods, this one among them."""
    t0_ns = evidence.t0_ns
    earliest = min([t0_ns, *(gap.lo for gap in Blind.of(evidence.seen, t0_ns).gaps)])
    opens: Interval | None = None
    after_ns = earliest  # whatever comes next is after that
    for snapshot in shown:
        received_ns = snapshot.received_ns
        last_resort = (
            snapshot.has(pod.uid, "serving")
            and snapshot.has(pod.uid, "terminating")
            and not snapshot.ready()
        )
        if last_resort and opens is None:
            opens = Interval(min(after_ns, received_ns), received_ns)
            if received_ns < t0_ns:
                opens = Interval.point(t0_ns)
        elif not last_resort and opens is not None:
            if received_ns >= t0_ns:
                lo = max(opens.lo, _cause(pod, snapshot, logs) or opens.lo)
                closes = Interval(min(lo, received_ns), received_ns)
                # Both are frames of one watch: the end was shown after the beginning.
                lasts = Interval(max(0, closes.lo - opens.hi), closes.hi - opens.lo)
                yield _span(opens.since(t0_ns), closes.since(t0_ns), lasts)
                after_ns = closes.lo
            opens = None
    if opens is not None:
        yield Span(opens_ns=bounds(opens.since(t0_ns)), note=STILL)


def _span(opens: Interval, closes: Interval, lasts: Interval) -> Span:
    return Span(opens_ns=bounds(opens), closes_ns=bounds(closes), lasts_ns=bounds(lasts))


def _cause(pod: PodMoments, now: Snapshot, logs: _Logs) -> int | None:
    """What must have preceded the end of a fallback that ``now`` shows; None: not known."""
    if now.ready():
        # A pod is ready after it has begun to listen: which of these came first, if several?
        began = [logs.listening_ns.get(uid) for uid in now.ready()]
        return None if None in began else min(ns for ns in began if ns is not None)
    if not now.has(pod.uid, "serving"):
        # It answered its readiness probe with 503 first, or its container ended.
        if pod.uid in logs.unready_ns:
            return logs.unready_ns[pod.uid]
        return pod.alive_ns if pod.uid in logs.whole else None
    return None


@dataclass(frozen=True, slots=True)
class _Logs:
    """What the probes' logs say of their readiness, on the harness's clock, by pod uid."""

    listening_ns: Mapping[str, int]
    unready_ns: Mapping[str, int]
    whole: frozenset[str]  # read to their ends, SIGTERM among them

    @classmethod
    def of(cls, seen: Iterable[Observation], clocks: Mapping[str, clock.Clock]) -> _Logs:
        first: dict[Event, dict[str, int]] = {Event.LISTENING: {}, Event.READYZ_NOW_503: {}}
        told, ended = set(), set()
        for o in seen:
            if o.event in first and (at := clock.to_harness(o, clocks)) is not None:
                known = first[o.event]
                known[o.subject] = min(at.lo, known.get(o.subject, at.lo))
            elif o.event is Event.SIGTERM_RECEIVED:
                told.add(o.subject)
            elif o.event is Event.LOG_ENDED and o.data.get("complete") is True:
                ended.add(o.subject)
        return cls(first[Event.LISTENING], first[Event.READYZ_NOW_503], frozenset(told & ended))


def _gaps(evidence: Evidence) -> Iterator[str]:
    hidden = [
        o.at
        for o in evidence.seen
        if o.event is Event.WATCH_GAP
        and o.data.get("resource") != "pods"
        and o.at.hi >= evidence.t0_ns
    ]
    if hidden:
        yield (
            f"{len(hidden)} gap(s) in the watch of slices: a stretch that opened and closed in one "
            "was not seen, nor a break in one"
        )


def _since(at: Interval | None, t0_ns: int) -> Interval | None:
    return None if at is None else at.since(t0_ns)
