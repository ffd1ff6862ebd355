"""The facts of the ancestor's flows as our observations, so that our core judges them anew.

A report holds of each flow when it was connected, when it last heard something,
and what ended it, in words. Those words name what its client *saw*, and that is taken;
what it concluded (the outcome) is not. What it did not keep (how many were answered,
which sends were lost, round trips) is left out, never filled in.

Its identity is a pod's name: a replacement of the same name goes unnoticed, and no
judgement made afterwards can mend that. It also stops watching a UDP flow at its first
refusal, so whether that one passed cannot be told; the flow counts as unwatched from
there on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.flow.classify import Mechanism, Outcome, classify
from pytest_drainwatch.core.flow.life import live
from pytest_drainwatch.core.flow.signals import OWN_DEADLINE
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.upstream.document import Entry, Flow, Happening, Trial
from pytest_drainwatch.upstream.instants import within

UNNAMED = "unnamed"
_FIN = {
    "fin after drain announcement": True,
    "eof-without-drain-announcement": False,
}
_ERRORS = {
    "econnreset": (Event.FLOW_RESET, "ECONNRESET"),
    "econnrefused": (Event.FLOW_READ_ERROR, "ECONNREFUSED"),
    "enetunreach": (Event.FLOW_READ_ERROR, "ENETUNREACH"),
    "ehostunreach": (Event.FLOW_READ_ERROR, "EHOSTUNREACH"),
    "epipe": (Event.FLOW_WRITE_ERROR, "EPIPE"),
    # Its client gave itself 4 intervals to hand over a line of a few bytes.
    "write deadline exceeded": (Event.FLOW_WRITE_ERROR, OWN_DEADLINE),
}
_REHOMED = re.compile(r"answered by probe instance (?P<new>\S+), was (?P<old>\S+)")
_SILENCE = re.compile(r"udp-silence-(?P<count>\d+)-datagrams")
_INSTANCE = re.compile(r"\binstance=(\S+)")


class ConversionError(ValueError):
    """A flow whose facts are not understood; names the flow and the words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejudged:
    """What they said of a flow, and what its facts say to us."""

    flow_id: str
    theirs: Outcome
    their_detail: str | None
    outcome: Outcome
    mechanism: Mechanism
    end: Interval | None

    @property
    def agrees(self) -> bool:
        """Whether both come to the same outcome."""
        return self.theirs is self.outcome


def rejudge(trial: Trial) -> tuple[Rejudged, ...]:
    """Our verdict on every flow, beside theirs. Raises :class:`ConversionError`."""
    pods = workload(trial)
    return tuple(_rejudge(flow, observations(flow, trial), pods) for flow in trial.flows)


def workload(trial: Trial) -> frozenset[str]:
    """The names of every pod that it saw belong to the workload; empty is "not known"."""
    seen = _details(trial, "k8s", Happening.POD_OBSERVED)
    return frozenset(detail.partition(" ")[0] for detail in seen)


def observations(flow: Flow, trial: Trial) -> tuple[Observation, ...]:
    """The facts of one flow, in ns since the trigger. Raises :class:`ConversionError`."""
    return tuple(_facts(flow, trial))


def _rejudge(flow: Flow, history: Sequence[Observation], pods: frozenset[str]) -> Rejudged:
    # Without the probe's own line nobody knows its name: that makes it no stranger.
    known = not any(o.data.get("responder") == UNNAMED for o in history)
    life = live(flow.proto, history, pods, all_pods_known=known)
    outcome, mechanism = classify(life)
    return Rejudged(
        flow_id=flow.id,
        theirs=flow.outcome,
        their_detail=flow.detail,
        outcome=outcome,
        mechanism=mechanism,
        end=life.end,
    )


def _facts(flow: Flow, trial: Trial) -> Iterator[Observation]:
    if flow.connected_t_ms is None:
        return
    opened = within(flow.connected_t_ms)
    yield _seen(flow, Event.FLOW_CONNECTED, opened, proto=str(flow.proto))
    first = _first_responder(flow, trial)
    last = None if flow.last_data_t_ms is None else within(flow.last_data_t_ms)
    if last is not None:
        until = Interval(min(opened.lo, last.lo), last.hi)
        yield _seen(flow, Event.FLOW_RESPONDER, until, responder=first)
        # The send of what was answered is not in the report; its answer's receipt stands
        # for it, which is late by one round trip.
        last_seq = flow.last_answered_seq if flow.proto is Proto.UDP else flow.last_heartbeat_seq
        yield _seen(
            flow,
            Event.FLOW_ANSWERED,
            until,
            responder=first,
            last_seq=last_seq,
            last_sent_ns=last.lo,
        )
    if flow.t_terminal_ms is None:
        closed = [e.t_ms for e in trial.timeline or () if e.event is _WINDOW_CLOSED]
        if flow.outcome is Outcome.SURVIVED and closed:
            yield _seen(flow, Event.FLOW_OPEN_AT_END, within(closed[0]))
        return
    end = within(flow.t_terminal_ms)
    since = end if last is None else Interval(min(last.lo, end.lo), end.hi)
    yield from _end(flow, end, since)
    yield _seen(flow, Event.FLOW_OPEN_AT_END, Interval(end.hi, end.hi))


_WINDOW_CLOSED = Happening.OBSERVATION_WINDOW_CLOSED


def _end(flow: Flow, end: Interval, since: Interval) -> Iterator[Observation]:
    """What ended it, as it was seen; ``since`` reaches back to the last thing heard."""
    detail = flow.detail or ""
    rehomed, silence = _REHOMED.fullmatch(detail), _SILENCE.fullmatch(detail)
    if detail in _FIN:
        if _FIN[detail]:
            yield _seen(flow, Event.FLOW_ANNOUNCED, since)
        yield _seen(flow, Event.FLOW_FIN, end)
    elif rehomed:
        new, old = rehomed["new"], rehomed["old"]
        yield _seen(flow, Event.FLOW_RESPONDER, since, responder=new, previous=old)
    elif silence or flow.outcome is Outcome.READ_TIMEOUT:
        # Nothing was heard since: when the first unanswered send was is not in the report.
        count = {"count": int(silence["count"])} if silence else {}
        yield _seen(flow, Event.FLOW_UNANSWERED, since, first_sent_ns=since.lo, **count)
    elif known := next((named for word, named in _ERRORS.items() if _says(detail, word)), None):
        event, errno = known
        yield _seen(flow, event, end, errno=errno)
    else:
        raise ConversionError(
            f"{flow.id} ended by {detail!r}, which is not understood; expected one of: "
            f"{', '.join([*_FIN, *_ERRORS])}, 'answered by probe instance X, was Y', "
            "'udp-silence-N-datagrams'"
        )


def _says(detail: str, word: str) -> bool:
    """Whether a detail is this word, alone or with an explanation in brackets."""
    return detail == word or detail.startswith(f"{word} (")


def _first_responder(flow: Flow, trial: Trial) -> str:
    rehomed = _REHOMED.fullmatch(flow.detail or "")
    if rehomed:
        return rehomed["old"]
    for detail in _details(trial, "probe", Happening.PROBE_STARTED):
        if named := _INSTANCE.search(detail):
            return named[1]
    return UNNAMED


def _details(trial: Trial, source: str, event: Happening) -> list[str]:
    entries: tuple[Entry, ...] = trial.timeline or ()
    return [e.detail for e in entries if e.source == source and e.event is event and e.detail]


def _seen(flow: Flow, event: Event, at: Interval, **data: object) -> Observation:
    return Observation(source=Source.CLIENT, event=event, at=at, subject=flow.id, data=data)
