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
    of_targets = [c for c in changes if c.uid in start.targets and c.received_ns >= start.t0_ns]
    blind = Blind.of(seen, start.t0_ns)

    def first(event: str, proof_ns: int | None = None) -> Interval | None:
        """``proof_ns``: when something was seen that cannot be after it."""
        change = next((c for c in of_targets if c.event == event), None)
        if change is None:
            return None
        at_ns = change.received_ns
        lo_ns = blind.since(change, start.t0_ns)
        if proof_ns is not None and proof_ns <= at_ns:  # evidence against itself bounds nothing
            lo_ns = max(lo_ns, proof_ns)
        return Interval(lo_ns, at_ns)

    alive_ns = max(
        (
            integer(o.data.get("last_sent_ns"), o.at.lo)
            for o in seen
            if o.event is Event.FLOW_ANSWERED
            and str(o.data.get("responder")).partition("/")[0] in start.targets
        ),
        default=None,
    )
    many = len(start.targets) > 1
    terminated = first(transitions.CONTAINER_TERMINATED, None if many else alive_ns)
    removed = first(transitions.ENDPOINT_REMOVED)
    if removed and terminated and not many and terminated.hi <= removed.hi:
        # An endpoint stays until its pod is terminal or gone (endpointslice,
        # ShouldPodBeInEndpoints); this pod was still there, so its containers ended first.
        removed = Interval(max(removed.lo, terminated.lo), removed.hi)
    return Moments(
        pods=len(start.targets),
        sigterm=_first_sigterm(seen, start, clocks),
        deletion=first(transitions.POD_DELETION_TIMESTAMP_SET),
        ready_false=first(transitions.ENDPOINT_READY_FALSE),
        endpoint_removed=removed,
        container_terminated=terminated,
        last_tcp_end=_last_end(f for f in flows if f.proto is Proto.TCP),
        last_end=_last_end(flows),
    )


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


def _last_end(flows: Iterable[FlowReport]) -> Interval | None:
    """When the last target flow ended; None while one of them has no end."""
    flows = list(flows)
    if any(flow.one_way and flow.role is None for flow in flows):
        return None  # nobody knows whose it is
    targets = [flow for flow in flows if flow.role is Role.TARGET]
    ends = [Interval(*flow.terminal_ns) for flow in targets if flow.terminal_ns is not None]
    if not ends or len(ends) < len(targets):
        return None
    return Interval(max(e.lo for e in ends), max(e.hi for e in ends))
