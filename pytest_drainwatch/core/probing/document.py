"""What a report says of new connections: values, with the field names of report.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.core.probing.result import Result


class Doubt(StrEnum):
    """Why an attempt that was tried is not judged; beside the results (probing/result)."""

    CLIENT_STALL = "client-stall"  # unanswered, and we could not look for much of that time
    STRANGER = "stranger"  # answered, and by whom is not known: the pods' watch had a gap


# Whatever became of these, it is not known.
UNKNOWN = frozenset({*Doubt, Result.UNFINISHED})
FAILED = frozenset(
    {
        Result.REFUSED,
        Result.RESET,
        Result.TIMEOUT,
        Result.NEVER_SERVED,
        Result.UNREACHABLE,
        Result.FOREIGN,
    }
)

Fate = Result | Doubt


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Exact bounds (Clopper-Pearson) of a rate from 0 to 1.

    Where none failed, or all, one bound is in question, and it is a one-sided one of 95 %; where
    some did both are, a two-sided interval of 95 %. As what was seen chooses between the two,
    an interval holds the truth in 92.5 % of all trials at least.
    """

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedEvery:
    """The attempts since t = 0 that were tried at one interval, of which a plan has two.

    The fields are those of :class:`NewConnections`; of attempts that are lost the interval is
    not known, and ``failure_rate`` holds even if all were of this one. ``planned_slots`` are
    those since t = 0, tried or missed: the time that the rate of all weighs this one with.
    None: the recording does not tell.
    """

    interval_ns: int | None
    attempts: int
    failed: int
    not_judged: int
    failure_rate: Rate | None
    planned_slots: int | None = None
    missed_slots: int | None = None  # in the whole trial


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredBy:
    """Attempts since t = 0 that one pod answered.

    The counts of those after its deletion timestamp, and while its endpoint was not ready,
    have bounds: when exactly that was is known within bounds. None: it was not seen.
    """

    pod_uid: str
    pod: str | None
    role: Role
    attempts: int
    by_terminating: tuple[int, int] | None = None
    after_unready: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedFailing:
    """From the first failed attempt since t = 0 to the last one, in ns since t = 0.

    An attempt failed somewhere between its begin and its result; the failed ones that were
    seen were begun from ``begun_ns[0]`` to ``begun_ns[1]``. ``attempts`` are those judged
    from the first to the last, ``failures`` those of them that failed.
    """

    begun_ns: Bounds
    first_ns: Bounds
    last_ns: Bounds
    lasts_ns: Bounds
    attempts: int
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRun:
    """Attempts in a row with one fate, whoever answered: ``at_ns`` holds all of them."""

    result: str
    errno: str | None
    count: int
    at_ns: Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class NewConnections:
    """What one prober met.

    ``attempts`` are those since t = 0 that the workload answered or failed; ``results``
    names their fates, and apart from them those that say nothing about the workload:
    ``client-limit``, which it never met, and what is ``not_judged`` because nobody knows what
    became of it: ``unfinished``, ``client-stall``, ``stranger``. An attempt that was
    under way at t = 0 belongs to the time since if it failed, and before if it was answered;
    ``*_before`` count those.
    ``address`` is what was connected to, and ``node`` the name of the node whose address that
    is; None: not known.
    ``failure_rate`` holds whatever became of the attempts that are not judged or lost. It is
    of time: where attempts are ``interval_ns`` apart in some stretches of the plan and further
    in others (``by_interval``), each of these counts by its planned slots, and counts do not.

    ``by_terminating`` counts answers of target pods that surely came after their deletion
    timestamps, and ``after_unready`` while they were not ready: at least so many; the bounds
    stand in ``answered_by``. None: of a target that answered it is not known.
    ``last_answered_ns`` is the last attempt that was answered.
    ``missed_slots`` and ``late_*`` are of the whole trial; ``lost`` attempts were made and
    are not in the recording (None: it does not tell how many were made).
    """

    prober: str
    proto: Proto
    interval_ns: int | None
    source: str | None
    attempts: int
    failed: int
    failure_rate: Rate | None
    results: Mapping[str, int]
    not_judged: int = 0
    lost: int | None = None
    results_before: Mapping[str, int] = field(default_factory=dict)
    attempts_before: int = 0
    failed_before: int = 0
    observed_failing: ObservedFailing | None = None
    last_answered_ns: Bounds | None = None
    answered_by: tuple[AnsweredBy, ...] = ()
    by_terminating: int | None = 0
    after_unready: int | None = 0
    missed_slots: int | None = None
    late_p99_ns: int | None = None
    late_max_ns: int | None = None
    runs: tuple[AttemptRun, ...] = ()
    runs_left_out: int = 0
    by_interval: tuple[TriedEvery, ...] = ()
    notes: tuple[str, ...] = ()
    address: str | None = None
    node: str | None = None
