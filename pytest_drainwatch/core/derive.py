"""``derive(recording) -> Report``: the judge, in the order in which one would ask.

When was t = 0? Whose pods were terminated? What happened to each flow? What did
the cluster say, and the probe? What lies between those?
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_type_hints

from pytest_drainwatch.core import causality, clock, instrument, notes, transitions
from pytest_drainwatch.core.blind import hides_pods
from pytest_drainwatch.core.document import (
    REPORT_SCHEMA,
    ClockReport,
    ContainerExit,
    Environment,
    Episode,
    NodeFacts,
    Report,
    TrialReport,
    TriggerReport,
)
from pytest_drainwatch.core.flow.anonymous import Identified, identified
from pytest_drainwatch.core.flow.report import flow_reports
from pytest_drainwatch.core.http.alive import answered_until
from pytest_drainwatch.core.http.judge import requests
from pytest_drainwatch.core.http.notes import degraded
from pytest_drainwatch.core.interval import Bounds, Interval
from pytest_drainwatch.core.jsonvalue import integer, integer_or_none, number, objects, texts
from pytest_drainwatch.core.mechanism.report import with_evidence
from pytest_drainwatch.core.mechanism.snapshot import looks_of, shown
from pytest_drainwatch.core.moments import Moments, last_tcp_ends, moments_of, pod_moments
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.pod.report import pod_ends
from pytest_drainwatch.core.probing.judge import new_connections
from pytest_drainwatch.core.probing.pieces import Surroundings, all_tried
from pytest_drainwatch.core.recording import Recording
from pytest_drainwatch.core.refuse import refuse_unfinished, refuse_unmeasured, refuse_unrequested
from pytest_drainwatch.core.scenario import Affinity
from pytest_drainwatch.core.stall import stalls_of
from pytest_drainwatch.core.start import Start, start_of
from pytest_drainwatch.core.summary import summarise
from pytest_drainwatch.core.timeline import timeline
from pytest_drainwatch.core.transitions import Transition
from pytest_drainwatch.core.udp import one_way
from pytest_drainwatch.core.windows.judge import Evidence, windows


def derive(recording: Recording) -> Report:
    """Judge a recording. The same recording gives the same report.

    Raises :class:`~pytest_drainwatch.core.refuse.CannotDerive` for a void trial, and
    :class:`~pytest_drainwatch.core.clock.ClockError` for impossible stamps.
    """
    seen = recording.observations
    refuse_unfinished(seen)
    start = start_of(seen)
    clocks = clock.clocks(recording.header.clock, seen)
    causality.check(seen, start, clocks)
    changes = tuple(transitions.transitions(seen))
    config = _mapping(recording.header.scenario.get("config"))
    whose = Identified(seen=seen)
    if isinstance(config.get("attached"), Mapping):
        whose = identified(seen, changes, t0_ns=start.t0_ns, targets=start.targets)
    seen = whose.seen
    told, unknown = one_way.told_by_the_probe(seen, clocks, changes)
    workload, stalls = _workload(seen), stalls_of(seen)
    all_pods_known = not any(hides_pods(o) for o in seen)
    flows = flow_reports(
        told,
        start.t0_ns,
        start.targets,
        workload,
        stalls,
        all_pods_known=all_pods_known,
        all_targets=whose.all_targets,
    )
    looks = looks_of(seen)
    flows = with_evidence(flows, looks, seen, changes, start.t0_ns)
    refuse_unrequested(seen, config)
    refuse_unmeasured(start, changes, flows, config)
    pods = pod_moments(seen, start, changes, clocks)
    moments = moments_of(seen, start, pods, flows, clocks)
    around = Surroundings(
        t0_ns=start.t0_ns,
        targets=pods,
        workload=workload,
        names={change.uid: change.name for change in changes},
        all_pods_known=all_pods_known,
        stalls=stalls,
        control=start.control,
        pinned=config.get("session_affinity") == Affinity.CLIENT_IP,
        anonymous=whose.anonymous,
    )
    attempts = all_tried(seen, around)
    tried = new_connections(attempts, around)
    asked = requests(seen, around, changes)
    integrity = None if whose.anonymous else notes.integrity(flows, tried)
    clock_reports = tuple(_clock_report(clocks[name]) for name in sorted(clocks))
    header = recording.header
    return Report(
        schema_version=REPORT_SCHEMA,
        drainwatch_version=header.drainwatch_version,
        git_commit=header.git_commit,
        simulated=header.simulated,
        environment=environment(recording),
        trial=TrialReport(
            id=header.trial_id,
            scenario=str(header.scenario.get("id", "")),
            config=config,
            flags=texts(header.scenario.get("flags")),
            trigger=_trigger_report(start, moments),
            timeline=timeline(
                seen, changes, flows, clocks, start.t0_ns, start.targets, tried, asked
            ),
            flows=flows,
            summary=summarise(flows, moments, start.t0_ns),
            container_exits=_container_exits(changes, start),
            clock=clock_reports,
            clock_note=_clock_note(clock_reports),
            sending=instrument.sending(seen, start.t0_ns),
            gaps=_episodes(seen, Event.WATCH_GAP, start.t0_ns),
            stalls=instrument.stalls(seen, start.t0_ns),
            deviations=texts(header.environment.get("deviations")),
            notes=(
                *notes.notes(recording, start, moments, flows, changes),
                *unknown,
                *whose.notes,
                *notes.about_new_connections(tried, config),
                *notes.about_the_way(seen, tried),
                *notes.about_the_balancer(seen),
                *notes.about_integrity(integrity, signed=not whose.anonymous),
            ),
            pod_ends=pod_ends(
                seen, changes, start, clocks, config, answered_until(seen, changes, around)
            ),
            windows=windows(
                pods,
                Evidence(
                    seen=seen,
                    t0_ns=start.t0_ns,
                    clocks=clocks,
                    last_tcp_ends=last_tcp_ends(flows, start.targets),
                    local_only=_falls_back_locally(config, header.environment),
                    kept_ready=config.get("publish_not_ready_addresses") is True,
                    tried=attempts,
                ),
            ),
            new_connections=tried,
            requests=asked,
            integrity=integrity,
            mechanism=tuple(shown(look, start.t0_ns) for look in looks),
            degraded=(*notes.degraded(flows, tried, seen, changes, start), *degraded(asked)),
            test=header.test,
            repeat=header.repeat,
        ),
    )


def environment(recording: Recording) -> Environment:
    """The environment of a recording's header; unknown keys are ignored.

    A fact of another kind than expected is not known, and a warning says so.
    """
    raw = recording.header.environment
    nodes, odd = raw.get("nodes"), list[str]()
    known = _facts(Environment, "", {k: v for k, v in raw.items() if k not in _LISTS}, odd)
    if isinstance(nodes, list):
        named = [n for n in nodes if isinstance(n, dict) and isinstance(n.get("name"), str)]
        odd += ["nodes"] * (len(named) < len(nodes))
        known["nodes"] = tuple(NodeFacts(**_facts(NodeFacts, "nodes.", n, odd)) for n in named)
    elif nodes is not None:
        odd.append("nodes")
    dropped = (f"{name} of the recording is no such fact and was dropped" for name in odd)
    return Environment(**known, warnings=(*texts(raw.get("warnings")), *dropped))


_LISTS = frozenset({"nodes", "warnings"})


def _facts(kind: type, where: str, raw: Mapping[str, object], odd: list[str]) -> dict[str, Any]:
    """The fields of ``kind`` that ``raw`` holds; names those of a wrong kind in ``odd``."""
    found = {}
    for name, hint in get_type_hints(kind).items():
        value = raw.get(name)
        if name in raw and (not isinstance(value, hint) or isinstance(value, bool)):
            odd.append(where + name)
        elif name in raw:
            found[name] = value
    return found


def _workload(seen: Iterable[Observation]) -> frozenset[str]:
    """UIDs of the workload's pods: those seen or listed as pods, and those behind its Service."""
    uids = {o.subject for o in seen if o.event is Event.POD}
    for o in seen:
        if o.event is Event.WATCH_LISTED and o.data.get("resource") == "pods":
            uids |= set(texts(o.data.get("subjects")))
        if o.event is Event.ENDPOINT_SLICE:
            uids |= {str(e["uid"]) for e in objects(o.data.get("endpoints")) if e.get("uid")}
    return frozenset(uids)


def _falls_back_locally(config: Mapping[str, object], facts: Mapping[str, object]) -> bool:
    """Whether kube-proxy looks at the endpoints of one node, and there are several nodes."""
    return config.get("external_traffic_policy") == "Local" and facts.get("node_count") != 1


def _trigger_report(start: Start, moments: Moments) -> TriggerReport:
    accepted = start.accepted.at.since(start.t0_ns)
    # Of a container that was killed there is no deletion: its end is what was asked for.
    seen = moments.container_terminated if start.killed else moments.deletion
    effective = seen.since(start.t0_ns) if seen else None
    return TriggerReport(
        verb=str(start.accepted.data.get("verb", "")),
        attempts=integer(start.accepted.data.get("attempt"), 1),
        requested_ns=(0, 0),
        accepted_ns=(accepted.lo, accepted.hi),
        effective_ns=None if effective is None else (effective.lo, effective.hi),
        targets=tuple(sorted(start.targets)),
        blocked=tuple(
            f"attempt {o.data.get('attempt')}: HTTP {o.data.get('status')} {o.data.get('message')}"
            + _retry_after(o.data.get("retry_after_s"))
            for o in start.blocked
        ),
    )


def _retry_after(asked: object) -> str:
    seconds = number(asked)
    return "" if seconds is None else f"; Retry-After {seconds:g} s"


def _container_exits(changes: Iterable[Transition], start: Start) -> tuple[ContainerExit, ...]:
    found: dict[tuple[str, str, int], ContainerExit] = {}
    for change in changes:
        name, restarts = str(change.fields.get("name", "")), integer(change.fields.get("restarts"))
        state: Mapping[str, object] = change.fields
        if change.event == transitions.CONTAINER_RESTARTED and change.uid in start.killed:
            # A quick restart never shows the end as a state of its own.
            restarts, state = restarts - 1, _mapping(change.fields.get("last_state"))
        elif change.event != transitions.CONTAINER_TERMINATED or change.uid not in start.targets:
            continue
        left = ContainerExit(
            pod=change.name,
            pod_uid=change.uid,
            container=name,
            exit_code=integer_or_none(state.get("exit_code")),
            signal=integer_or_none(state.get("signal")),
            reason=None if state.get("reason") is None else str(state["reason"]),
        )
        found.setdefault((change.uid, name, restarts), left)
    return tuple(found.values())


def _clock_report(known: clock.Clock) -> ClockReport:
    """The offset as the last exchange leaves it."""
    last = known.exchanges[-1].at_ns if known.exchanges else 0
    offset = known.offset_at(last)
    return ClockReport(
        clock=known.name,
        same_clock=known.same,
        offset_ns=None if offset is None else (offset.lo, offset.hi),
        exchanges=len(known.exchanges),
    )


def _clock_note(clocks: Sequence[ClockReport]) -> str:
    base = (
        "t = 0 is when the accepted trigger call was sent, on the harness's CLOCK_MONOTONIC. "
        "*_ms shows the upper bound, *_ns is [lo, hi]. "
    )
    other = [known for known in clocks if not known.same_clock]
    if not clocks:
        return base + "No probe named its clock: probe stamps are not placed in time."
    if not other:
        return base + "The probe reads the same clock (boot id and time namespace): offset 0."
    worst = max(
        (known.offset_ns[1] - known.offset_ns[0] for known in other if known.offset_ns),
        default=None,
    )
    if worst is None:
        return base + "The probe has a clock of its own and no exchange bounds it."
    return base + (
        "The probe has a clock of its own; exchanges on the flows bound its offset within "
        f"{worst / 1e6:.3f} ms."
    )


def _episodes(seen: Iterable[Observation], event: Event, t0_ns: int) -> tuple[Episode, ...]:
    return tuple(
        Episode(
            source=Source(o.source),
            subject=str(o.data.get("resource", o.subject)),
            at_ns=_since(o.at, t0_ns),
            kind=str(event),
            detail=None if o.data.get("reason") is None else str(o.data["reason"]),
        )
        for o in seen
        if o.event is event
    )


def _since(at: Interval, t0_ns: int) -> Bounds:
    shifted = at.since(t0_ns)
    return shifted.lo, shifted.hi


def _mapping(value: object) -> Mapping[str, object]:
    return dict(value) if isinstance(value, Mapping) else {}
