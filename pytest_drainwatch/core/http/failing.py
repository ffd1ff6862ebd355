"""From the first request that failed to the last one, and when requests were served again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pytest_drainwatch.core.http.document import FailingRequests
from pytest_drainwatch.core.http.fate import FAILED, SERVED, UNKNOWN
from pytest_drainwatch.core.http.pieces import Piece
from pytest_drainwatch.core.interval import Bounds, Interval


def failing(
    since: Sequence[Piece], every: Sequence[Piece], t0_ns: int, *, lost: int | None
) -> FailingRequests | None:
    """The stretch in which requests ``since`` t = 0 failed; None if none did.

    Requests of which nobody knows, and ``lost`` ones, may have failed before or after it.
    ``every`` one counts for who was served before and after.
    """
    failed = [piece for piece in since if piece.fate in FAILED]
    if not failed:
        return None
    first = Interval(min(p.began.lo for p in failed), min(p.began.hi for p in failed))
    last = Interval(max(p.ended.lo for p in failed), max(p.ended.hi for p in failed))
    begun = Interval(first.lo, max(last.lo, first.lo))
    failures = sum(piece.count for piece in failed)
    lasts = Interval.point(0) if failures == 1 else last - first
    unknown = [piece.hull for piece in since if piece.fate in UNKNOWN]
    if lost != 0:
        ends = [piece.hull for piece in since]
        unknown.append(Interval(min(t0_ns, first.lo), max(at.hi for at in ends)))
    if unknown:
        first = Interval(min(first.lo, *(u.lo for u in unknown)), first.hi)
        last = Interval(last.lo, max(last.hi, *(u.hi for u in unknown)))
        lasts = Interval(min(lasts.lo, (last - first).lo), (last - first).hi)
    served = sum(
        piece.begun_between(begun.lo - 1, begun.hi) for piece in since if piece.fate in SERVED
    )
    return FailingRequests(
        begun_ns=_since(begun, t0_ns),
        first_ns=_since(first, t0_ns),
        last_ns=_since(last, t0_ns),
        lasts_ns=(lasts.lo, lasts.hi),
        requests=failures + served,
        failures=failures,
        served_before_ns=_last_before(every, begun.lo, t0_ns),
        recovered_ns=_first_after(every, begun.hi, t0_ns),
    )


def _last_before(pieces: Iterable[Piece], at_ns: int, t0_ns: int) -> Bounds | None:
    return _since_or_none(
        max(_served_before(pieces, at_ns), key=lambda at: (at.lo, at.hi), default=None), t0_ns
    )


def _served_before(pieces: Iterable[Piece], at_ns: int) -> Iterator[Interval]:
    """Of each piece the last request that was surely begun before."""
    for piece in pieces:
        if piece.fate in SERVED:
            end = min(piece.end, piece.run.first_may_begin_after(at_ns - 1))
            if piece.first < end:
                yield piece.run.hull(end - 1, end)


def _first_after(pieces: Iterable[Piece], at_ns: int, t0_ns: int) -> Bounds | None:
    found = min(_served_after(pieces, at_ns), key=lambda at: (at.hi, at.lo), default=None)
    return _since_or_none(found, t0_ns)


def _served_after(pieces: Iterable[Piece], at_ns: int) -> Iterator[Interval]:
    """Of each piece the first request that was surely begun after."""
    for piece in pieces:
        if piece.fate in SERVED:
            first = max(piece.first, piece.run.first_begun_after(at_ns))
            if first < piece.end:
                yield piece.run.hull(first, first + 1)


def _since(at: Interval, t0_ns: int) -> Bounds:
    shifted = at.since(t0_ns)
    return shifted.lo, shifted.hi


def _since_or_none(at: Interval | None, t0_ns: int) -> Bounds | None:
    return None if at is None else _since(at, t0_ns)
