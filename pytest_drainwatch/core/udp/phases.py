"""A flow's life -> its phases and outages; see :mod:`.continuity` for what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pytest_drainwatch.core.flow.life import FlowLife
from pytest_drainwatch.core.flow.signals import Step
from pytest_drainwatch.core.flow.table import Proto, Signal, State
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.jsonvalue import integer, integer_or_none
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.udp.continuity import (
    ANSWERING,
    CUT,
    Continuity,
    PhaseKind,
    RecoveredBy,
    all_answers_known,
    not_known,
)
from pytest_drainwatch.core.udp.outage import Gap, Part, divided

_ERRORS = frozenset(
    {Event.FLOW_ICMP, Event.FLOW_WRITE_ERROR, Event.FLOW_READ_ERROR, Event.FLOW_RESET}
)
_KINDS = {
    Signal.ICMP_PORT: PhaseKind.REFUSED,
    Signal.LIMIT: PhaseKind.NOT_SENT,
    Signal.STALL: PhaseKind.NOT_SEEN,
    Signal.MOVE: PhaseKind.REHOMED,
    Signal.FOREIGN: PhaseKind.FOREIGN,
    Signal.STRANGER: PhaseKind.TAKEN_OVER,
}


def continuity(life: FlowLife, history: Sequence[Observation], t0_ns: int) -> Continuity | None:
    """The continuity of a flow with that life and history; None for TCP."""
    if life.proto is not Proto.UDP:
        return None
    walk = _Walk(life, history)
    for seen, step in _paired(history, life.steps):
        walk.take(seen, step)
        if seen.event is Event.FLOW_OPEN_AT_END:
            break
    return _summed(life, history, walk.finished(), t0_ns)


def _paired(
    history: Iterable[Observation], steps: Iterable[Step]
) -> Iterator[tuple[Observation, Step | None]]:
    """Each observation, and the step that the verdict made of it."""
    rest = iter(steps)
    following = next(rest, None)
    for seen in history:
        if following is not None and following.seen is seen:
            yield seen, following
            following = next(rest, None)
        else:
            yield seen, None


class _Walk:
    """Walks a history once, opening and closing phases."""

    def __init__(self, life: FlowLife, history: Sequence[Observation]) -> None:
        self._life = life
        self._to_its_end = not_known(history) is None
        self._cut = any(CUT in o.data for o in history)
        self.parts: list[Part] = []
        self.gaps: list[Gap] = []
        self._gap: Gap | None = None
        self._responder: str | None = None
        self._last_good_ns: int | None = None
        self._rtt_max_ns = 0
        self.open = 0

    def take(self, seen: Observation, step: Step | None) -> None:
        event = seen.event
        if event is Event.FLOW_CONNECTED:
            self._last_good_ns = seen.at.lo  # an outage from the start counts from here
        elif event is Event.FLOW_ANSWERED:
            self._answered(seen)
        elif event is Event.FLOW_RESPONDER and step is not None:
            self._responded(str(seen.data.get("responder")), seen, step)
        elif event is Event.FLOW_GARBAGE and step is not None:
            self._responded(None, seen, step)
        elif event is Event.FLOW_UNANSWERED:
            self._unanswered(seen, step)
        elif step is not None and (event in _ERRORS or event is Event.FLOW_FIN):
            self._failed(seen, step)

    def finished(self) -> _Walk:
        """Close what is open: the watch ended."""
        gap, self._gap = self._gap, None
        watched = any(step.signal is Signal.END for step in self._life.steps)
        brief = gap is not None and gap.brief and watched
        if gap is not None and (brief or self._life.state is State.SURVIVED):
            self.open = gap.lost  # too few, and for too short, to be more than on their way
        elif gap is not None:
            self._keep(gap)
        return self

    def _answered(self, seen: Observation) -> None:
        data = seen.data
        rtt_max_ns = integer(data.get("rtt_max_ns"), seen.at.width)
        if self._gap is not None or not self.parts:
            first = Interval(seen.at.lo, min(seen.at.hi, seen.at.lo + max(0, rtt_max_ns)))
            again = PhaseKind.ALIVE if self._responder is None else PhaseKind.RECOVERED
            self._begin(again, first, self._responder)
        part = self.parts[-1]
        part.answered += integer(data.get("count"))
        part.lost = (part.lost or 0) + integer(data.get("lost"))
        part.reordered += integer(data.get("reordered"))
        part.duplicated += integer(data.get("duplicates"))
        part.late += integer(data.get("late"))
        part.cut = part.cut or data.get(CUT) is True
        first_seq, last_seq = (integer_or_none(data.get(k)) for k in ("first_seq", "last_seq"))
        part.first_seq = first_seq if part.first_seq is None else part.first_seq
        part.last_seq = last_seq if last_seq is not None else part.last_seq
        self._last_good_ns = integer(data.get("last_sent_ns"), seen.at.lo)
        self._rtt_max_ns = max(self._rtt_max_ns, rtt_max_ns)

    def _responded(self, who: str | None, seen: Observation, step: Step) -> None:
        kind = _KINDS.get(step.signal, PhaseKind.ALIVE)
        if kind is PhaseKind.ALIVE and self._responder not in (None, who):
            kind = PhaseKind.RECOVERED
        if self._gap is None and kind is not PhaseKind.ALIVE:
            self._open(step.at)
        if self._gap is not None and step is self._life.end_step:
            self._gap.began, self._gap.decisive = step.at, True
        self._begin(kind, Interval(min(seen.at.lo, step.at.lo), seen.at.hi), who)

    def _begin(self, kind: PhaseKind, first: Interval, who: str | None) -> None:
        """Somebody answers: ``first`` holds the send and the receipt of that exchange."""
        begins, before = first, self._responder
        gap, self._gap = self._gap, None
        if gap is not None:
            known_ns = first.hi if gap.known_ns is None else min(first.hi, gap.known_ns)
            lo = gap.last_lost_ns if gap.last_lost_ns is not None else gap.began.lo
            begins = Interval(lo, max(lo, known_ns))
            gap.after = who
            if kind in (PhaseKind.FOREIGN, PhaseKind.TAKEN_OVER):
                gap.by = RecoveredBy.FOREIGN
            else:
                gap.recovered = begins
                same = RecoveredBy.FIRST if gap.before is None else RecoveredBy.SAME
                gap.by = RecoveredBy.ANOTHER if kind is PhaseKind.REHOMED else same
            self._keep(gap)
        if before is None and kind is PhaseKind.RECOVERED:
            kind = PhaseKind.ALIVE
        self._responder = who
        self.parts.append(Part(kind, begins, responder=who))

    def _unanswered(self, seen: Observation, step: Step | None) -> None:
        data = seen.data
        first_ns = integer(data.get("first_sent_ns"), seen.at.lo)
        last_ns = integer(data.get("last_sent_ns"), seen.at.hi)
        if step is not None and step.signal is Signal.SILENCE:
            began = step.at
        else:
            lo = first_ns if self._last_good_ns is None else min(self._last_good_ns, first_ns)
            began = Interval(lo, first_ns + self._rtt_max_ns)
        gap = self._gap or self._open(began)
        if step is not None and step is self._life.end_step:
            gap.began, gap.decisive = step.at, True
        gap.brief = gap.brief and step is None
        stalled = step is not None and step.signal is Signal.STALL
        if not gap.parts:
            kind = PhaseKind.NOT_SEEN if stalled else PhaseKind.LOST
            gap.parts.append(Part(kind, gap.began))
        gap.lost += integer(data.get("count"))
        first_seq, last_seq = (integer_or_none(data.get(k)) for k in ("first_seq", "last_seq"))
        gap.first_seq = first_seq if gap.first_seq is None else gap.first_seq
        gap.last_seq = last_seq if last_seq is not None else gap.last_seq
        gap.first_lost_ns = first_ns if gap.first_lost_ns is None else gap.first_lost_ns
        gap.last_lost_ns = max(last_ns, gap.last_lost_ns or last_ns)
        gap.known_ns = max(seen.at.hi, last_ns)

    def _failed(self, seen: Observation, step: Step) -> None:
        """An error: another phase of the outage, if it tells something new."""
        gap = self._gap or self._open(step.at)
        gap.brief = False
        if step is self._life.end_step:
            gap.began, gap.decisive = step.at, True
        kind = _KINDS.get(step.signal, PhaseKind.UNREACHABLE)
        part = next((part for part in gap.parts if part.kind is kind), None)
        if part is None:
            part = Part(kind, seen.at, at_seq=integer_or_none(seen.data.get("seq")))
            gap.parts.append(part)
        part.errors += integer(seen.data.get("count"), 1)

    def _open(self, began: Interval) -> Gap:
        good_ns = began.lo if self._last_good_ns is None else self._last_good_ns
        cut = bool(self.parts) and self.parts[-1].cut
        self._gap = Gap(began, min(good_ns, began.hi), self._responder, cut=cut)
        return self._gap

    def _keep(self, gap: Gap) -> None:
        if not self._to_its_end and (gap.recovered is None or not self._cut):
            gap.cut = True  # losses are told to the end of the record, or not at all
        self.gaps.append(gap)
        parts = divided(gap)
        for part in parts:
            part.cut = gap.cut
        self.parts += parts


def _summed(life: FlowLife, history: Sequence[Observation], walk: _Walk, t0_ns: int) -> Continuity:
    ended = [o.data for o in history if o.event is Event.FLOW_OPEN_AT_END]
    final = ended[-1] if ended else {}
    parts, gaps = walk.parts, walk.gaps
    late = integer(final.get("late"), sum(part.late for part in parts))
    doubled = integer(final.get("duplicates"), sum(part.duplicated for part in parts))
    in_stretches = sum(part.lost or 0 for part in parts if part.kind in ANSWERING)
    unanswered = in_stretches + sum(gap.lost for gap in gaps)
    told = next((gap for gap in gaps if gap.decisive), None)
    if told is None and gaps:
        told = max(gaps, key=_length_ns)
    shown = None if told is None else told.frozen(t0_ns)
    why = not_known(history)
    received = all_answers_known(history)
    return Continuity(
        sent=integer_or_none(final.get("sent")),
        unsent=integer_or_none(final.get("unsent")),
        answered=sum(part.answered for part in parts) if received else None,
        lost=max(0, unanswered - late) if why is None else None,
        late=late if received else None,
        open=walk.open if why is None else None,
        reordered=sum(part.reordered for part in parts) if received else None,
        duplicated=doubled if received else None,
        phases=tuple(part.frozen(t0_ns) for part in parts),
        outages=tuple(gap.frozen(t0_ns) for gap in gaps),
        recovered_at_ns=shown.recovered_at_ns if shown else None,
        gap_ns=shown.gap_ns if shown else None,
        recovered_by=shown.recovered_by if shown else None,
        note=_note(told, bool(ended)) if why is None else _unknown(why, walk),
    )


def _unknown(why: str, walk: _Walk) -> str:
    heard = any(part.kind in ANSWERING for part in walk.parts)
    return f"not known to its end: {why}" if heard else f"not measured: {why}"


def _length_ns(gap: Gap) -> float:
    down = gap.down
    return float("inf") if down is None else down.hi


def _note(told: Gap | None, watched: bool) -> str | None:
    if told is None:
        return "never interrupted"
    if told.recovered is not None:
        return None
    if told.by is RecoveredBy.FOREIGN:
        return f"not recovered: then answered by {told.after or 'garbage'}, not of the workload"
    if not watched:
        return "not measured: the client's record ends before the flow's"
    return "did not come back within the observation window"
