"""Each flow as a lane: what it was like for how long, who answered, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.render.page import flows as page
from pytest_drainwatch.render.page.data import At, Piece
from pytest_drainwatch.render.page.moments import at
from pytest_drainwatch.render.page.pods import Pods
from pytest_drainwatch.render.trace.picture import COLOURS, Lane, Span, seen


def lane(flow: FlowReport, pods: Pods) -> tuple[Lane, Span | None]:
    """A flow's lane, and the span of its end: None if it has none that is known."""
    kind = f"flow.{flow.proto}"
    end = None
    if flow.terminal_ns is not None:
        end = Span(
            name=f"{flow.outcome} by {flow.mechanism}",
            kind=kind,
            at_us=seen(at(flow.terminal_ns)),
            args={"detail": None if flow.detail is None else pods.in_words(flow.detail)},
            colour=COLOURS.get(page.fate_tone(flow.outcome, flow.mechanism)),
        )
    spans = [
        Span(
            name=_named(piece, before, pods, edge=edge),
            kind=kind,
            at_us=part,
            args={} if edge else _args(flow, piece, pods),
            colour=None if edge else COLOURS.get(piece["tone"]),
        )
        for piece, before, whole, edge in _stretches(page.pieces(flow, pods))
        for part in _without(whole, None if end is None else end.at_us)
    ]
    role = "" if flow.role is None else f" ({flow.role})"
    return Lane(name=f"{flow.id}{role}", spans=(*spans, *([] if end is None else [end]))), end


def _stretches(pieces: Iterable[Piece]) -> Iterator[tuple[Piece, Piece | None, At, bool]]:
    """Each piece without the time in which it began, and that time by itself (True)."""
    before: Piece | None = None
    for piece in pieces:
        (lo, hi), edge = piece["at"], piece["edge"]
        if edge:
            yield piece, before, (lo, min(lo + edge, hi)), True
        yield piece, before, (min(lo + edge, hi), hi), False
        before = piece


def _without(whole: At, hole: At | None) -> Iterator[At]:
    """What is left of a stretch beside another one."""
    lo, hi = whole
    for part in [(lo, hi)] if hole is None else [(lo, min(hi, hole[0])), (max(lo, hole[1]), hi)]:
        if part[0] < part[1]:
            yield part


def _named(piece: Piece, before: Piece | None, pods: Pods, *, edge: bool) -> str:
    if edge and before is not None:
        return f"{_state(before, pods)}, or {_state(piece, pods)} already"
    if edge:
        return f"until {_state(piece, pods)}"
    return _state(piece, pods)


def _state(piece: Piece, pods: Pods) -> str:
    by = piece["by"]
    return (
        str(piece["state"]) if by is None else f"{piece['state']} by {pods.responders[by]['name']}"
    )


def _args(flow: FlowReport, piece: Piece, pods: Pods) -> dict[str, str | int | None]:
    by = piece["by"]
    who = None if by is None else pods.responders[by]
    uid = None if who is None else who["pod_uid"]
    return {
        "responder": None if by is None else list(pods.index)[by],
        "pod": None if uid is None else pods.names.get(uid),
        "role": None if who is None else who["role"],
        "flow_answered": flow.answered,
        "flow_unanswered": flow.unanswered,
    }
