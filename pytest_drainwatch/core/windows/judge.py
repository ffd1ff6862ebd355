"""The recording -> the windows of each target pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pytest_drainwatch.core import clock
from pytest_drainwatch.core.blind import hides_slices
from pytest_drainwatch.core.endpoints import Snapshot
from pytest_drainwatch.core.interval import Bounds, Interval, bounds
from pytest_drainwatch.core.moments import PodMoments, shown_by
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.pieces import Tried
from pytest_drainwatch.core.stretches import Shown, Stretch
from pytest_drainwatch.core.windows.balanced import balanced
from pytest_drainwatch.core.windows.document import Break, PodWindows, Span
from pytest_drainwatch.core.windows.met import Attempts

NOT_LISTED = "it was not seen in a slice of the Service since the trigger"
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
    tried: Sequence[Tried] = ()


def windows(pods: Mapping[str, PodMoments], evidence: Evidence) -> tuple[PodWindows, ...]:
    """Those of each target pod, in the order of their names."""
    shown = shown_by(evidence.seen, evidence.t0_ns)
    logs = _Logs.of(evidence.seen, evidence.clocks)
    nodes = _Nodes.of(shown)
    judged = (_of_pod(pod, shown, nodes, logs, evidence) for pod in pods.values())
    found = [_with_met(pod, shown.gaps, evidence) for pod in judged]
    return tuple(sorted(found, key=lambda w: (w.pod or "", w.pod_uid)))


def _of_pod(
    pod: PodMoments, shown: Shown, nodes: _Nodes, logs: _Logs, evidence: Evidence
) -> PodWindows:
    t0_ns = evidence.t0_ns
    node = nodes.by_uid.get(pod.uid)
    removed = _since(pod.endpoint_removed, t0_ns)
    fallback: tuple[Span, ...] | None = None
    notes, hidden = list[str](), list(_gaps(evidence))
    if not shown.snapshots:
        notes.append("no slice of the Service was seen: when it was routable is not known")
    elif evidence.local_only and (node is None or not nodes.all_known):
        notes.append(
            "fallback-routable is not known: with externalTrafficPolicy Local each node falls "
            "back by itself, and the slices do not say on which nodes the endpoints are"
        )
    else:
        # None that was seen is none that was, unless something was hidden.
        among = node if evidence.local_only else None
        found = shown.stretches(
            pod.uid,
            _last_resort(shown, pod.uid, among),
            lambda now: _cause(pod, now, logs, among),
        )
        fallback = tuple(_span([one], t0_ns) for one in found) or (None if hidden else ())
    notes += hidden
    return PodWindows(
        pod_uid=pod.uid,
        pod=pod.name,
        advertised=_advertised(pod, t0_ns),
        ready_routable=_ready(pod, t0_ns, kept=evidence.kept_ready),
        fallback_routable=fallback,
        dead_endpoint=_dead(evidence.last_tcp_ends.get(pod.uid), removed),
        deletion_ns=bounds(_since(pod.deletion, t0_ns)),
        terminating_ns=bounds(_since(pod.terminating, t0_ns)),
        ready_false_ns=bounds(_since(pod.ready_false, t0_ns)),
        removed_ns=bounds(removed),
        removed_by_family_ns=dict(_by_family(pod, shown)),
        notes=tuple(notes),
        node=node,
        load_balancer=balanced(evidence.seen, pod.uid, node, evidence.tried, t0_ns),
    )


def _with_met(pod: PodWindows, gaps: Sequence[Interval], evidence: Evidence) -> PodWindows:
    """The same windows with what new connections met in each."""
    attempts = Attempts.of(evidence.tried, pod.node if evidence.local_only else None)
    if attempts is None:
        return pod

    def counted(span: Span) -> Span:
        return replace(span, met=attempts.met(span, gaps, evidence.t0_ns))

    # Of an endpoint that was never listed nobody knows that it was still there.
    known = pod.removed_ns is not None or pod.advertised.opens_ns is not None
    fallback = pod.fallback_routable
    return replace(
        pod,
        advertised=counted(pod.advertised),
        ready_routable=counted(pod.ready_routable),
        fallback_routable=None if fallback is None else tuple(map(counted, fallback)),
        dead_endpoint=counted(pod.dead_endpoint) if known else pod.dead_endpoint,
    )


def _span(found: Sequence[Stretch], t0_ns: int, closes: Interval | None = None) -> Span:
    """One window of some stretches, with breaks between them; ``closes`` if that is better."""
    breaks = tuple(
        Break(opens_ns=_bounds(one.closes, t0_ns), closes_ns=_bounds(other.opens, t0_ns))
        for one, other in pairwise(found)
    )
    opens, closes = found[0].opens, closes or found[-1].closes
    at_t0 = Interval.point(t0_ns)
    lasts = Stretch(opens=opens or at_t0, closes=closes).lasts
    return Span(
        opens_ns=_bounds(opens, t0_ns),
        closes_ns=bounds(_since(closes, t0_ns)),
        lasts_ns=bounds(lasts if opens else _since(closes, t0_ns)),
        note=STILL if closes is None else None,
        breaks=breaks,
    )


def _bounds(at: Interval | None, t0_ns: int) -> Bounds:
    """A change of a stretch; None is one that was before t = 0."""
    return bounds(_since(at, t0_ns)) or (0, 0)


def _advertised(pod: PodMoments, t0_ns: int) -> Span:
    if not pod.listed:
        return Span(opens_ns=None, note=NOT_LISTED)
    return _span(pod.listed, t0_ns, pod.endpoint_removed)


def _ready(pod: PodMoments, t0_ns: int, *, kept: bool) -> Span:
    if not pod.ready:
        absent = "it was not seen ready in a slice of the Service since the trigger"
        return Span(opens_ns=None, note=absent)
    if pod.ready[-1].closes is None or pod.ready_false is not None:
        return _span(pod.ready, t0_ns)
    # While it is listed as ready it is routed to; when that ended is known by who keeps it so.
    if kept:
        return replace(_span(pod.ready, t0_ns, pod.endpoint_removed), note=KEPT_READY)
    return replace(_span(pod.ready, t0_ns), note=NEVER_UNREADY)


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


def _by_family(pod: PodMoments, shown: Shown) -> Iterator[tuple[str, Bounds]]:
    """When the pod's entry of each family went, for the last time."""
    t0_ns = shown.t0_ns
    listed: frozenset[str] = frozenset()
    gone: dict[str, int] = {}
    for snapshot in shown.snapshots:
        now = snapshot.families.get(pod.uid, frozenset())
        gone.update(dict.fromkeys(listed - now, snapshot.received_ns))
        for family in now:
            gone.pop(family, None)
        listed = now
    for family, received_ns in sorted(gone.items()):
        if received_ns >= t0_ns:
            lo = shown.blind.endpoint_since(pod.uid, received_ns, t0_ns)
            yield family, (lo - t0_ns, received_ns - t0_ns)


def _last_resort(shown: Shown, uid: str, node: str | None) -> Iterator[bool]:
    """Whether kube-proxy had nobody but terminating pods at each snapshot, this one among them;
    on ``node``, if it looks at that one alone.
    """
    for snapshot in shown.snapshots:
        yield (
            snapshot.has(uid, "serving")
            and snapshot.has(uid, "terminating")
            and not snapshot.ready(node)
        )


def _cause(pod: PodMoments, now: Snapshot, logs: _Logs, node: str | None) -> int | None:
    """What must have preceded the end of a fallback that ``now`` shows; None: not known."""
    if now.ready(node):
        # A pod is ready after it has begun to listen: which of these came first, if several?
        began = [logs.listening_ns.get(uid) for uid in now.ready(node)]
        return None if None in began else min(ns for ns in began if ns is not None)
    if not now.has(pod.uid, "serving"):
        # It answered its readiness probe with 503 first, or its container ended.
        if pod.uid in logs.unready_ns:
            return logs.unready_ns[pod.uid]
        return pod.alive_ns if pod.uid in logs.whole else None
    return None


@dataclass(frozen=True, slots=True)
class _Nodes:
    """On which node each pod is that a slice ever listed; ``all_known``: that of all of them."""

    by_uid: Mapping[str, str]
    all_known: bool

    @classmethod
    def of(cls, shown: Shown) -> _Nodes:
        found: dict[str, str | None] = {}
        for snapshot in shown.snapshots:
            for uid in snapshot.by_uid:
                found[uid] = found.get(uid) or snapshot.node(uid)
        known = {uid: node for uid, node in found.items() if node is not None}
        return cls(known, len(known) == len(found))


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
    hidden = [o for o in evidence.seen if hides_slices(o) and o.at.hi >= evidence.t0_ns]
    if hidden:
        yield (
            f"{len(hidden)} gap(s) in the watch of slices: a stretch that opened and closed in one "
            "was not seen, nor a break in one"
        )


def _since(at: Interval | None, t0_ns: int) -> Interval | None:
    return None if at is None else at.since(t0_ns)
