"""The instants that a trial is about: its trigger, and what became of the target pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core import clock, transitions
from pytest_drainwatch.core.blind import Blind
from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.jsonvalue import integer, texts
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.scenario import Trigger
from pytest_drainwatch.core.transitions import Transition


class CannotDerive(ValueError):
    """The recording holds no trial to judge: it is void, interrupted or incomplete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The accepted call; t = 0 is when it was sent."""

    t0_ns: int
    accepted: Observation
    targets: frozenset[str]
    blocked: tuple[Observation, ...]

    @property
    def control(self) -> bool:
        """Nothing was to be terminated (verb ``none``): the targets are those of the flows."""
        return self.accepted.data.get("verb") == Trigger.NONE


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


def start_of(seen: Sequence[Observation]) -> Start:
    accepted = [o for o in seen if o.event is Event.TRIGGER_ACCEPTED]
    if len(accepted) != 1:
        raise CannotDerive(
            f"expected one accepted trigger, found {len(accepted)}; "
            "the recording ends before the trigger or holds several trials"
        )
    return Start(
        t0_ns=accepted[0].at.lo,
        accepted=accepted[0],
        targets=frozenset(texts(accepted[0].data.get("targets"))),
        blocked=tuple(o for o in seen if o.event is Event.TRIGGER_BLOCKED),
    )


def moments_of(
    seen: Sequence[Observation],
    start: Start,
    changes: Sequence[Transition],
    flows: Sequence[FlowReport],
    clocks: Mapping[str, clock.Clock],
) -> Moments:
    """The instants of the target pods; of several pods, the first to change counts.

    Lower bounds come from causes: nothing of this happens before the trigger was
    sent, and a container that still answered had not terminated.
    """
    first = _Changes.of(seen, start, changes, start.targets)
    alive_ns = _alive(seen, start.targets)
    many = len(start.targets) > 1
    terminated = first.seen(transitions.CONTAINER_TERMINATED, None if many else alive_ns)
    removed = first.seen(transitions.ENDPOINT_REMOVED)
    return Moments(
        pods=len(start.targets),
        sigterm=_first_sigterm(seen, start, clocks),
        deletion=first.seen(transitions.POD_DELETION_TIMESTAMP_SET),
        ready_false=first.seen(transitions.ENDPOINT_READY_FALSE),
        endpoint_removed=removed if many else _after_its_end(removed, terminated),
        container_terminated=terminated,
        last_tcp_end=last_end(f for f in flows if f.proto is Proto.TCP),
        last_end=last_end(flows),
    )


def pod_moments(
    seen: Sequence[Observation], start: Start, changes: Sequence[Transition]
) -> dict[str, PodMoments]:
    """The instants of each target pod, by uid."""
    return {uid: _of_pod(uid, seen, start, changes) for uid in sorted(start.targets)}


def _of_pod(
    uid: str, seen: Sequence[Observation], start: Start, changes: Sequence[Transition]
) -> PodMoments:
    its = _Changes.of(seen, start, changes, frozenset({uid}))
    alive_ns = _alive(seen, frozenset({uid}))
    terminated = its.seen(transitions.CONTAINER_TERMINATED, alive_ns)
    return PodMoments(
        uid=uid,
        name=next((c.name for c in changes if c.uid == uid and c.name), None),
        deletion=its.seen(transitions.POD_DELETION_TIMESTAMP_SET),
        terminating=its.seen(transitions.ENDPOINT_TERMINATING),
        ready_false=its.seen(transitions.ENDPOINT_READY_FALSE),
        endpoint_removed=_after_its_end(its.seen(transitions.ENDPOINT_REMOVED), terminated),
        container_terminated=terminated,
        alive_ns=alive_ns,
    )


@dataclass(frozen=True, slots=True)
class _Changes:
    """What changed of some pods since the trigger, and what a watch gap may have hidden."""

    changes: tuple[Transition, ...]
    blind: Blind
    t0_ns: int

    @classmethod
    def of(
        cls,
        seen: Sequence[Observation],
        start: Start,
        changes: Iterable[Transition],
        uids: frozenset[str],
    ) -> _Changes:
        theirs = (c for c in changes if c.uid in uids and c.received_ns >= start.t0_ns)
        return cls(tuple(theirs), Blind.of(seen, start.t0_ns), start.t0_ns)

    def seen(self, event: str, proof_ns: int | None = None) -> Interval | None:
        """The first such change; at ``proof_ns`` something was seen that cannot be after it."""
        change = next((c for c in self.changes if c.event == event), None)
        if change is None:
            return None
        at_ns = change.received_ns
        lo_ns = self.blind.since(change, self.t0_ns)
        if proof_ns is not None and proof_ns <= at_ns:  # evidence against itself bounds nothing
            lo_ns = max(lo_ns, proof_ns)
        return Interval(lo_ns, at_ns)


def _alive(seen: Iterable[Observation], uids: frozenset[str]) -> int | None:
    """When the last request was sent that one of these pods answered, on a flow or a new one."""
    sent = (
        _last_sent(o)
        for o in seen
        if o.event in (Event.FLOW_ANSWERED, Event.NEW_CONNECTIONS)
        and str(o.data.get("responder")).partition("/")[0] in uids
    )
    return max((ns for ns in sent if ns is not None), default=None)


def _last_sent(answers: Observation) -> int | None:
    """Of a run of answers, when the request for the last one was sent."""
    if answers.event is Event.FLOW_ANSWERED:
        return integer(answers.data.get("last_sent_ns"), answers.at.lo)
    if answers.data.get("result") != Result.ANSWERED:
        return None
    return integer(answers.data.get("last_ns"), answers.at.lo)


def _after_its_end(removed: Interval | None, terminated: Interval | None) -> Interval | None:
    """An endpoint stays until its pod is terminal or gone (endpointslice,
    ShouldPodBeInEndpoints); a pod that was seen ending before it ended first.
    """
    if removed and terminated and terminated.hi <= removed.hi:
        return Interval(max(removed.lo, terminated.lo), removed.hi)
    return removed


def _first_sigterm(
    seen: Iterable[Observation], start: Start, clocks: Mapping[str, clock.Clock]
) -> Interval | None:
    """When the first of the target pods got SIGTERM, as far as they tell."""
    terms = {
        o.subject: at
        for o in seen
        if o.event is Event.SIGTERM_RECEIVED and o.subject in start.targets
        if (at := clock.to_harness(o, clocks)) is not None
    }
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
