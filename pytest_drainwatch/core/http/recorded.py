"""Recorded requests, connections, and the lanes that they were made on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self, TypeVar

from pytest_drainwatch.core.coded import CodedRun, Schedule
from pytest_drainwatch.core.http.ending import Ending, LaneKind, Over, Pool
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.jsonvalue import integer, integer_or_none, objects, text
from pytest_drainwatch.core.observation import Event, Observation

E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """What the summary tells of one lane; slot ``n`` lies at ``epoch_ns + n * period_ns``.

    Of a lane that asks but once after the trigger the last two are None.
    """

    name: str
    kind: LaneKind
    requests: int | None
    missed_slots: int | None
    epoch_ns: int | None
    period_ns: int | None

    @classmethod
    def read(cls, told: Mapping[str, object]) -> Self | None:
        kind = member(LaneKind, told.get("kind"))
        name = text(told.get("lane"))
        if kind is None or not name:
            return None
        period_ns = integer_or_none(told.get("period_ns"))
        return cls(
            name=name,
            kind=kind,
            requests=integer_or_none(told.get("requests")),
            missed_slots=integer_or_none(told.get("missed_slots")),
            epoch_ns=integer_or_none(told.get("epoch_ns")),
            period_ns=period_ns if period_ns and period_ns > 0 else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(CodedRun):
    """``count`` requests of a lane, in the order of their slots, that went the same way.

    ``connection`` is the lane's number of the connection that they went over; None: one each,
    which served nothing else.
    ``opening``: to open a connection that is to be idle, or to see whether anybody answers.
    """

    lane: str
    kind: LaneKind
    ended: Ending
    pool: Pool
    written: bool
    received: bool
    by_fin: bool  # the response had no length: the connection's end was its own
    status: int | None
    said_close: bool
    responder: str
    errno: str | None
    connection: int | None
    opening: bool
    first_took_ns: int
    last_took_ns: int
    took_max_ns: int
    known_ns: int  # all of them had ended by then

    @classmethod
    def read(cls, seen: Observation, lanes: Mapping[str, Lane], late_ns: int | None) -> Self | None:
        """The run that was recorded; None if it cannot be one."""
        data = seen.data
        kind, ended = member(LaneKind, data.get("kind")), member(Ending, data.get("ended"))
        alone = "count" not in data
        count = 1 if alone else integer_or_none(data.get("count"))
        if kind is None or ended is None or count is None or count < 1:
            return None
        first_ns = integer(data.get("first_ns"), seen.at.lo)
        first_slot = integer(data.get("first_slot"), 0)
        known_ns = max(0, seen.at.hi - first_ns)
        took_max_ns = integer(data.get("took_max_ns"), known_ns)
        run = cls(
            lane=seen.subject,
            kind=kind,
            ended=ended,
            pool=member(Pool, data.get("pool")) or Pool.EMPTY,
            written=data.get("written") is not False,
            received=data.get("received") is True,
            by_fin=data.get("by_fin") is True,
            status=integer_or_none(data.get("status")),
            said_close=data.get("said_close") is True,
            responder=text(data.get("responder")),
            errno=text(data.get("errno")) or None,
            connection=integer_or_none(data.get("connection")),
            opening=data.get("opening") is True,
            first_slot=first_slot,
            last_slot=integer(data.get("last_slot"), first_slot + count - 1),
            count=count,
            first_ns=first_ns,
            last_ns=integer(data.get("last_ns"), first_ns if count == 1 else seen.at.hi),
            first_took_ns=integer(data.get("first_took_ns"), took_max_ns),
            last_took_ns=integer(data.get("last_took_ns"), took_max_ns),
            took_max_ns=took_max_ns,
            known_ns=max(seen.at.hi, first_ns),
            schedule=_schedule(lanes.get(seen.subject), late_ns),
        )
        took = (run.first_took_ns, run.last_took_ns)
        ordered = run.first_ns <= run.last_ns and run.last_slot - run.first_slot >= count - 1
        return run if ordered and 0 <= min(took) <= max(took) <= took_max_ns else None

    def over_hi(self, k: int) -> int:
        """How request ``k`` ended was known by then; never falls with ``k``."""
        if k == 0:
            return self.begun_hi(k) + self.first_took_ns
        return min(self.known_ns, self.begun_hi(k) + self.took_max_ns)

    def hull(self, first: int, end: int) -> Interval:
        """A stretch that holds the requests from ``first`` up to ``end``, without that one."""
        lo = self.begun_lo(first)
        alone = first == end - 1 == self.count - 1
        hi = self.last_ns + self.last_took_ns if alone else self.over_hi(end - 1)
        return Interval(lo, max(lo, hi))


def _schedule(lane: Lane | None, late_ns: int | None) -> Schedule | None:
    if lane is None or lane.epoch_ns is None or lane.period_ns is None or late_ns is None:
        return None
    return Schedule(epoch_ns=lane.epoch_ns, period_ns=lane.period_ns, late_ns=max(0, late_ns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One connection's life. ``outstanding``: a request was under way when it ended."""

    lane: str
    number: int
    opened_ns: int
    at: Interval
    over: Over
    local: str  # address:port
    answered: int
    said_close: bool
    outstanding: bool
    responder: str
    errno: str | None

    @classmethod
    def read(cls, seen: Observation) -> Self | None:
        data = seen.data
        over, number = member(Over, data.get("over")), integer_or_none(data.get("connection"))
        opened_ns = integer_or_none(data.get("opened_ns"))
        if over is None or number is None or opened_ns is None:
            return None
        return cls(
            lane=seen.subject,
            number=number,
            opened_ns=opened_ns,
            at=seen.at,
            over=over,
            local=text(data.get("local")),
            answered=integer(data.get("answered"), 0),
            said_close=data.get("said_close") is True,
            outstanding=data.get("outstanding") is True,
            responder=text(data.get("responder")),
            errno=text(data.get("errno")) or None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """All that a recording tells of HTTP. ``told``: the summary's own fields, if there is one."""

    lanes: Mapping[str, Lane]
    runs: tuple[Run, ...]
    connections: tuple[Connection, ...]
    told: Mapping[str, object] | None
    unreadable: int

    @property
    def lost(self) -> int | None:
        """Requests that were made and are in no run; None: nobody tells how many were made."""
        made = {name: lane.requests for name, lane in self.lanes.items()}
        booked = Counter[str]()
        for run in self.runs:
            if not run.opening and run.ended is not Ending.NOT_SENT:
                booked[run.lane] += run.count
        known = {name: number for name, number in made.items() if number is not None}
        if self.told is None or known.keys() < made.keys() or booked.keys() - made.keys():
            return None
        # Lane by lane: what one has too many is not what another lacks.
        return sum(max(0, number - booked[name]) for name, number in known.items())

    @property
    def responders(self) -> Mapping[tuple[str, int], Sequence[str]]:
        """By lane and number of a connection who answered on it, the first one first."""
        found: dict[tuple[str, int], list[str]] = {}
        for run in sorted(self.runs, key=lambda each: each.first_ns):
            if run.connection is not None and run.responder:
                names = found.setdefault((run.lane, run.connection), [])
                names += [run.responder] if run.responder not in names else []
        return found


def recorded(seen: Iterable[Observation]) -> Recorded | None:
    """What a recording tells of HTTP requests; None if none were made."""
    requests: list[Observation] = []
    closed: list[Observation] = []
    summary: Observation | None = None
    for o in seen:
        if o.event is Event.HTTP_REQUESTS:
            requests.append(o)
        elif o.event is Event.HTTP_CONNECTION:
            closed.append(o)
        elif o.event is Event.HTTP_SUMMARY:
            summary = o
    if not requests and summary is None:
        return None
    told = summary.data if summary is not None else {}
    read = (Lane.read(one) for one in objects(told.get("lanes")))
    lanes = {lane.name: lane for lane in read if lane is not None}
    late_ns = integer_or_none(told.get("late_max_ns"))
    runs = [Run.read(o, lanes, late_ns) for o in requests]
    ends = [Connection.read(o) for o in closed]
    return Recorded(
        lanes=lanes,
        runs=tuple(run for run in runs if run is not None),
        connections=tuple(end for end in ends if end is not None),
        told=None if summary is None else told,
        unreadable=runs.count(None) + ends.count(None),
    )


def member(kind: type[E], value: object) -> E | None:
    """The member that a text names; None for anything else."""
    try:
        return kind(text(value))
    except ValueError:
        return None
