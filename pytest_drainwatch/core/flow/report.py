"""One flow's observations -> its entry in the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from pytest_drainwatch.core.document import FlowReport, HistoryEntry, whole_ms
from pytest_drainwatch.core.flow.classify import Outcome, Role, classify
from pytest_drainwatch.core.flow.life import FlowLife, live
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import bounds
from pytest_drainwatch.core.jsonvalue import integer
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.stall import NO_STALLS, Stalls
from pytest_drainwatch.core.udp.continuity import (
    CUT,
    FIRST_RECEIVER,
    all_answers_known,
    not_known,
)
from pytest_drainwatch.core.udp.phases import continuity


def flow_reports(
    seen: Iterable[Observation],
    t0_ns: int,
    targets: AbstractSet[str],
    workload: AbstractSet[str],
    stalls: Stalls = NO_STALLS,
    *,
    all_pods_known: bool = True,
    all_targets: bool = False,
) -> tuple[FlowReport, ...]:
    """Every flow, in the order of their ids within TCP, then UDP.

    ``all_targets``: a flow of which nobody knows where it leads is a target's all the same.
    """
    histories: dict[str, list[Observation]] = {}
    for observation in seen:
        if observation.source is Source.CLIENT and observation.event.startswith("flow_"):
            histories.setdefault(observation.subject, []).append(observation)
    return tuple(
        _flow(
            flow_id,
            history,
            live(_proto(flow_id), history, workload, stalls, all_pods_known=all_pods_known),
            t0_ns,
            targets,
            Role.TARGET if all_targets else None,
        )
        for flow_id, history in sorted(histories.items())
    )


def _flow(
    flow_id: str,
    history: Sequence[Observation],
    life: FlowLife,
    t0_ns: int,
    targets: AbstractSet[str],
    otherwise: Role | None,
) -> FlowReport:
    proto = life.proto
    outcome, mechanism = classify(life)
    answered = [o for o in history if o.event is Event.FLOW_ANSWERED]
    lost = [o for o in history if o.event is Event.FLOW_UNANSWERED]
    responders = tuple(
        str(o.data["responder"])
        for o in history
        if o.event is Event.FLOW_RESPONDER and o.data.get("responder")
    )
    first = responders[0] if responders else _first_receiver(history)
    # Of a one-way flow that a pod may have received more of than it told, only that is known.
    why, whole = not_known(history), all_answers_known(history)
    measured = why is None or outcome is not Outcome.NOT_MEASURED
    kept = _of_the_first(history)
    kept = [] if any(CUT in o.data for o in kept) else kept
    last_seq = max((integer(o.data.get("last_seq")) for o in kept), default=None)
    connected = next((o.at for o in history if o.event is Event.FLOW_CONNECTED), None)
    end = life.end.since(t0_ns) if life.end is not None and measured else None
    return FlowReport(
        id=flow_id,
        proto=proto,
        role=_role(first, targets) or otherwise,
        outcome=outcome,
        mechanism=mechanism,
        connected_t_ms=whole_ms(connected.hi - t0_ns) if connected else None,
        t_terminal_ms=whole_ms(end.hi) if end else None,
        terminal_ns=bounds(end),
        last_data_t_ms=whole_ms(max(o.at.hi for o in kept) - t0_ns) if kept else None,
        last_heartbeat_seq=last_seq if proto is Proto.TCP else None,
        last_answered_seq=last_seq if proto is Proto.UDP else None,
        answered=sum(integer(o.data.get("count")) for o in answered) if whole else None,
        unanswered=sum(integer(o.data.get("count")) for o in lost)
        + sum(integer(o.data.get("lost")) for o in answered)
        if why is None
        else None,
        responders=responders,
        detail=_detail(life) if measured else why,
        one_way=any(o.data.get("one_way") is True for o in history),
        continuity=continuity(life, history, t0_ns),
        history=tuple(_entry(o, t0_ns) for o in history),
    )


def _of_the_first(history: Iterable[Observation]) -> list[Observation]:
    """What the first responder answered before anybody else did: the ancestor's "last data"."""
    kept: list[Observation] = []
    for seen in history:
        if seen.event is Event.FLOW_RESPONDER and seen.data.get("previous"):
            break
        if seen.event is Event.FLOW_ANSWERED and seen.data.get("count") != 0:
            kept.append(seen)
    return kept


def _first_receiver(history: Iterable[Observation]) -> str | None:
    """Who received the first of a one-way flow of which little else is known."""
    found = (o.data.get(FIRST_RECEIVER) for o in history)
    return next((str(who) for who in found if who is not None), None)


def _proto(flow_id: str) -> Proto:
    return Proto.UDP if flow_id.startswith("udp") else Proto.TCP


def _role(first_responder: str | None, targets: AbstractSet[str]) -> Role | None:
    if first_responder is None:
        return None
    uid = first_responder.partition("/")[0]
    return Role.TARGET if uid in targets else Role.BYSTANDER


def _detail(life: FlowLife) -> str | None:
    """The evidence behind the verdict, in words."""
    if life.end_step is None:
        return None
    seen = life.end_step.seen
    data = seen.data
    if seen.event is Event.FLOW_RESPONDER:
        return f"answered by {data.get('responder') or 'another'}, was {data.get('previous')}"
    if seen.event is Event.FLOW_ICMP:
        return f"ICMP type {data.get('type')} code {data.get('code')} ({data.get('errno')})"
    if seen.event is Event.FLOW_UNANSWERED:
        return f"{data.get('count')} sends unanswered from seq {data.get('first_seq')}"
    if seen.event is Event.FLOW_FIN:
        said = any(step.seen.event is Event.FLOW_ANNOUNCED for step in life.steps)
        return "FIN after bye" if said else "FIN without bye"
    if data.get("errno"):
        return str(data["errno"])
    return None


def _entry(seen: Observation, t0_ns: int) -> HistoryEntry:
    shown = [f"{k}={v}" for k, v in seen.data.items() if v is not None and not k.endswith("_ns")]
    return HistoryEntry(
        event=_NAMES[seen.event],
        at_ns=(seen.at.lo - t0_ns, seen.at.hi - t0_ns),
        detail=" ".join(shown) or None,
    )


_NAMES = {event: event.removeprefix("flow_") for event in Event}
