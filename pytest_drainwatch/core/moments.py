"""The instants that a trial is about: its trigger, and what became of the target pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core import clock, stretches, transitions
from pytest_drainwatch.core.blind import Blind, hides_slices
from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.core.endpoints import snapshots
from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.life_signs import life_sign
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.start import Start
from pytest_drainwatch.core.stretches import Shown, Stretch
from pytest_drainwatch.core.transitions import Transition


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Instants on the harness's clock; flow ends are already counted from t = 0.

    Of several target pods each instant is that of the first to reach it, so a difference
    of two may mix ``pods``.
    """

    pods: int
    sigterm: Interval | None
    deletion: Interval | None
    ready_false: Interval | None
    endpoint_removed: Interval | None
    container_terminated: Interval | None
    last_tcp_end: Interval | None
    last_end: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodMoments:
    """The same for one target pod, on the harness's clock; None: not seen.

    ``ready_false`` and ``endpoint_removed`` are the last ones, and None if they were undone:
    ``listed``, ``ready`` and ``unready`` hold each stretch in which it was so.
    ``alive_ns``: the last request that its container answered was sent then.
    """

    uid: str
    name: str | None
    deletion: Interval | None
    terminating: Interval | None
    ready_false: Interval | None
    endpoint_removed: Interval | None
    container_terminated: Interval | None
    alive_ns: int | None
    listed: tuple[Stretch, ...] = ()
    ready: tuple[Stretch, ...] = ()
    unready: tuple[Stretch, ...] = ()


def moments_of(
    seen: Sequence[Observation],
    start: Start,
    pods: Mapping[str, PodMoments],
    flows: Sequence[FlowReport],
    clocks: Mapping[str, clock.Clock],
) -> Moments:
    """The instants of the target pods; of several pods, the first to change counts."""
    each = tuple(pods.values())
    return Moments(
        pods=len(start.targets),
        sigterm=_first_sigterm(seen, start, clocks),
        deletion=_first(pod.deletion for pod in each),
        ready_false=_first(pod.ready_false for pod in each),
        endpoint_removed=_first(pod.endpoint_removed for pod in each),
        container_terminated=_first_end(each, start.t0_ns),
        last_tcp_end=last_end(f for f in flows if f.proto is Proto.TCP),
        last_end=last_end(flows),
    )


def _first(found: Iterable[Interval | None]) -> Interval | None:
    """The first of several instants, wherever each of them lies."""
    known = [at for at in found if at is not None]
    return Interval(min(a.lo for a in known), min(a.hi for a in known)) if known else None


def _first_end(pods: Iterable[PodMoments], t0_ns: int) -> Interval | None:
    """When the first container ended; one whose end was not seen may be the one that did."""
    pods = tuple(pods)
    first = _first(pod.container_terminated for pod in pods)
    if first is None:
        return None
    unseen = [max(t0_ns, pod.alive_ns or t0_ns) for pod in pods if pod.container_terminated is None]
    return Interval(min([first.lo, *unseen]), first.hi)


def shown_by(seen: Sequence[Observation], t0_ns: int) -> Shown:
    """What the slices of a recording showed."""
    return Shown(
        snapshots=tuple(snapshots(seen)),
        gaps=tuple(o.at for o in seen if hides_slices(o)),
        blind=Blind.of(seen, t0_ns),
        t0_ns=t0_ns,
    )


def pod_moments(
    seen: Sequence[Observation],
    start: Start,
    changes: Sequence[Transition],
    clocks: Mapping[str, clock.Clock],
) -> dict[str, PodMoments]:
    """The instants of each target pod, by uid.

    Lower bounds come from causes: nothing of this happens before the trigger was
    sent, and a container that still answered had not terminated.
    """
    shown, told = shown_by(seen, start.t0_ns), _sigterms(seen, start, clocks)
    alive = _alive(seen)
    return {
        uid: _of_pod(
            _Changes.of(uid, shown, changes),
            shown,
            sigterm=told.get(uid),
            alive_ns=alive.get(uid),
            killed=uid in start.killed,
        )
        for uid in sorted(start.targets)
    }


def _of_pod(
    its: _Changes,
    shown: Shown,
    *,
    sigterm: Interval | None,
    alive_ns: int | None,
    killed: bool = False,
) -> PodMoments:
    uid, frames = its.uid, shown.snapshots
    terminated = its.seen(transitions.CONTAINER_TERMINATED, alive_ns)
    terminating = its.seen(transitions.ENDPOINT_TERMINATING)
    again = its.seen(transitions.CONTAINER_RESTARTED)
    restarted = again is not None
    if killed and (terminated is None or (again and again.hi < terminated.hi)):
        terminated = again  # a quick restart never shows the end as a state of its own
    listed = shown.stretches(uid, stretches.listed(frames, uid))
    unready = shown.stretches(uid, stretches.unready(frames, uid))
    return PodMoments(
        uid=uid,
        name=its.name,
        deletion=_deletion(
            its.seen(transitions.POD_DELETION_TIMESTAMP_SET),
            terminating,
            # A container that restarts is told to end as well.
            None if restarted else sigterm,
        ),
        terminating=terminating,
        ready_false=unready[-1].opens if unready and unready[-1].closes is None else None,
        endpoint_removed=_after_its_end(listed[-1].closes if listed else None, terminated),
        container_terminated=terminated,
        alive_ns=alive_ns,
        listed=listed,
        ready=shown.stretches(uid, stretches.ready(frames, uid)),
        unready=unready,
    )


def _deletion(
    shown: Interval | None, terminating: Interval | None, sigterm: Interval | None
) -> Interval | None:
    """When it was deleted: before everything that its deletion brought about."""
    known = shown or terminating
    if known is None:
        return None
    hi = min(at.hi for at in (shown, terminating, sigterm) if at is not None)
    return Interval(min(known.lo, hi), hi)


@dataclass(frozen=True, slots=True)
class _Changes:
    """What changed of a pod since the trigger, and what a watch gap may have hidden."""

    uid: str
    name: str | None
    changes: tuple[Transition, ...]
    shown: Shown

    @classmethod
    def of(cls, uid: str, shown: Shown, changes: Iterable[Transition]) -> _Changes:
        its = [c for c in changes if c.uid == uid]
        name = next((c.name for c in its if c.name), None)
        return cls(uid, name, tuple(c for c in its if c.received_ns >= shown.t0_ns), shown)

    def seen(self, event: str, proof_ns: int | None = None) -> Interval | None:
        """The first such change; at ``proof_ns`` something was seen that cannot be after it."""
        change = next((c for c in self.changes if c.event == event), None)
        if change is None:
            return None
        at_ns = change.received_ns
        lo_ns = self.shown.blind.since(change, self.shown.t0_ns)
        if proof_ns is not None and proof_ns <= at_ns:  # evidence against itself bounds nothing
            lo_ns = max(lo_ns, proof_ns)
        return Interval(lo_ns, at_ns)


def _alive(seen: Iterable[Observation]) -> dict[str, int]:
    """When the last request was sent that each pod answered, on a flow or a new connection."""
    last: dict[str, int] = {}
    for o in seen:
        if (sign := life_sign(o)) is not None:
            uid, sent_ns = sign
            last[uid] = max(sent_ns, last.get(uid, sent_ns))
    return last


def _after_its_end(removed: Interval | None, terminated: Interval | None) -> Interval | None:
    """An endpoint stays until its pod is terminal or gone (endpointslice,
    ShouldPodBeInEndpoints); a pod that was seen ending before it ended first.
    """
    if removed and terminated and terminated.hi <= removed.hi:
        return Interval(max(removed.lo, terminated.lo), removed.hi)
    return removed


def _sigterms(
    seen: Iterable[Observation], start: Start, clocks: Mapping[str, clock.Clock]
) -> dict[str, Interval]:
    """When each target pod got SIGTERM, as far as it tells, for the first time."""
    told: dict[str, Interval] = {}
    for o in seen:
        if o.event is Event.SIGTERM_RECEIVED and o.subject in start.targets:
            at = clock.to_harness(o, clocks)
            if at is not None:
                told.setdefault(o.subject, at)
    return told


def _first_sigterm(
    seen: Iterable[Observation], start: Start, clocks: Mapping[str, clock.Clock]
) -> Interval | None:
    """When the first of the target pods got SIGTERM, as far as they tell."""
    terms = _sigterms(seen, start, clocks)
    if not terms:
        return None
    # One that did not tell may have been the first.
    told = terms.keys() >= start.targets
    lo_ns = min(at.lo for at in terms.values()) if told else start.t0_ns
    hi_ns = min(at.hi for at in terms.values())
    return Interval(min(lo_ns, hi_ns), hi_ns)


def last_tcp_ends(
    flows: Sequence[FlowReport], targets: frozenset[str]
) -> dict[str, Interval | None]:
    """When the last TCP flow of each target pod ended, by uid, since t = 0."""
    mine: dict[str, list[FlowReport]] = {uid: [] for uid in targets}
    for flow in flows:
        uid = flow.responders[0].partition("/")[0] if flow.responders else ""
        if flow.proto is Proto.TCP and uid in mine:
            mine[uid].append(flow)
    return {uid: last_end(found) for uid, found in mine.items()}


def last_end(flows: Iterable[FlowReport]) -> Interval | None:
    """When the last target flow ended; None while one of them has no end."""
    flows = list(flows)
    if any(flow.one_way and flow.role is None for flow in flows):
        return None  # nobody knows whose it is
    targets = [flow for flow in flows if flow.role is Role.TARGET]
    ends = [Interval(*flow.terminal_ns) for flow in targets if flow.terminal_ns is not None]
    if not ends or len(ends) < len(targets):
        return None
    return Interval(max(e.lo for e in ends), max(e.hi for e in ends))
