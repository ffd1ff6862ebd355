"""Recorded requests -> what a report says of them.

What is not known of a request counts against certainty and never for it: requests that are not
judged widen the rate and the window, as do those that the recording has lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pytest_drainwatch.core.http import notes
from pytest_drainwatch.core.http.connections import CONNECTIONS_KEPT, by_role, old
from pytest_drainwatch.core.http.document import (
    Answered,
    KindRequests,
    NotServed,
    Requests,
)
from pytest_drainwatch.core.http.ending import LaneKind
from pytest_drainwatch.core.http.failing import failing
from pytest_drainwatch.core.http.fate import FAILED, GONE, SERVED, UNKNOWN, Fate, retry_safe
from pytest_drainwatch.core.http.pieces import Around, Piece, pieces
from pytest_drainwatch.core.http.recorded import Recorded, recorded
from pytest_drainwatch.core.http.whose import Leads
from pytest_drainwatch.core.interval import Bounds, Interval
from pytest_drainwatch.core.jsonvalue import integer, integer_or_none, text
from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.core.probing.binomial import rate_bounds
from pytest_drainwatch.core.probing.document import Rate
from pytest_drainwatch.core.probing.pieces import Surroundings
from pytest_drainwatch.core.transitions import Transition

NOT_SERVED_KEPT = 200


def requests(
    seen: Sequence[Observation], around: Surroundings, changes: Sequence[Transition] = ()
) -> Requests | None:
    """What became of the HTTP requests of a recording; None if there were none."""
    told = recorded(seen)
    return None if told is None else _judged(told, around, seen, changes)


def _judged(
    told: Recorded,
    beside: Surroundings,
    seen: Sequence[Observation],
    changes: Sequence[Transition],
) -> Requests:
    summary = told.told or {}
    method = text(summary.get("method")) or "GET"
    around = Around(
        t0_ns=beside.t0_ns,
        targets=beside.targets.keys(),
        names=beside.names,
        stalls=beside.stalls,
        control=beside.control,
        expected=integer(summary.get("expect_status"), 200),
        method=method,
        patience_ns=integer_or_none(summary.get("timeout_ns")),
    )
    every = pieces(told.runs, around)
    ends = old(told, every, around, Leads(seen, changes, around))
    since = [piece for piece in every if piece.since]
    kinds = [
        kind
        for kind in LaneKind
        if any(run.kind is kind for run in told.runs)
        or any(lane.kind is kind for lane in told.lanes.values())
    ]
    unserved = list(_not_served(since, around))
    return Requests(
        method=method,
        expect_status=around.expected,
        timeout_ns=around.patience_ns,
        kinds=tuple(_kind(kind, told, every, around) for kind in kinds),
        old_connections=by_role(ends, every, around),
        connections=ends[:CONNECTIONS_KEPT],
        connections_left_out=max(0, len(ends) - CONNECTIONS_KEPT),
        not_served=tuple(unserved[:NOT_SERVED_KEPT]),
        not_served_left_out=max(0, len(unserved) - NOT_SERVED_KEPT),
        lost=told.lost,
        late_p99_ns=integer_or_none(summary.get("late_p99_ns")),
        late_max_ns=integer_or_none(summary.get("late_max_ns")),
        notes=tuple(notes.about_all(told, every, ends, around)),
    )


def _kind(kind: LaneKind, told: Recorded, every: Sequence[Piece], around: Around) -> KindRequests:
    mine = [piece for piece in every if piece.run.kind is kind]
    since = [piece for piece in mine if piece.since]
    fates, before = _counted(since), _counted(p for p in mine if not p.since)
    failed = sum(fates[fate] for fate in FAILED)
    served = sum(fates[fate] for fate in SERVED)
    unknown = sum(fates[fate] for fate in UNKNOWN)
    failed_before = sum(before[fate] for fate in FAILED)
    lanes = [lane for lane in told.lanes.values() if lane.kind is kind]
    names = {lane.name for lane in lanes} or {piece.run.lane for piece in mine}
    made = sum(piece.count for piece in mine if piece.fate is not Fate.NOT_SENT)
    missed = [lane.missed_slots for lane in lanes]
    known = [number for number in missed if number is not None]
    missed_slots = sum(known) if told.told is not None and len(known) == len(missed) else None
    repeats = _retries(since, around)
    found = KindRequests(
        kind=kind,
        lanes=len(names),
        planned=_planned(
            made, fates[Fate.NOT_SENT] + before[Fate.NOT_SENT], missed_slots, told.lost
        ),
        missed_slots=missed_slots,
        requests=made,
        attempts=served + failed,
        served=served,
        failed=failed,
        failure_rate=_rate(failed, served + failed, unknown, told.lost),
        fates=_named(fates),
        not_judged=unknown,
        retry_safe=repeats[True],
        not_retry_safe=repeats[False],
        redialled=sum(piece.count for piece in since if piece.run.pool in GONE),
        statuses=dict(sorted(_statuses(since).items())),
        attempts_before=sum(before[fate] for fate in SERVED) + failed_before,
        failed_before=failed_before,
        fates_before=_named(before),
        failing=failing(since, mine, around.t0_ns, lost=told.lost),
        answered_by=tuple(_answered(since, around)),
        slowest_ns=max((p.run.took_max_ns for p in since if p.fate in SERVED), default=None),
    )
    return replace(found, notes=tuple(notes.about(found, since)))


def _planned(made: int, not_sent: int, missed: int | None, lost: int | None) -> int | None:
    """Slots of the whole trial; None unless all of them are told of."""
    return None if missed is None or lost != 0 else made + not_sent + missed


def _counted(found: Iterable[Piece]) -> Counter[Fate]:
    counts = Counter[Fate]()
    for piece in found:
        counts[piece.fate] += piece.count
    return counts


def _named(counts: Counter[Fate]) -> dict[str, int]:
    return {str(fate): counts[fate] for fate in Fate if counts[fate]}


def _rate(failed: int, attempts: int, unknown: int, lost: int | None) -> Rate | None:
    if lost is None or not attempts + unknown + lost:
        return None
    low, high = rate_bounds(failed, attempts, unknown=unknown + lost)
    return Rate(low=low, high=high)


def _retries(since: Iterable[Piece], around: Around) -> Counter[bool]:
    """How many of the failed may be repeated unasked, and how many may not."""
    found = Counter[bool]()
    for piece in since:
        if piece.fate in FAILED:
            found[_safe(piece, around) is True] += piece.count
    return found


def _safe(piece: Piece, around: Around) -> bool | None:
    return retry_safe(piece.fate, method=around.method, received=piece.run.received)


def _statuses(since: Iterable[Piece]) -> Counter[str]:
    found = Counter[str]()
    for piece in since:
        if piece.run.status is not None:
            found[str(piece.run.status)] += piece.count
    return found


def _answered(since: Iterable[Piece], around: Around) -> Iterator[Answered]:
    """Each responder that served, by what it calls itself."""
    served: dict[str, list[Piece]] = {}
    for piece in since:
        if piece.fate in SERVED and piece.run.responder:
            served.setdefault(piece.run.responder, []).append(piece)
    for by in sorted(served):
        its = served[by]
        yield Answered(
            by=by,
            pod_uid=around.pod_of(by),
            role=around.role_of(by),
            requests=sum(piece.count for piece in its),
            first_ns=_since(min((p.began for p in its), key=lambda at: at.lo), around.t0_ns),
            last_ns=_since(max((p.ended for p in its), key=lambda at: at.hi), around.t0_ns),
        )


def _not_served(since: Iterable[Piece], around: Around) -> Iterator[NotServed]:
    """In order, lane by lane alike ones as one."""
    current: dict[str, NotServed] = {}
    done: list[NotServed] = []
    for piece in since:
        run, key = piece.run, piece.run.lane
        was = current.pop(key, None)
        if piece.fate is Fate.SERVED:
            done += [was] if was is not None else []
            continue
        at = _since(piece.hull, around.t0_ns)
        one = NotServed(
            lane=key,
            fate=piece.fate,
            count=piece.count,
            at_ns=at,
            retry_safe=_safe(piece, around),
            status=run.status,
            errno=run.errno,
            by=run.responder or None,
        )
        if was is not None and replace(was, count=one.count, at_ns=at) == one:
            ends = (min(was.at_ns[0], at[0]), max(was.at_ns[1], at[1]))
            one = replace(was, count=was.count + one.count, at_ns=ends)
        elif was is not None:
            done.append(was)
        current[key] = one
    done += current.values()
    yield from sorted(done, key=lambda one: (one.at_ns, one.lane))


def _since(at: Interval, t0_ns: int) -> Bounds:
    shifted = at.since(t0_ns)
    return shifted.lo, shifted.hi
