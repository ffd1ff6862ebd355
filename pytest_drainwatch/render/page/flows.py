"""A flow's life as the picture draws it: its pieces, and the steps that are known of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pytest_drainwatch.core.document import FlowReport, HistoryEntry
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome
from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.core.udp.continuity import Continuity, PhaseKind
from pytest_drainwatch.render.page.data import Flow, Piece, Row, State, Tone
from pytest_drainwatch.render.page.moments import at, at_or_none
from pytest_drainwatch.render.page.pods import Pods
from pytest_drainwatch.render.page.story import story

TONES = {
    State.ANSWERED: Tone.GOOD,
    State.OPEN: Tone.NEUTRAL,
    State.NO_ANSWER: Tone.BAD,
    State.REFUSED: Tone.BAD,
    State.UNREACHABLE: Tone.BAD,
    State.FOREIGN: Tone.BAD,
    State.UNKNOWN: Tone.UNKNOWN,
}
PHASES = {
    PhaseKind.ALIVE: State.ANSWERED,
    PhaseKind.RECOVERED: State.ANSWERED,
    PhaseKind.REHOMED: State.ANSWERED,
    PhaseKind.LOST: State.NO_ANSWER,
    PhaseKind.REFUSED: State.REFUSED,
    PhaseKind.UNREACHABLE: State.UNREACHABLE,
    PhaseKind.FOREIGN: State.FOREIGN,
    PhaseKind.NOT_SENT: State.UNKNOWN,
    PhaseKind.NOT_SEEN: State.UNKNOWN,
    PhaseKind.TAKEN_OVER: State.UNKNOWN,
}
_FATES: dict[str, Tone] = {
    Outcome.DRAINED: Tone.GOOD,
    Outcome.SURVIVED: Tone.GOOD,
    Outcome.SEVERED: Tone.BAD,
    Outcome.READ_TIMEOUT: Tone.BAD,
    Outcome.NOT_MEASURED: Tone.UNKNOWN,
}
# The connection is gone with these, and no piece reaches beyond.
_CLOSED = frozenset({"fin", "reset", "write_error", "read_error"})


class _Stretch(NamedTuple):
    """From when on something was so, and who answered; instants in ns."""

    begins: Bounds
    state: State
    by: int | None


def flow(report: FlowReport, pods: Pods, *, rows: bool) -> Flow:
    """One flow of the page; ``rows``: with all that is known of it."""
    return Flow(
        id=report.id,
        proto=str(report.proto),
        role=None if report.role is None else str(report.role),
        outcome=str(report.outcome),
        mechanism=str(report.mechanism),
        tone=_tone(report),
        end=at_or_none(report.terminal_ns),
        pieces=pieces(report, pods),
        story=story(report, pods),
        rows=_rows(report, pods) if rows else None,
    )


def fate_tone(outcome: str, mechanism: str) -> Tone:
    """How an end is coloured. Of a flow that another pod took over its losses tell more."""
    if mechanism == Mechanism.REHOMED:
        return Tone.WARN
    return _FATES.get(outcome, Tone.UNKNOWN)


def _tone(report: FlowReport) -> Tone:
    found = report.continuity
    if report.mechanism is Mechanism.REHOMED and found is not None and found.lost:
        return Tone.BAD
    return fate_tone(report.outcome, report.mechanism)


def pieces(report: FlowReport, pods: Pods) -> list[Piece]:
    """Its life in order, each piece where the one before ends; equal neighbours are one."""
    found = report.continuity
    if found is not None and found.phases:
        stretches = _of_phases(found, pods)
    else:
        stretches = _of_history(report, pods)
    ends_ns = _ends(report)
    made: list[Piece] = []
    for begins, state, by in stretches:
        lo, hi = at(begins)
        if made:
            before = made[-1]
            if (before["state"], before["by"]) == (state, by):
                continue
            lo = max(lo, before["at"][0])
            hi = max(hi, lo)
            before["at"] = (before["at"][0], lo)
            before["edge"] = min(before["edge"], lo - before["at"][0])
        made.append(Piece(at=(lo, hi), edge=hi - lo, state=state, tone=TONES[state], by=by))
    if made:
        final = made[-1]
        to = max(-(-ends_ns // 1000), final["at"][0])
        final["at"] = (final["at"][0], to)
        final["edge"] = min(final["edge"], to - final["at"][0])
    return made


def _of_phases(found: Continuity, pods: Pods) -> Iterator[_Stretch]:
    for phase in found.phases:
        by = None if phase.responder is None else pods.index.get(phase.responder)
        yield _Stretch(phase.begins_ns, PHASES[phase.kind], by)


def _of_history(report: FlowReport, pods: Pods) -> Iterator[_Stretch]:
    """Of a TCP connection: open, answered, perhaps unanswered."""
    by: int | None = None
    heard_ns: int | None = None
    for step in report.history:
        lo, hi = step.at_ns
        if step.event == "connected":
            yield _Stretch(step.at_ns, State.OPEN, None)
        elif step.event == "responder":
            by = pods.index.get(_value(step, "responder") or "")
            yield _Stretch(step.at_ns, State.ANSWERED if by is not None else State.OPEN, by)
        elif step.event == "answered":
            by = pods.index.get(_value(step, "responder") or "", by)
            yield _Stretch((lo, lo), State.ANSWERED if by is not None else State.OPEN, by)
            heard_ns = hi
        elif step.event == "unanswered":
            since_ns = lo if heard_ns is None else min(heard_ns, lo)
            yield _Stretch((since_ns, lo), State.NO_ANSWER, None)


def _ends(report: FlowReport) -> int:
    """Up to when it is known what became of it, in ns."""
    known = [step.at_ns[1] for step in report.history]
    closed = [step.at_ns[1] for step in report.history if step.event in _CLOSED]
    if report.proto == "tcp" and closed:
        return closed[0]
    return max(known, default=0)


def _value(step: HistoryEntry, key: str) -> str | None:
    """One of the ``key=value`` pairs of a step's detail."""
    for part in (step.detail or "").split(" "):
        name, equals, value = part.partition("=")
        if equals and name == key:
            return value
    return None


def _rows(report: FlowReport, pods: Pods) -> list[Row]:
    """Its history, and what the node's network held for it, by time."""
    steps: Iterable[tuple[Bounds, str, str]] = (
        *((s.at_ns, s.event.replace("_", " "), s.detail or "") for s in report.history),
        *((e.at_ns, "conntrack", f"look at {e.occasion}: {e.says}") for e in report.evidence),
    )
    return [
        Row(at=at(when), event=event, detail=pods.in_words(detail))
        for when, event, detail in sorted(steps, key=lambda step: (step[0][1], step[0][0]))
    ]
