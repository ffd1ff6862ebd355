"""The instants that a trial is about: its trigger, and what became of the target pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core import clock, transitions
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
    """Instants on the harness's clock; flow ends are already counted from t = 0."""

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
    # What a watch showed only after a gap over t = 0 may have happened before it.
    blind = [o.at for o in seen if o.event is Event.WATCH_GAP and o.at.lo < start.t0_ns <= o.at.hi]
    frames = [o for o in seen if o.event in (Event.POD, Event.ENDPOINT_SLICE)]

    def first(event: str, proof_ns: int | None = None) -> Interval | None:
        """``proof_ns``: when something was seen that cannot be after it."""
        change = next((c for c in of_targets if c.event == event), None)
        if change is None:
            return None
        at_ns = change.received_ns
        # Until a gap was over and something else had been seen, it may have hidden this.
        told_ns = max((o.at.hi for o in frames if _tells(o, change) and o.at.hi < at_ns), default=0)
        lo_ns = min([start.t0_ns, *(gap.lo for gap in blind if told_ns <= gap.hi)])
        if proof_ns is not None and proof_ns <= at_ns:  # evidence against itself bounds nothing
            lo_ns = max(lo_ns, proof_ns)
        return Interval(lo_ns, at_ns)

    terms = [
        at
        for o in seen
        if o.event is Event.SIGTERM_RECEIVED and o.subject in start.targets
        if (at := clock.to_harness(o, clocks)) is not None
    ]
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
        sigterm=min(terms, key=lambda at: (at.hi, at.lo), default=None),
        deletion=first(transitions.POD_DELETION_TIMESTAMP_SET),
        ready_false=first(transitions.ENDPOINT_READY_FALSE),
        endpoint_removed=removed,
        container_terminated=terminated,
        last_tcp_end=_last_end(f for f in flows if f.proto is Proto.TCP),
        last_end=_last_end(flows),
    )


def _tells(frame: Observation, change: Transition) -> bool:
    """Whether a frame shows that of which ``change`` is a change."""
    if change.event.startswith("endpointslice"):
        return frame.event is Event.ENDPOINT_SLICE
    return frame.event is Event.POD and frame.subject == change.uid


def _last_end(flows: Iterable[FlowReport]) -> Interval | None:
    """When the last target flow ended; None while one of them has no end."""
    targets = [flow for flow in flows if flow.role is Role.TARGET]
    ends = [Interval(*flow.terminal_ns) for flow in targets if flow.terminal_ns is not None]
    if not ends or len(ends) < len(targets):
        return None
    return Interval(max(e.lo for e in ends), max(e.hi for e in ends))
