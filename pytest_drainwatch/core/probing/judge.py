"""Recorded attempts -> what a report says of new connections.

An attempt failed, or was answered, somewhere between its begin and its result. What is
not known of it counts against certainty and never for it: attempts that are not judged
widen the rate and the window, as do those that the recording has lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.interval import Bounds, Interval
from pytest_drainwatch.core.moments import PodMoments
from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.core.probing.attempts import Prober, Run, probers
from pytest_drainwatch.core.probing.binomial import rate_bounds
from pytest_drainwatch.core.probing.document import (
    FAILED,
    AnsweredBy,
    AttemptRun,
    Doubt,
    Fate,
    NewConnections,
    ObservedFailing,
    Rate,
)
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.stall import Stalls

RUNS_KEPT = 100
# Silence is what a client that cannot look sees of a healthy workload too.
SILENT = frozenset({Result.TIMEOUT, Result.NEVER_SERVED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What attempts are judged by, beside themselves."""

    t0_ns: int
    targets: Mapping[str, PodMoments]
    workload: AbstractSet[str]
    names: Mapping[str, str]
    all_pods_known: bool
    stalls: Stalls


@dataclass(frozen=True, slots=True)
class _Piece:
    """Attempts ``first`` up to ``end`` of a run, which have one fate."""

    run: Run
    first: int
    end: int
    fate: Fate
    since: bool  # t = 0

    @property
    def count(self) -> int:
        return self.end - self.first

    @property
    def began(self) -> Interval:
        """Where the first of them was begun and over."""
        return self.run.hull(self.first, self.first + 1)

    @property
    def ended(self) -> Interval:
        """Where the last of them was begun and over."""
        return self.run.hull(self.end - 1, self.end)


def new_connections(
    seen: Iterable[Observation], around: Surroundings
) -> tuple[NewConnections, ...]:
    """One for each prober; none if no new connections were tried."""
    return tuple(_judged(prober, around) for prober in probers(seen))


def _judged(prober: Prober, around: Surroundings) -> NewConnections:
    pieces = [piece for run in prober.runs for piece in _pieces(run, around)]
    since = [piece for piece in pieces if piece.since]
    results, before = _counts(since), _counts(p for p in pieces if not p.since)
    attempts, failed = _judged_counts(results)
    attempts_before, failed_before = _judged_counts(before)
    doubtful = sum(results[doubt] for doubt in Doubt)
    answered_by = tuple(_answered_by(pieces, around))
    answered = [p for p in since if p.fate is Result.ANSWERED]
    kept, left_out = _condensed(pieces, around.t0_ns)
    found = NewConnections(
        prober=prober.name,
        proto=prober.proto,
        interval_ns=prober.interval_ns,
        source=prober.source,
        attempts=attempts,
        failed=failed,
        failure_rate=_rate(failed, attempts, doubtful, prober.lost),
        results=_named(results),
        not_judged=doubtful,
        lost=prober.lost,
        results_before=_named(before),
        attempts_before=attempts_before,
        failed_before=failed_before,
        observed_failing=_failing(since, prober, around.t0_ns),
        last_answered_ns=_since(answered[-1].ended, around.t0_ns) if answered else None,
        answered_by=answered_by,
        by_terminating=sum(a.by_terminating[0] for a in answered_by if a.by_terminating),
        after_unready=sum(a.after_unready[0] for a in answered_by if a.after_unready),
        missed_slots=prober.missed_slots,
        late_p99_ns=prober.late_p99_ns,
        late_max_ns=prober.late_max_ns,
        runs=kept,
        runs_left_out=left_out,
        notes=tuple(_notes(prober, results, before)),
    )
    return found


def _pieces(run: Run, around: Surroundings) -> Iterator[_Piece]:
    fate: Fate = run.result
    if fate is Result.ANSWERED and around.workload and run.responder not in around.workload:
        fate = Result.FOREIGN if around.all_pods_known else Doubt.STRANGER
    if fate is Result.ANSWERED:
        split = run.first_begun_after(around.t0_ns - 1)
    else:
        split = run.first_not_over(around.t0_ns)
    at = 0
    for first, end in [*_not_seen(run, fate, around.stalls), (run.count, run.count)]:
        for begin, stop, what in ((at, first, fate), (first, end, Doubt.CLIENT_STALL)):
            for lo, hi in ((begin, min(stop, split)), (max(begin, split), stop)):
                if lo < hi:
                    yield _Piece(run, lo, hi, what, lo >= split)
        at = end


def _not_seen(run: Run, fate: Fate, stalls: Stalls) -> Iterator[tuple[int, int]]:
    """The attempts whose failure may be the client's: it was paused, or the machine slept."""
    if fate not in FAILED:
        return
    at = 0
    for pause in stalls.blind(run.hull(0, run.count), asleep=fate not in SILENT):
        first = max(at, run.first_not_over(pause.lo))
        at = max(first, run.first_begun_after(pause.hi))
        yield first, at


def _counts(pieces: Iterable[_Piece]) -> Counter[Fate]:
    found: Counter[Fate] = Counter()
    for piece in pieces:
        found[piece.fate] += piece.count
    return found


def _judged_counts(results: Counter[Fate]) -> tuple[int, int]:
    """Attempts that the workload answered or failed, and those that failed."""
    failed = sum(results[fate] for fate in FAILED)
    return results[Result.ANSWERED] + failed, failed


def _named(results: Counter[Fate]) -> dict[str, int]:
    return {str(fate): number for fate, number in sorted(results.items()) if number}


def _rate(failed: int, attempts: int, doubtful: int, lost: int | None) -> Rate | None:
    if lost is None or attempts + doubtful + lost == 0:
        return None
    low, high = rate_bounds(failed, attempts, unknown=doubtful + lost)
    return Rate(low=low, high=high)


def _failing(since: Sequence[_Piece], prober: Prober, t0_ns: int) -> ObservedFailing | None:
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
    unknown = [p.run.hull(p.first, p.end) for p in since if isinstance(p.fate, Doubt)]
    if prober.lost != 0:
        unknown.append(Interval(min(prober.begun_ns(t0_ns), first.lo), prober.stopped_ns))
    if unknown:
        # Any of these may have failed: before the first that did, or after the last.
        first = Interval(min(first.lo, *(u.lo for u in unknown)), first.hi)
        last = Interval(last.lo, max(last.hi, *(u.hi for u in unknown)))
        lasts = Interval(min(lasts.lo, (last - first).lo), (last - first).hi)
    attempts, failures = _judged_counts(_counts(within))
    return ObservedFailing(
        begun_ns=_since(begun, t0_ns),
        first_ns=_since(first, t0_ns),
        last_ns=_since(last, t0_ns),
        lasts_ns=(lasts.lo, lasts.hi),
        attempts=attempts,
        failures=failures,
    )


def _answered_by(pieces: Iterable[_Piece], around: Surroundings) -> Iterator[AnsweredBy]:
    answers: dict[str, list[_Piece]] = {}
    for piece in pieces:
        if piece.fate is Result.ANSWERED:
            answers.setdefault(piece.run.responder, []).append(piece)
    for uid in sorted(answers):
        pod = around.targets.get(uid)
        found = AnsweredBy(
            pod_uid=uid,
            pod=around.names.get(uid),
            role=Role.TARGET if pod else Role.BYSTANDER,
            attempts=sum(piece.count for piece in answers[uid] if piece.since),
            by_terminating=_after(pod.deletion if pod else None, answers[uid]),
            after_unready=_after(pod.ready_false if pod else None, answers[uid]),
        )
        if found.attempts or any(found.by_terminating or ()):
            yield found


def _after(moment: Interval | None, answers: Iterable[_Piece]) -> tuple[int, int] | None:
    """How many came after a moment, at least and at most."""
    if moment is None:
        return None
    least = most = 0
    for piece in answers:
        least += max(0, piece.end - max(piece.first, piece.run.first_begun_after(moment.hi)))
        most += max(0, piece.end - max(piece.first, piece.run.first_not_over(moment.lo)))
    return least, most


def _condensed(pieces: Iterable[_Piece], t0_ns: int) -> tuple[tuple[AttemptRun, ...], int]:
    """Neighbours with one fate as one run; of very many the first and the last ones."""
    runs: list[AttemptRun] = []
    for piece in pieces:
        at, before = piece.run.hull(piece.first, piece.end).since(t0_ns), runs[-1:]
        if before and (before[0].result, before[0].errno) == (piece.fate, piece.run.errno):
            was = before[0]
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


def _notes(prober: Prober, results: Counter[Fate], before: Counter[Fate]) -> Iterator[str]:
    attempts, failed = _judged_counts(results)
    doubtful = sum(results[doubt] for doubt in Doubt)
    failed_before = _judged_counts(before)[1]
    if failed_before:
        yield f"{failed_before} attempt(s) failed before the trigger: the path was not clean"
    if prober.lost is None:
        yield "the prober's summary is missing: how many attempts were made is not known"
    elif prober.lost:
        yield f"{prober.lost} attempt(s) are missing from the recording: they may have failed"
    if doubtful:
        yield (
            f"{doubtful} attempt(s) are not judged: the client could not look, or did not know "
            "who answered"
        )
    if results[Result.UNFINISHED] + before[Result.UNFINISHED]:
        number = results[Result.UNFINISHED] + before[Result.UNFINISHED]
        yield f"{number} attempt(s) had no result when the prober stopped: they count for neither"
    if not attempts:
        yield "no attempt since the trigger was answered or failed: nothing was measured"
    elif not failed and not doubtful and prober.lost == 0:
        yield "no attempt failed since the trigger"


def _since(at: Interval, t0_ns: int) -> Bounds:
    shifted = at.since(t0_ns)
    return shifted.lo, shifted.hi
