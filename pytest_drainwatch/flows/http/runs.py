"""The books of a lane: requests in the order of their slots, alike ones in one line.

A run holds times of its first and its last request; those between lie in the slots between. It
ends after a while even if nothing changes, so that a killed agent loses little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytest_drainwatch.core.http.ending import Ending, LaneKind, Pool
from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.flows.http.request import Request

LONGEST_RUN_NS = 10 * NS_PER_S

Way = tuple[object, ...]


@dataclass(slots=True)
class _Run:
    """Requests that went the same way; the fields are those of ``http_requests``."""

    way: Way
    first: Request
    last: Request
    count: int
    took_min_ns: int
    took_max_ns: int
    known_ns: int  # when all of them had ended


class Runs:
    """The books of one lane."""

    def __init__(self, lane: str, kind: LaneKind, emit: Callable[[Observation], None]) -> None:
        self._lane, self._kind, self._emit = lane, kind, emit
        self._run: _Run | None = None

    def add(self, one: Request) -> None:
        """The next request, in the order of slots."""
        run, way, known_ns = self._run, self._way(one), one.begun_ns + one.took_ns
        if (
            run is None
            or way != run.way
            or one.slot != run.last.slot + 1
            or one.begun_ns - run.first.begun_ns >= LONGEST_RUN_NS
        ):
            self.close()
            self._run = _Run(way, one, one, 1, one.took_ns, one.took_ns, known_ns)
            return
        run.last = one
        run.count += 1
        run.took_min_ns = min(run.took_min_ns, one.took_ns)
        run.took_max_ns = max(run.took_max_ns, one.took_ns)
        run.known_ns = max(run.known_ns, known_ns)

    def close(self) -> None:
        """Write the run that is open."""
        run, self._run = self._run, None
        if run is not None:
            self._emit(
                Observation(
                    source=Source.CLIENT,
                    event=Event.HTTP_REQUESTS,
                    at=Interval(run.first.begun_ns, run.known_ns),
                    subject=self._lane,
                    data=self._told(run),
                )
            )

    def _way(self, one: Request) -> Way:
        """What requests of one run have in common."""
        return (
            one.ended,
            one.pool,
            one.written > 0,
            one.received > 0,
            one.status,
            one.said_close,
            one.by_fin,
            one.responder,
            one.errno,
            one.connection,
            one.opening,
        )

    def _told(self, run: _Run) -> dict[str, object]:
        """The fields that tell something."""
        one, last = run.first, run.last
        whole = one.ended is Ending.RESPONSE
        told: dict[str, object] = {
            "kind": self._kind,
            "ended": one.ended,
            "status": one.status,
            "pool": None if one.pool is Pool.EMPTY else one.pool,
            "written": None if one.written else False,
            "received": True if one.received and not whole else None,
            "said_close": one.said_close or None,
            "by_fin": one.by_fin or None,
            "responder": one.responder,
            "errno": one.errno,
            "connection": one.connection,
            "opening": one.opening or None,
            "first_slot": one.slot,
        }
        if run.count == 1:
            late = one.written_ns is not None and one.dialled
            told["written_ns"] = one.written_ns if late else None
        else:
            told |= {
                "last_slot": last.slot,
                "count": run.count,
                "first_ns": one.begun_ns,
                "last_ns": last.begun_ns,
                "first_took_ns": one.took_ns,
                "last_took_ns": last.took_ns,
                "took_min_ns": run.took_min_ns,
                "took_max_ns": run.took_max_ns,
            }
        return {name: value for name, value in told.items() if value is not None}
