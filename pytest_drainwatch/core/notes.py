"""What a report has to say in words: what was not measured, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_drainwatch.core import transitions
from pytest_drainwatch.core.document import FlowReport, Integrity
from pytest_drainwatch.core.flow.classify import Mechanism, Role
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.jsonvalue import integer, texts
from pytest_drainwatch.core.moments import Moments
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.document import Doubt, NewConnections
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.recording import Recording
from pytest_drainwatch.core.start import Start
from pytest_drainwatch.core.transitions import Transition
from pytest_drainwatch.core.udp.continuity import PhaseKind


def notes(
    recording: Recording,
    start: Start,
    moments: Moments,
    flows: Sequence[FlowReport],
    changes: Sequence[Transition],
) -> Iterator[str]:
    """What the trial's own numbers lack, and why."""
    if recording.damage:
        yield f"the recording is damaged: {recording.damage}"
    for beside in (o for o in recording.observations if o.event is Event.CLUSTER_START_BESIDE):
        at = beside.at.since(start.t0_ns)
        yield (
            f"{_starts(beside)} while the trial measured, first seen at {at.lo / NS_PER_S:.1f} to "
            f"{at.hi / NS_PER_S:.1f} s"
        )
    if start.control:
        yield from _of_a_control(start, changes)
        return
    if start.killed:
        yield (
            f"{_named(name for name, _ in start.killed.values())} killed past the API: no pod was "
            "deleted, nobody got SIGTERM, and no endpoint had to go, so those values are null"
        )
    elif moments.sigterm is None and _is_attached(recording):
        yield (
            "no probe runs in this workload, so nobody told when SIGTERM came: sigterm values are "
            "null; pod_ends[].stop_signal_ns bounds the stop signal (SIGTERM, unless its image "
            "names another) by the deletion, the preStop hook and the end, and is null where none "
            "may have been sent"
        )
    elif moments.sigterm is None:
        yield "no SIGTERM line of a target pod could be placed in time: sigterm values are null"
    if moments.pods > 1:
        yield (
            f"{moments.pods} pods were terminated: each instant is that of the first of them, and "
            "differences that would mix two pods are null"
        )
    seen = recording.observations
    silent = start.targets - {o.subject for o in seen if o.event is Event.SIGTERM_RECEIVED}
    if moments.sigterm is not None and silent:
        yield (
            f"{len(silent)} of {moments.pods} target pods told of no SIGTERM: the first one may "
            "have been theirs, so its lower bound is the trigger"
        )
    missing = {
        "endpoint ready:false": moments.ready_false,
        "endpoint removal": moments.endpoint_removed,
        "container termination": moments.container_terminated,
    }
    if start.killed:
        missing.clear()
    for name, moment in missing.items():
        if moment is None and moment is moments.ready_false and _kept_ready(recording):
            yield (
                f"{name} of a target pod is null: with publishNotReadyAddresses an endpoint is "
                "ready for as long as it is listed"
            )
        elif moment is None:
            yield f"{name} of a target pod was not seen within the observation window: null"
    restarted = [c for c in changes if c.event == transitions.CONTAINER_RESTARTED]
    for change in restarted:
        yield f"a container restarted during the trial: {change.detail}"
    open_targets = [f.id for f in flows if f.role is Role.TARGET and f.terminal_ns is None]
    if open_targets:
        yield (
            f"{len(open_targets)} target flow(s) had no end within the observation window, so "
            "'last flow' values are null: "
            f"{', '.join(open_targets[:5])}{' …' if len(open_targets) > 5 else ''}"
        )
    later = [o for o in start.blocked if o.at.lo >= start.t0_ns]
    for blocked in start.blocked:
        if blocked not in later:
            yield f"the API refused the trigger first: {blocked.data.get('message')}"
    if later:
        yield (
            f"of further target pods the API refused {len(later)} eviction(s), which were asked "
            f"for again: {later[0].data.get('message')}"
        )


def about_new_connections(
    found: Sequence[NewConnections], config: Mapping[str, object]
) -> Iterator[str]:
    """Why there are none, if there are none."""
    if found:
        return
    attached = config.get("attached")
    if isinstance(attached, Mapping) and attached.get("protocol") == "http":
        return  # requests over connections of their own are what is asked for there
    if config.get("probe_interval_ms") is None:
        yield "no new connections were tried: whether any would have failed is not known"
    else:
        yield (
            "new connections were asked for and the recording tells of none: whether any failed "
            "is not known"
        )


def about_the_balancer(seen: Iterable[Observation]) -> Iterator[str]:
    """What a load balancer in between makes of what is seen on either side."""
    if any(o.event is Event.BALANCER_STARTED for o in seen):
        yield (
            "connections end at the load balancer: a FIN or RST that a client saw is the load "
            "balancer's, which a pod, a node or its own deregistration delay may have caused; a "
            "connection that it could not pass on was accepted and not served; pods see its "
            "address, and not the clients'"
        )


def about_the_way(seen: Iterable[Observation], found: Sequence[NewConnections]) -> Iterator[str]:
    """Whether the prober eats what flows are told (FACTS K13: refusals are rationed)."""
    chosen = next((o for o in seen if o.event is Event.WAY_CHOSEN), None)
    if chosen is None or not isinstance(chosen.data.get("sources"), list):
        return
    have, needed = max(1, len(texts(chosen.data["sources"]))), 1 + len(found)
    if have < needed:
        yield (
            f"flows and probers share a source address ({have} for {needed}): Linux limits the "
            "refusals to each address, so those of one make another's silence"
        )


def integrity(flows: Iterable[FlowReport], found: Iterable[NewConnections]) -> Integrity | None:
    """Whether anybody answered who is not of the workload, whatever the counts.

    None: somebody answered of whom it is not known.
    """
    flows, found = tuple(flows), tuple(found)
    tried = [each for prober in found for each in (prober.results, prober.results_before)]
    if any(map(_met_a_foreigner, flows)) or any(each.get(Result.FOREIGN) for each in tried):
        return Integrity.FOREIGN_RESPONDER
    if any(map(_met_a_stranger, flows)) or any(each.get(Doubt.STRANGER) for each in tried):
        return None
    return Integrity.OK


def about_integrity(judged: Integrity | None, *, signed: bool = True) -> Iterator[str]:
    """Why it is not known. ``signed``: answers say who gives them."""
    if not signed:
        yield "integrity is null: answers of this workload do not say who gives them"
    elif judged is None:
        yield (
            "integrity is null: somebody answered of whom it is not known whether he is of the "
            "workload, because the pods' watch had a gap or the recording does not name him"
        )


def degraded(
    flows: Iterable[FlowReport],
    found: Iterable[NewConnections],
    seen: Iterable[Observation],
    changes: Iterable[Transition],
    start: Start,
) -> Iterator[str]:
    """In what our own machine fell short of what was asked of it."""
    seen = tuple(seen)
    for beside in (o for o in seen if o.event is Event.CLUSTER_START_BESIDE):
        yield f"{_starts(beside)} while the trial measured: delays and stalls may be its doing"
    yield from _without_priority(seen)
    limited = sum(flow.mechanism is Mechanism.CLIENT_LIMIT for flow in flows)
    if limited:
        yield f"{limited} flow(s) met a limit of our own machine (client-limit)"
    unready = _unready_unasked(seen, changes, start)
    if unready:
        yield (
            f"{len(unready)} pod(s) went unready before anybody told them to end: what new "
            "connections met then is not the trigger's doing"
        )
    for prober in found:
        tries = [
            each.get(Result.CLIENT_LIMIT, 0) for each in (prober.results, prober.results_before)
        ]
        if sum(tries):
            yield (
                f"{prober.prober}: {sum(tries)} attempt(s) met a limit of our own machine "
                "(client-limit): they are in no rate and no window"
            )
        if prober.failed_before:
            yield (
                f"{prober.prober}: {prober.failed_before} attempt(s) failed before the trigger: "
                "what fails since may not be its doing"
            )


def _named(killed: Iterable[str]) -> str:
    names = sorted(killed)
    return f"container {names[0]} was" if len(names) == 1 else f"{len(names)} containers were"


def _starts(beside: Observation) -> str:
    return f"{integer(beside.data.get('starts'), 1)} cluster(s) started on this machine"


def _without_priority(seen: Iterable[Observation]) -> Iterator[str]:
    """Stalls of an agent that had to wait for its turn on a core like anybody else."""
    ordinary, since_ns = False, None
    for o in seen:
        if o.event is Event.AGENT_STARTED:
            ordinary = o.data.get("scheduler") == "other"
        elif o.event is Event.PREFLIGHT_PASSED:
            since_ns = o.at.lo
    if not ordinary or since_ns is None:
        return
    late_ns = [
        integer(o.data.get("late_ns"))
        for o in seen
        if o.event is Event.AGENT_STALLED and o.at.hi >= since_ns
    ]
    if late_ns:
        yield (
            f"the flow agent had no real-time priority (scheduler other) and stalled "
            f"{len(late_ns)} time(s), for {max(late_ns) / NS_PER_MS:.0f} ms at most: fewer trials "
            "at once, lower rates or root would help"
        )


def _unready_unasked(
    seen: Iterable[Observation], changes: Iterable[Transition], start: Start
) -> frozenset[str]:
    """Pods that were ready, and then not, while flows and probers were at work and no deletion
    had been shown, nor a container of them been killed.
    """
    at_work = (Event.FLOW_CONNECTED, Event.NEW_CONNECTIONS)
    since_ns = min((o.at.lo for o in seen if o.event in at_work), default=None)
    if since_ns is None:
        return frozenset()
    told = {
        "deletion_timestamp": transitions.POD_READY_FALSE,
        "terminating": transitions.ENDPOINT_READY_FALSE,
    }
    return frozenset(
        change.uid
        for change in changes
        for mark, event in told.items()
        if change.event == event and not change.fields.get(mark) and change.received_ns >= since_ns
        if change.uid not in start.killed or change.received_ns < start.t0_ns
    )


def _met_a_foreigner(flow: FlowReport) -> bool:
    phases = flow.continuity.phases if flow.continuity else ()
    return flow.mechanism is Mechanism.FOREIGN_RESPONDER or any(
        phase.kind is PhaseKind.FOREIGN for phase in phases
    )


def _met_a_stranger(flow: FlowReport) -> bool:
    phases = flow.continuity.phases if flow.continuity else ()
    return any(phase.kind is PhaseKind.TAKEN_OVER for phase in phases)


def _kept_ready(recording: Recording) -> bool:
    config = recording.header.scenario.get("config")
    return isinstance(config, Mapping) and config.get("publish_not_ready_addresses") is True


def _is_attached(recording: Recording) -> bool:
    config = recording.header.scenario.get("config")
    return isinstance(config, Mapping) and isinstance(config.get("attached"), Mapping)


def _of_a_control(start: Start, changes: Iterable[Transition]) -> Iterator[str]:
    """Nothing was to be terminated: what was, disturbed the control."""
    gone = {
        change.name
        for change in changes
        if change.event == transitions.POD_DELETION_TIMESTAMP_SET
        and change.received_ns >= start.t0_ns
    }
    if gone:
        yield f"nothing was to be terminated, and somebody deleted {', '.join(sorted(gone))}"
