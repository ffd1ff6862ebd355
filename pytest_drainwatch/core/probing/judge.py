"""Recorded attempts -> what a report says of new connections.

An attempt failed, or was answered, somewhere between its begin and its result. What is
not known of it counts against certainty and never for it: attempts that are not judged
widen the rate and the window, as do those that the recording has lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Bounds, Interval
from pytest_drainwatch.core.probing import counts
from pytest_drainwatch.core.probing.answers import at_least, who_answered
from pytest_drainwatch.core.probing.attempts import Prober, Run
from pytest_drainwatch.core.probing.document import (
    FAILED,
    UNKNOWN,
    AnsweredBy,
    AttemptRun,
    NewConnections,
    ObservedFailing,
    TriedEvery,
)
from pytest_drainwatch.core.probing.pieces import Piece, Surroundings, Tried
from pytest_drainwatch.core.probing.result import Result

RUNS_KEPT = 100
# Linux forgets a TCP connection that is over, or that nobody answered, within two minutes.
PORTS_REST_NS = 120 * NS_PER_S


def new_connections(tried: Iterable[Tried], around: Surroundings) -> tuple[NewConnections, ...]:
    """One for each prober."""
    return tuple(_judged(each.prober, each.pieces, around) for each in tried)


def _judged(prober: Prober, pieces: Sequence[Piece], around: Surroundings) -> NewConnections:
    since = [piece for piece in pieces if piece.since]
    counted = counts.by_every((piece, piece.count) for piece in since)
    earlier = ((piece, piece.count) for piece in pieces if not piece.since)
    results, before = counts.in_all(counted), counts.in_all(counts.by_every(earlier))
    attempts, failed = counts.judged(results)
    attempts_before, failed_before = counts.judged(before)
    answered_by = tuple(who_answered(pieces, around))
    targets = [found for found in answered_by if found.role is Role.TARGET]
    answered = [p for p in since if p.fate is Result.ANSWERED]
    planned = prober.plan.since(around.t0_ns) if prober.plan else {}
    kept, left_out = _condensed(pieces, around.t0_ns, whole=prober.lost == 0)
    found = NewConnections(
        prober=prober.name,
        proto=prober.proto,
        interval_ns=prober.interval_ns,
        source=prober.source,
        address=prober.address,
        node=prober.node,
        attempts=attempts,
        failed=failed,
        failure_rate=counts.rate(counted, prober.lost, planned=planned, sparsest=prober.sparsest),
        results=_named(results),
        not_judged=counts.doubtful(results),
        lost=prober.lost,
        results_before=_named(before),
        attempts_before=attempts_before,
        failed_before=failed_before,
        observed_failing=_failing(since, prober, around.t0_ns),
        last_answered_ns=_since(answered[-1].ended, around.t0_ns) if answered else None,
        answered_by=answered_by,
        by_terminating=None if around.anonymous else at_least(a.by_terminating for a in targets),
        after_unready=None if around.anonymous else at_least(a.after_unready for a in targets),
        missed_slots=prober.missed_slots,
        late_p99_ns=prober.late_p99_ns,
        late_max_ns=prober.late_max_ns,
        runs=kept,
        runs_left_out=left_out,
        by_interval=tuple(_by_interval(prober, counted, planned)),
        notes=(
            *_notes(prober, results, before),
            *_weighed(prober, counted, planned),
            *_about(prober, pieces, targets, around),
        ),
    )
    return found


def _by_interval(
    prober: Prober, counted: Mapping[int, counts.Counts], planned: Mapping[int, int]
) -> Iterator[TriedEvery]:
    missed = prober.plan.missed() if prober.plan else {}
    for every in sorted(counted.keys() | planned.keys()):
        results = counted.get(every, counts.Counts())
        attempts, failed = counts.judged(results)
        yield TriedEvery(
            interval_ns=None if prober.interval_ns is None else prober.interval_ns * every,
            attempts=attempts,
            failed=failed,
            not_judged=counts.doubtful(results),
            failure_rate=counts.rate({every: results}, prober.lost, sparsest=every),
            planned_slots=planned.get(every, 0) if prober.plan else None,
            missed_slots=missed.get(every),
        )


def _weighed(
    prober: Prober, counted: Mapping[int, counts.Counts], planned: Mapping[int, int]
) -> Iterator[str]:
    densities = sorted(counted.keys() | planned.keys())
    if len(densities) < 2 or prober.interval_ns is None:
        return
    apart = " or ".join(f"{prober.interval_ns * every / NS_PER_MS:g} ms" for every in densities)
    yield (
        f"attempts are {apart} apart, as the plan has it: failure_rate weighs them by the time "
        "that each stands for, and counts do not"
    )
    if prober.missed_slots:
        yield (
            f"{prober.missed_slots} slot(s) were missed: failure_rate takes what those tried at "
            "the same interval met for them too"
            if prober.plan
            else f"{prober.missed_slots} slot(s) were missed and the recording does not tell "
            "where: failure_rate leaves their time out"
        )


def _named(results: counts.Counts) -> dict[str, int]:
    return {str(fate): number for fate, number in sorted(results.items()) if number}


def _failing(since: Sequence[Piece], prober: Prober, t0_ns: int) -> ObservedFailing | None:
    places = [n for n, piece in enumerate(since) if piece.fate in FAILED]
    if not places:
        return None
    within = since[places[0] : places[-1] + 1]
    failed = [piece for piece in within if piece.fate in FAILED]
    first = Interval(min(p.began.lo for p in failed), min(p.began.hi for p in failed))
    last = Interval(max(p.ended.lo for p in failed), max(p.ended.hi for p in failed))
    begun = Interval(first.lo, max(last.lo, first.lo))
    one = sum(piece.count for piece in failed) == 1
    lasts = Interval.point(0) if one else last - first
    unknown = [p.run.hull(p.first, p.end) for p in since if p.fate in UNKNOWN]
    if prober.lost != 0:
        unknown.append(Interval(min(prober.begun_ns(t0_ns), first.lo), prober.stopped_ns))
    if unknown:
        # Any of these may have failed: before the first that did, or after the last.
        first = Interval(min(first.lo, *(u.lo for u in unknown)), first.hi)
        last = Interval(last.lo, max(last.hi, *(u.hi for u in unknown)))
        lasts = Interval(min(lasts.lo, (last - first).lo), (last - first).hi)
    attempts, failures = counts.judged(
        counts.in_all(counts.by_every((piece, piece.count) for piece in within))
    )
    return ObservedFailing(
        begun_ns=_since(begun, t0_ns),
        first_ns=_since(first, t0_ns),
        last_ns=_since(last, t0_ns),
        lasts_ns=(lasts.lo, lasts.hi),
        attempts=attempts,
        failures=failures,
    )


def _condensed(
    pieces: Iterable[Piece], t0_ns: int, *, whole: bool
) -> tuple[tuple[AttemptRun, ...], int]:
    """Neighbours with one fate as one run; of very many the first and the last ones.

    Unless the recording is ``whole``, attempts that it lost may be between two runs.
    """
    runs: list[AttemptRun] = []
    last: Run | None = None
    for piece in pieces:
        at = piece.run.hull(piece.first, piece.end).since(t0_ns)
        near = whole or last is None or piece.run is last or _follows(piece.run, last)
        last = piece.run
        was = runs[-1] if runs and near else None
        if was and (was.result, was.errno) == (piece.fate, piece.run.errno):
            runs[-1] = AttemptRun(
                result=was.result,
                errno=was.errno,
                count=was.count + piece.count,
                at_ns=(min(was.at_ns[0], at.lo), max(was.at_ns[1], at.hi)),
            )
        else:
            runs.append(
                AttemptRun(
                    result=str(piece.fate),
                    errno=piece.run.errno,
                    count=piece.count,
                    at_ns=(at.lo, at.hi),
                )
            )
    left_out = max(0, len(runs) - RUNS_KEPT)
    if left_out:
        runs = [*runs[: RUNS_KEPT // 2], *runs[-RUNS_KEPT // 2 :]]
    return tuple(runs), left_out


def _follows(run: Run, before: Run) -> bool:
    """Whether no slot lies between two runs."""
    return run.first_slot == before.last_slot + before.every and run.every == before.every


def _notes(prober: Prober, results: counts.Counts, before: counts.Counts) -> Iterator[str]:
    attempts, failed = counts.judged(results)
    doubtful = counts.doubtful(results)
    failed_before = counts.judged(before)[1]
    if failed_before:
        yield f"{failed_before} attempt(s) failed before the trigger: the path was not clean"
    if prober.lost is None:
        yield "the prober's summary is missing: how many attempts were made is not known"
    elif prober.lost:
        yield f"{prober.lost} attempt(s) are missing from the recording: they may have failed"
    if doubtful:
        yield (
            f"{doubtful} attempt(s) are not judged: the client could not look, did not know who "
            "answered, or stopped before there was a result"
        )
    if not attempts:
        yield "no attempt since the trigger was answered or failed: nothing was measured"
    elif not failed and not doubtful and prober.lost == 0:
        yield "no attempt failed since the trigger"


def _about(
    prober: Prober, pieces: Sequence[Piece], targets: Sequence[AnsweredBy], around: Surroundings
) -> Iterator[str]:
    """What must be known of how it was tried, and by whom it was answered."""
    if not around.control and any(found.by_terminating is None for found in targets):
        yield "by_terminating is null: no deletion of a target pod that answered was seen"
    if not around.control and any(found.after_unready is None for found in targets):
        yield "after_unready is null: no ready:false of a target pod that answered was seen"
    if around.anonymous:
        yield (
            "answers do not say who gives them: by_terminating and after_unready are null, and "
            "answered_by is empty"
        )
        return
    before = {p.run.responder for p in pieces if p.fate is Result.ANSWERED and not p.since}
    if around.pinned and before and not before & around.targets.keys():
        yield (
            "session affinity pins this prober to a pod that is no target: before the trigger no "
            "target answered it, so what new connections of others meet it cannot tell"
        )
    if prober.ports_round_ns is not None and prober.ports_round_ns < PORTS_REST_NS:
        yield (
            f"a source port is used again after {prober.ports_round_ns / NS_PER_S:.0f} s: an "
            "attempt may meet what conntrack still holds of the one before it"
        )


def _since(at: Interval, t0_ns: int) -> Bounds:
    shifted = at.since(t0_ns)
    return shifted.lo, shifted.hi
