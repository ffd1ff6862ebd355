"""Who answered new connections, and how many of them when it was not meant to any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.moments import PodMoments
from pytest_drainwatch.core.probing.document import AnsweredBy
from pytest_drainwatch.core.probing.pieces import Piece, Surroundings
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.stretches import Stretch


def who_answered(pieces: Iterable[Piece], around: Surroundings) -> Iterator[AnsweredBy]:
    """Each pod that answered, by uid."""
    answers: dict[str, list[Piece]] = {}
    for piece in pieces:
        if piece.fate is Result.ANSWERED and piece.run.responder:
            answers.setdefault(piece.run.responder, []).append(piece)
    for uid in sorted(answers):
        pod = around.targets.get(uid)
        found = AnsweredBy(
            pod_uid=uid,
            pod=around.names.get(uid),
            role=Role.TARGET if pod else Role.BYSTANDER,
            attempts=sum(piece.count for piece in answers[uid] if piece.since),
            by_terminating=_after(pod.deletion if pod else None, answers[uid]),
            after_unready=_while_unready(pod, answers[uid]) if pod else None,
        )
        if found.attempts or any(found.by_terminating or ()):
            yield found


def _after(moment: Interval | None, answers: Iterable[Piece]) -> tuple[int, int] | None:
    """How many came after a moment, at least and at most."""
    return None if moment is None else _within([Stretch(opens=moment, closes=None)], answers)


def _while_unready(pod: PodMoments, answers: Iterable[Piece]) -> tuple[int, int] | None:
    """How many came while the pod's endpoint was listed, or last listed, and not ready."""
    return _within(pod.unready, answers) if pod.unready else None


def _within(stretches: Sequence[Stretch], answers: Iterable[Piece]) -> tuple[int, int]:
    """How many came within any of the stretches, at least and at most."""
    least = most = 0
    for piece in answers:
        found = [_part(stretch, piece) for stretch in stretches]
        least += sum(sure for sure, _ in found)
        most += min(piece.count, sum(may for _, may in found))
    return least, most


def _part(stretch: Stretch, piece: Piece) -> tuple[int, int]:
    """How many of a piece came within a stretch: surely, and possibly."""
    run, opens, closes = piece.run, stretch.opens, stretch.closes
    sure = may = piece.first
    sure_end = may_end = piece.end
    if opens is not None:
        sure = max(sure, run.first_begun_after(opens.hi))
        may = max(may, run.first_not_over(opens.lo))
    elif not piece.since:
        return 0, 0
    if closes is not None:
        sure_end = min(sure_end, run.first_not_over(closes.lo))
        may_end = min(may_end, run.first_begun_after(closes.hi))
    return max(0, sure_end - sure), max(0, may_end - may)


def at_least(counts: Iterable[tuple[int, int] | None]) -> int | None:
    """Their lower bounds together; None if one is not known."""
    found = list(counts)
    known = [count for count in found if count is not None]
    return sum(least for least, _ in known) if len(known) == len(found) else None
