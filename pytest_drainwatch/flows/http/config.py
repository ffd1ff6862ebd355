"""What the agent is told to ask over HTTP."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from ipaddress import ip_address
from typing import Self

from pytest_drainwatch.core.http.ending import LaneKind
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.scenario.http import Http
from pytest_drainwatch.core.scenario.values import ScenarioError
from pytest_drainwatch.flows.fields import (
    ConfigError,
    check_address,
    check_number,
    check_object,
    check_present,
    check_same_family,
)

# A lane's requests may wait for their answers at once, each on a connection of its own.
MOST_OPEN = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConfig:
    """Requests to ``address``; the fields are those of
    :class:`~pytest_drainwatch.core.scenario.http.Http`, ``host`` always given.
    """

    address: str
    port: int
    path: str = field(repr=False)  # a query may be a token
    method: str
    host: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    expect_status: int
    keepalive: int
    idle: int
    in_flight: int
    new: int
    rate_hz: int
    idle_within_ns: int
    in_flight_path: str | None = field(repr=False)
    in_flight_ns: int
    timeout_ns: int
    identity_header: str | None
    source_address: str | None = None

    @classmethod
    def of(cls, http: Http, *, address: str, port: int, source_address: str | None = None) -> Self:
        """The requests of a scenario, to that address."""
        shown = f"[{address}]" if ":" in address else address
        return cls(
            address=address,
            port=port,
            source_address=source_address,
            host=http.host if http.host is not None else f"{shown}:{port}",
            headers=http.pairs,
            **{name: getattr(http, name) for name in _SHARED - {"headers"}},
        )

    @property
    def period_ns(self) -> int:
        """How far apart the slots of a lane are."""
        return NS_PER_S // self.rate_hz

    @property
    def numbers(self) -> dict[LaneKind, int]:
        """How many lanes there are of each kind."""
        return {
            LaneKind.KEEPALIVE: self.keepalive,
            LaneKind.IDLE: self.idle,
            LaneKind.IN_FLIGHT: self.in_flight,
            LaneKind.NEW: self.new,
        }

    @property
    def lanes(self) -> int:
        """How many there are."""
        return sum(self.numbers.values())

    @property
    def open_per_lane(self) -> int:
        """So many requests of one lane may wait at once."""
        return min(MOST_OPEN, self.timeout_ns // self.period_ns + 2)

    @property
    def open_at_once(self) -> int:
        """So many connections may be open at once, each with a descriptor and a port."""
        # One that is idle, or in flight, has its opening and the one before it beside it.
        return (self.keepalive + self.new) * self.open_per_lane + 3 * (self.idle + self.in_flight)

    @property
    def sends_per_s(self) -> float:
        """How many are made in a second, about, as the agent's sends are counted: each as two.

        One takes some 300 us of a core, more than the guard of real time allows a send
        (limits.py): 21 % at 500 a second, 59 % at 2000.
        """
        return 2.0 * (self.keepalive + self.new) * self.rate_hz


_SHARED = {f.name for f in fields(Http)} - {"host"}


def parse_http(raw: object) -> HttpConfig:
    """The requests of a configuration. Raises :class:`ConfigError`, without header values."""
    known = check_object("http", raw, {f.name for f in fields(HttpConfig)})
    check_present("http", known, {"address", "port"})
    check_address("http.address", known["address"])
    check_number("port", known, 1, 65535, prefix="http.")
    source = known.get("source_address")
    check_same_family("http.source_address", source, "http.address", known["address"])
    told = {name: value for name, value in known.items() if name in _SHARED}
    try:
        http = Http(host=known.get("host"), **told)  # type: ignore[arg-type]
        http.check()
    except ScenarioError as error:
        what, _, expected = str(error).partition(", expected ")
        raise ConfigError(f"{what}; expected {expected}" if expected else what) from None
    return HttpConfig.of(
        http,
        address=str(ip_address(str(known["address"]))),  # as sockets name it
        port=known["port"],  # type: ignore[arg-type]
        source_address=None if source is None else str(source),
    )
