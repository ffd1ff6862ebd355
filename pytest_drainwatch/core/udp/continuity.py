"""What a UDP flow went through: a path may break and come back, under the verdict.

The verdict says how a flow ended. Its continuity says what happened around that end,
and after it: *phases* in which one responder answered or nobody did, and the *outages*
between two that answered. It is built from the very steps that led to the verdict, so
the two cannot contradict each other: the outage that the verdict is about began when
the flow ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.core.observation import Event, Observation

# What a one-way flow's history lacks, said by its first line, and by the receipts of a
# pod that may have received more.
NOT_KNOWN, FIRST_RECEIVER, CUT = "not_known", "first_receiver", "cut"


class PhaseKind(StrEnum):
    """What a phase was like."""

    ALIVE = "alive"  # answered by its first responder
    LOST = "lost"  # unanswered, and nothing says why
    REFUSED = "refused"  # unanswered since a "port unreachable"
    UNREACHABLE = "unreachable"  # unanswered since another ICMP error or network error
    NOT_SENT = "not-sent"  # our own machine could not send
    NOT_SEEN = "not-seen"  # our own machine could not look
    RECOVERED = "recovered"  # answered again by whom it was answered before
    REHOMED = "rehomed"  # answered by another responder of the workload
    FOREIGN = "foreign"  # answered by nobody of the workload
    TAKEN_OVER = "taken-over"  # answered by a pod that was never seen: the watch had a gap


ANSWERING = frozenset(
    {
        PhaseKind.ALIVE,
        PhaseKind.RECOVERED,
        PhaseKind.REHOMED,
        PhaseKind.FOREIGN,
        PhaseKind.TAKEN_OVER,
    }
)


class RecoveredBy(StrEnum):
    """Who answered after an outage."""

    SAME = "same"
    ANOTHER = "another"
    FIRST = "first"  # nobody had answered before
    FOREIGN = "foreign"  # no recovery: not, or not known to be, of the workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A stretch of a flow's life; it lasts until the next one begins.

    ``lost`` is None where a run of losses cannot be divided between two phases: it is
    counted in the outage. All counts but ``errors`` are None where a one-way flow's receiver
    may have received more than it told. ``errors`` counts ICMP and socket errors: Linux limits the
    rate of refusals, so few of them do not mean few that were refused.
    """

    kind: PhaseKind
    begins_ns: Bounds
    responder: str | None = None
    first_seq: int | None = None
    last_seq: int | None = None
    answered: int | None = 0
    lost: int | None = 0
    reordered: int | None = 0
    duplicated: int | None = 0
    late: int | None = 0
    errors: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """From the last good exchange to the next one.

    ``began_ns`` lies between the last good send and the first sign that it was the last;
    ``recovered_at_ns`` between the last lost send and the first good reply after it.
    ``gap_ns``, the downtime, is at least the time between the first and the last lost
    send, and at most that between the last good send and the first good reply. ``lost`` is
    None where a one-way flow's receiver may have received more than it told.
    """

    began_ns: Bounds
    recovered_at_ns: Bounds | None
    gap_ns: Bounds | None
    recovered_by: RecoveredBy | None
    before: str | None
    after: str | None
    lost: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuity:
    """A UDP flow's history and totals; times are in ns since t = 0.

    ``sent`` = ``answered`` + ``lost`` + ``late`` + ``open``. *Answered* within a second of
    being overtaken, or in order; ``reordered`` of them after a later one. ``late`` came
    after they had been counted as lost. ``open`` were on their way when the watch ended.
    ``duplicated`` counts further replies to the same request. Of a one-way flow whose pod was
    killed, what was sent between the pod's last word and its end is in none of these. Where
    a one-way flow is not known to its end, counts that are not known are None.

    ``recovered_at_ns``, ``gap_ns`` and ``recovered_by`` are those of the outage at which the
    verdict puts the flow's end, else of the longest; ``note`` says why they, or counts, are None.
    """

    sent: int | None
    unsent: int | None
    answered: int | None
    lost: int | None
    late: int | None
    open: int | None
    reordered: int | None
    duplicated: int | None
    phases: tuple[Phase, ...]
    outages: tuple[Outage, ...]
    recovered_at_ns: Bounds | None
    gap_ns: Bounds | None
    recovered_by: RecoveredBy | None
    note: str | None


def not_known(history: Iterable[Observation]) -> str | None:
    """Why a one-way flow is not known to its end; None if it is, or is answered."""
    return next((str(o.data[NOT_KNOWN]) for o in history if NOT_KNOWN in o.data), None)


def all_answers_known(history: Sequence[Observation]) -> bool:
    """Whether everything that was received of the flow, or answered, is in its history."""
    answers = [o for o in history if o.event is Event.FLOW_ANSWERED]
    return not_known(history) is None or (bool(answers) and not any(CUT in o.data for o in answers))
