"""What a UDP flow went through: a path may break and come back, under the verdict.

The verdict says how a flow ended. Its continuity says what happened around that end,
and after it: *phases* in which one responder answered or nobody did, and the *outages*
between two that answered. It is built from the very steps that led to the verdict, so
the two cannot contradict each other: the outage that the verdict is about began when
the flow ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

Bounds = tuple[int, int]


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
    counted in the outage. ``errors`` counts ICMP and socket errors: Linux limits the
    rate of refusals, so few of them do not mean few that were refused.
    """

    kind: PhaseKind
    begins_ns: Bounds
    responder: str | None = None
    first_seq: int | None = None
    last_seq: int | None = None
    answered: int = 0
    lost: int | None = 0
    reordered: int = 0
    duplicated: int = 0
    late: int = 0
    errors: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """From the last good exchange to the next one.

    ``began_ns`` lies between the last good send and the first sign that it was the last;
    ``recovered_at_ns`` between the last lost send and the first good reply after it.
    ``gap_ns``, the downtime, is at least the time between the first and the last lost
    send, and at most that between the last good send and the first good reply.
    """

    began_ns: Bounds
    recovered_at_ns: Bounds | None
    gap_ns: Bounds | None
    recovered_by: RecoveredBy | None
    before: str | None
    after: str | None
    lost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuity:
    """A UDP flow's history and totals; times are in ns since t = 0.

    ``sent`` = ``answered`` + ``lost`` + ``late`` + ``open``. *Answered* within a second of
    being overtaken, or in order; ``reordered`` of them after a later one. ``late`` came
    after they had been counted as lost. ``open`` were on their way when the watch ended.
    ``duplicated`` counts further replies to the same request. Of a one-way flow whose pod was
    killed, what was sent between the pod's last word and its end is in none of these.

    ``recovered_at_ns``, ``gap_ns`` and ``recovered_by`` are those of the outage at which the
    verdict puts the flow's end, else of the longest; ``note`` says why they are None.
    """

    sent: int | None
    unsent: int | None
    answered: int
    lost: int
    late: int
    open: int
    reordered: int
    duplicated: int
    phases: tuple[Phase, ...]
    outages: tuple[Outage, ...]
    recovered_at_ns: Bounds | None
    gap_ns: Bounds | None
    recovered_by: RecoveredBy | None
    note: str | None
