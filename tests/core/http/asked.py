"""Writing what HTTP lanes met, as the agent would record it: times in ms from t = 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_drainwatch.core.http.ending import Ending, LaneKind, Over, Pool
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Event, Observation
from tests.core import story as s

EPOCH_MS = -10_000
PERIOD_MS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """``count`` requests of a lane in a row, one every period from ``ms`` on."""

    ms: float
    count: int = 1
    ended: Ending = Ending.RESPONSE
    status: int | None = 200
    took_ms: float = 2
    pool: Pool = Pool.REUSED
    connection: int | None = 1
    by: str | None = None
    errno: str | None = None
    said_close: bool = False
    written: bool = True
    received: bool = False
    by_fin: bool = False
    opening: bool = False
    period_ms: float = PERIOD_MS

    @property
    def slot(self) -> int:
        return -1 if self.opening else round((self.ms - EPOCH_MS) / self.period_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A lane's requests, and the ends of its connections."""

    name: str = "keepalive-00"
    asked: Sequence[Asked] = ()
    ends: Sequence[Observation] = field(default=())
    missed: int = 0
    made: int | None = None  # None: as many as are recorded

    @property
    def kind(self) -> LaneKind:
        return LaneKind(self.name.rpartition("-")[0])

    def recorded(self) -> list[Observation]:
        return [*(run(self.name, self.kind, one) for one in self.asked), *self.ends]

    def told(self, period_ms: float = PERIOD_MS) -> Mapping[str, object]:
        mine = [one for one in self.asked if not one.opening and one.ended is not Ending.NOT_SENT]
        grid = {"epoch_ns": s.ns(EPOCH_MS), "period_ns": round(period_ms * NS_PER_MS)}
        throughout = self.kind in (LaneKind.KEEPALIVE, LaneKind.NEW)
        return {
            "lane": self.name,
            "kind": str(self.kind),
            "requests": sum(one.count for one in mine) if self.made is None else self.made,
            "missed_slots": self.missed,
            **(grid if throughout else {}),
        }


def run(lane: str, kind: LaneKind, one: Asked) -> Observation:
    """What the agent writes of them."""
    last_ms = one.ms + (one.count - 1) * one.period_ms
    took_ns = round(one.took_ms * NS_PER_MS)
    whole = one.ended is Ending.RESPONSE
    several = {
        "last_slot": one.slot + one.count - 1,
        "count": one.count,
        "first_ns": s.ns(one.ms),
        "last_ns": s.ns(last_ms),
        "first_took_ns": took_ns,
        "last_took_ns": took_ns,
        "took_min_ns": took_ns,
        "took_max_ns": took_ns,
    }
    data: dict[str, object | None] = {
        "kind": str(kind),
        "ended": str(one.ended),
        "status": one.status if whole else None,
        "pool": None if one.pool is Pool.EMPTY else str(one.pool),
        "written": None if one.written else False,
        "received": one.received or None,
        "by_fin": one.by_fin or None,
        "said_close": one.said_close or None,
        "responder": one.by,
        "errno": one.errno,
        "connection": None if kind is LaneKind.NEW else one.connection,
        "opening": one.opening or None,
        "first_slot": one.slot,
        **(several if one.count > 1 else {}),
    }
    return s.client(
        Event.HTTP_REQUESTS,
        lane,
        s.at(one.ms, last_ms + one.took_ms),
        **{name: value for name, value in data.items() if value is not None},
    )


def end(
    lane: str,
    over: Over,
    ms: float,
    *,
    number: int = 1,
    opened_ms: float = -9000,
    answered: int = 10,
    by: str | None = None,
    width_ms: float = 1,
    local: str = "",
    said_close: bool = False,
    outstanding: bool = False,
) -> Observation:
    """The end of a connection."""
    return s.client(
        Event.HTTP_CONNECTION,
        lane,
        s.at(ms - width_ms, ms),
        connection=number,
        opened_ns=s.ns(opened_ms),
        over=str(over),
        answered=answered,
        **({"responder": by} if by else {}),
        **({"local": local} if local else {}),
        **({"said_close": True} if said_close else {}),
        **({"outstanding": True} if outstanding else {}),
    )


def http(
    *lanes: Lane,
    end_ms: float = 59_990,
    late_ms: float = 1,
    method: str = "GET",
    period_ms: float = PERIOD_MS,
    timeout_ms: float = 5000,
    summary: bool = True,
) -> list[Observation]:
    """All that the agent writes of these lanes."""
    told = s.client(
        Event.HTTP_SUMMARY,
        "",
        s.at(EPOCH_MS, end_ms),
        method=method,
        expect_status=200,
        timeout_ns=round(timeout_ms * NS_PER_MS),
        identity=True,
        lanes=[lane.told(period_ms) for lane in lanes],
        late_p50_ns=50_000,
        late_p99_ns=100_000,
        late_max_ns=round(late_ms * NS_PER_MS),
    )
    seen = [o for lane in lanes for o in lane.recorded()]
    return [*ordered(seen), *([told] if summary else [])]


def ordered(seen: Iterable[Observation]) -> list[Observation]:
    """By the instants at which they became known."""
    return sorted(seen, key=lambda o: o.at.hi)
