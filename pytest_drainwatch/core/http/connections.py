"""What became of the pooled connections that were open at t = 0, and who went on using them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.flow.classify import Outcome, Role
from pytest_drainwatch.core.http.document import ConnectionEnd, How, OldConnections
from pytest_drainwatch.core.http.ending import Ending, LaneKind, Over
from pytest_drainwatch.core.http.fate import SERVED, Fate
from pytest_drainwatch.core.http.pieces import Around, Piece
from pytest_drainwatch.core.http.recorded import Connection, Recorded
from pytest_drainwatch.core.http.whose import Leads
from pytest_drainwatch.core.interval import Bounds, Interval

CONNECTIONS_KEPT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What was served on one connection after t = 0, and when the last of it was."""

    served: int = 0
    last: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What requests on one connection tell of it: whether one was answered after t = 0, with what
    one that we gave up ended, and who answered, the first one first.
    """

    since: bool
    gave_up: Fate | None
    by: Sequence[str]


def old(
    told: Recorded, pieces: Sequence[Piece], around: Around, leads: Leads
) -> tuple[ConnectionEnd, ...]:
    """Each pooled connection that was open at t = 0 and had served, by lane and number."""
    used, t0_ns = _used(pieces, around.t0_ns), around.t0_ns
    kinds, responders = {run.lane: run.kind for run in told.runs}, told.responders
    since = {
        (run.lane, run.connection)
        for run in told.runs
        if run.ended is Ending.RESPONSE and run.last_ns + run.last_took_ns > t0_ns
    }
    gave_up = {
        (each.run.lane, each.run.connection): each.fate
        for each in pieces
        if each.run.ended is Ending.TIMEOUT
    }

    def heard(one: Connection) -> Heard:
        key = (one.lane, one.number)
        by = responders.get(key, (one.responder,))
        return Heard(since=key in since, gave_up=gave_up.get(key), by=by)

    return tuple(
        _end(one, used.get((one.lane, one.number), Used()), heard(one), around, leads)
        for one in sorted(told.connections, key=lambda one: (one.lane, one.number))
        if kinds.get(one.lane) is not LaneKind.NEW
        and one.opened_ns < t0_ns <= one.at.hi
        and one.answered
    )


def by_role(
    ends: Sequence[ConnectionEnd], pieces: Iterable[Piece], around: Around
) -> tuple[OldConnections, ...]:
    """The same, counted for each role."""
    used = _used(pieces, around.t0_ns)
    found = []
    for role in (Role.TARGET, Role.BYSTANDER, None):
        mine = [one for one in ends if one.role is role]
        if not mine:
            continue
        last = [
            at
            for one in mine
            if (at := used.get((one.lane, one.connection), Used()).last) is not None
        ]
        gone = [one.ended_ns for one in mine]
        known = [at for at in gone if at is not None]
        found.append(
            OldConnections(
                role=role,
                connections=len(mine),
                served_after=sum(one.served_after for one in mine),
                last_served_ns=_latest([(at.lo, at.hi) for at in last], around.t0_ns),
                gone_ns=_latest(known, 0) if len(known) == len(gone) else None,
                outcomes=dict(sorted(Counter(str(one.outcome) for one in mine).items())),
            )
        )
    return tuple(found)


def _used(pieces: Iterable[Piece], t0_ns: int) -> Mapping[tuple[str, int], Used]:
    """By lane and number: requests that were surely begun after t = 0 and served."""
    found: dict[tuple[str, int], Used] = {}
    for piece in pieces:
        run = piece.run
        if piece.fate not in SERVED or run.connection is None:
            continue
        first = max(piece.first, run.first_begun_after(t0_ns))
        if first < piece.end:
            key, before = (run.lane, run.connection), found.get((run.lane, run.connection), Used())
            last = run.hull(piece.end - 1, piece.end)
            if before.last is not None and before.last.hi > last.hi:
                last = before.last
            found[key] = Used(served=before.served + piece.end - first, last=last)
    return found


def _end(one: Connection, used: Used, heard: Heard, around: Around, leads: Leads) -> ConnectionEnd:
    first, whose = heard.by[0], leads.whose(one, heard.by)
    outcome, how = outcome_of(one, heard)
    if around.stalls.slept(one.at) and outcome is Outcome.SEVERED:
        outcome, how = Outcome.NOT_MEASURED, How.CLIENT_STALL
    at = None if one.over is Over.OPEN else around.stalls.widen(one.at).since(around.t0_ns)
    return ConnectionEnd(
        lane=one.lane,
        connection=one.number,
        role=whose.role,
        pod_uid=whose.uid,
        known_by=whose.by,
        by=first or None,
        opened_ns=one.opened_ns - around.t0_ns,
        outcome=outcome,
        how=how,
        ended_ns=None if at is None else (at.lo, at.hi),
        served_after=used.served,
        responders=len(heard.by) if first else 0,
    )


def outcome_of(one: Connection, heard: Heard) -> tuple[Outcome, How]:
    """Drained if the last response said Connection: close, or the FIN was read while no
    request was outstanding and before any write; whatever else the peer did is severed.

    One that is open has survived only if somebody answered on it since: those into a black hole
    are open as well.
    """
    if one.over is Over.OPEN:
        if heard.since and not one.outstanding:
            return Outcome.SURVIVED, How.NONE
        return Outcome.NOT_MEASURED, How.UNHEARD
    if one.said_close and not one.outstanding:
        return Outcome.DRAINED, How.CONNECTION_CLOSE
    if one.over is Over.FIN:
        if one.outstanding:
            return Outcome.SEVERED, How.FIN_OUTSTANDING
        return Outcome.DRAINED, How.FIN_IDLE
    if one.over is Over.RST:
        return Outcome.SEVERED, How.RST_OUTSTANDING if one.outstanding else How.RST_IDLE
    if heard.gave_up is Fate.CLIENT_STALL:
        return Outcome.NOT_MEASURED, How.CLIENT_STALL
    if one.over is Over.READ_ERROR or heard.gave_up is not None:
        return Outcome.READ_TIMEOUT, How.TIMEOUT
    return Outcome.NOT_MEASURED, How.CLIENT


def _latest(ends: Sequence[Bounds], t0_ns: int) -> Bounds | None:
    """When the last of them was, since t = 0."""
    if not ends:
        return None
    return max(lo for lo, _ in ends) - t0_ns, max(hi for _, hi in ends) - t0_ns
