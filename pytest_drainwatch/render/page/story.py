"""A flow's life in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_drainwatch.core.document import FlowReport, HistoryEntry
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.udp.continuity import ANSWERING, Continuity, Phase, PhaseKind
from pytest_drainwatch.render.page.moments import moment, since_when
from pytest_drainwatch.render.page.pods import Pods

# How a TCP connection ended, said of the other side.
_ENDS = {
    Mechanism.ANNOUNCED_FIN: "{who} said bye and closed with FIN at {when}, as announced",
    Mechanism.ANNOUNCED_RST: "{who} said bye, and then the connection was reset (RST) at {when}",
    Mechanism.FIN_UNANNOUNCED: "{who} closed with FIN at {when}, without having said bye",
    Mechanism.RST: "cut off by a reset (RST) at {when}, without having been told",
    Mechanism.EPIPE: "cut off: the client could not write any more at {when} (broken pipe)",
    Mechanism.REFUSED: "cut off: refused from {when} on",
    Mechanism.UNREACHABLE: "cut off: the network called it unreachable at {when}",
    Mechanism.SILENCE: "no answer any more from {when} on, and nobody closed it",
    Mechanism.ACCEPTED_NEVER_SERVED: "accepted, and never served a single answer; "
    "that counts from {when}",
    Mechanism.FOREIGN_RESPONDER: "answered by somebody who is not of the workload from {when} on",
    Mechanism.CLIENT_LIMIT: "not measured: our own machine could not send",
    Mechanism.CLIENT_STALL: "not measured: our own machine could not look when it mattered",
}
SILENT = {
    PhaseKind.LOST: "{lost}",
    PhaseKind.REFUSED: "{lost}, and refused (ICMP port unreachable)",
    PhaseKind.UNREACHABLE: "{lost}, and called unreachable by the network",
    PhaseKind.NOT_SENT: "our own machine could not send",
    PhaseKind.NOT_SEEN: "our own machine could not look",
}


def story(flow: FlowReport, pods: Pods) -> str:
    """One sentence with its parts in order."""
    found = flow.continuity
    if found is not None and found.phases:
        parts = list(_of_phases(flow, found, pods))
    elif flow.proto is Proto.TCP:
        parts = list(_of_connection(flow, pods))
    else:
        parts = list(_of_datagrams(flow, pods))
    text = "; ".join(part for part in parts if part)
    return f"{text[:1].upper()}{text[1:]}." if text else "Nothing is known of it."


def _of_phases(flow: FlowReport, found: Continuity, pods: Pods) -> Iterator[str]:
    """``answered by pod A until +2.401 s; 3 datagrams lost; answered by pod B from +2.423 s``."""
    phases = found.phases
    verb = "received by" if flow.one_way else "answered by"
    for number, phase in enumerate(phases):
        following = phases[number + 1] if number + 1 < len(phases) else None
        before = phases[number - 1] if number else None
        if phase.kind in ANSWERING:
            yield _answering(phase, before, following, pods, verb)
        else:
            yield _silent(phase, one_way=flow.one_way)
    if flow.outcome is Outcome.SURVIVED:
        yield "alive at the end"
    elif flow.outcome is Outcome.NOT_MEASURED:
        yield f"not measured{_because(flow.detail or found.note, pods)}"
    elif phases[-1].kind not in ANSWERING:
        yield "nobody answered any more, to the end of the recording"
    if found.late:
        yield f"{_count(found.late, 'answer')} came too late"


def _answering(
    phase: Phase, before: Phase | None, following: Phase | None, pods: Pods, verb: str
) -> str:
    stranger = phase.kind is PhaseKind.FOREIGN
    text = f"{verb} {'somebody not of the workload' if stranger else pods.by(phase.responder)}"
    if before is not None and before.kind in ANSWERING:
        text = f"then, with no datagram lost, {text}"  # as it took over when the other ended
    elif before is not None:
        text += f" from {moment(phase.begins_ns)}"
    if following is not None:
        text += f" until {moment(following.begins_ns)}"
    elif before is None:
        text += " all the time"
    if phase.lost:
        text += f" ({_count(phase.lost, 'datagram')} lost in between)"
    return text


def _silent(phase: Phase, *, one_way: bool) -> str:
    lost = "some datagrams" if phase.lost is None else _count(phase.lost, "datagram")
    text = SILENT[phase.kind].format(lost=f"{lost} not received" if one_way else f"{lost} lost")
    return f"{text} from {moment(phase.begins_ns)} on" if phase.kind in _OURS else text


_OURS = frozenset({PhaseKind.NOT_SENT, PhaseKind.NOT_SEEN})


def _of_connection(flow: FlowReport, pods: Pods) -> Iterator[str]:
    connected = _step(flow.history, "connected")
    if connected is None:
        yield f"never connected{_because(flow.detail, pods)}"
        return
    who = pods.by(flow.responders[0]) if flow.responders else "the server"
    yield f"connected {since_when(connected.at_ns)}"
    if flow.answered:
        last = [step for step in flow.history if step.event == "answered"]
        until = f", the last one at {moment((last[-1].at_ns[1],) * 2)}" if last else ""
        yield f"{who} answered {_count(flow.answered, 'heartbeat')}{until}"
    if flow.unanswered:
        yield f"{_count(flow.unanswered, 'heartbeat')} without an answer"
    yield _end(flow, who, pods)


def _end(flow: FlowReport, who: str, pods: Pods) -> str:
    if flow.outcome is Outcome.SURVIVED:
        return "open to the end of the recording"
    when = "a time that is not known" if flow.terminal_ns is None else moment(flow.terminal_ns)
    known = _ENDS.get(flow.mechanism)
    if flow.outcome is Outcome.NOT_MEASURED:
        ours = flow.mechanism in (Mechanism.CLIENT_LIMIT, Mechanism.CLIENT_STALL)
        if known is not None and ours:
            return known
        return f"not measured{_because(flow.detail, pods)}"
    if known is None:
        return f"ended at {when}, and how is not known{_because(flow.detail, pods)}"
    return known.format(who=who, when=when)


def _of_datagrams(flow: FlowReport, pods: Pods) -> Iterator[str]:
    """A UDP flow of a report that keeps no phases: of an older version."""
    who = pods.by(flow.responders[0]) if flow.responders else "nobody"
    verb = "received by" if flow.one_way else "answered by"
    if flow.outcome is Outcome.SURVIVED:
        yield f"{verb} {who}, alive at the end"
    elif flow.terminal_ns is None or flow.outcome is Outcome.NOT_MEASURED:
        yield f"not measured{_because(flow.detail, pods)}"
    else:
        yield f"{verb} {who} until {moment(flow.terminal_ns)}"
        if flow.unanswered:
            yield f"{_count(flow.unanswered, 'datagram')} lost"
        if len(flow.responders) > 1:
            yield f"then {verb} {pods.by(flow.responders[-1])}"


def _step(history: Sequence[HistoryEntry], event: str) -> HistoryEntry | None:
    return next((step for step in history if step.event == event), None)


def _because(why: str | None, pods: Pods) -> str:
    return f": {pods.in_words(why)}" if why else ""


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
