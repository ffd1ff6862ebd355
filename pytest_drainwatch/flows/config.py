"""What the agent is told to do: the first line on its stdin, checked field by field."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path

from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.flows.fields import (
    ConfigError,
    check_address,
    check_number,
    check_object,
    check_present,
    check_same_family,
)
from pytest_drainwatch.flows.http.config import HttpConfig, parse_http
from pytest_drainwatch.flows.plain import Exchange, parse_exchange
from pytest_drainwatch.flows.probing.config import ProberConfig, parse_probers

MAX_FLOWS = 50_000
MAX_RATE_HZ = 1000
MAX_STRETCHES = 64
MAX_NS = 2**63 - 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where flows of one protocol go, and how many of them."""

    address: str
    port: int
    flows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """The agent's task. ``record`` is its own part of the recording.

    With a ``target`` (a pod UID) it dials on until as many flows as asked for are
    answered by that pod, and keeps up to ``max_extra`` that others answer.
    The rates are those of the dense stretches, and hold until a plan says where those
    are; elsewhere it then sends at the sparse rates, which are the same if not given.
    ``udp_one_way`` flows send at the rates of UDP and expect no answer, so the target has
    no say in them. ``probers`` try new connections beside the flows, once these are held, and
    ``http`` makes requests.
    """

    record: str
    tcp: Endpoint | None = None
    udp: Endpoint | None = None
    udp_one_way: Endpoint | None = None
    target: str | None = None
    source_address: str | None = None
    tcp_rate_hz: float = 20
    udp_rate_hz: float = 60
    tcp_sparse_rate_hz: float | None = None
    udp_sparse_rate_hz: float | None = None
    dial_timeout_ns: int = 20 * NS_PER_S
    max_extra: int = 64
    probers: tuple[ProberConfig, ...] = ()
    http: HttpConfig | None = None
    plain: Exchange | None = None  # what flows say to a workload of the user's; None: the probe's
    agents: int = 1  # that run on this machine at a time, this one among them

    @property
    def wanted(self) -> int:
        """How many flows are asked for, of all kinds."""
        return sum(end.flows for end in (self.tcp, self.udp, self.udp_one_way) if end is not None)

    @property
    def open_attempts(self) -> int:
        """How many attempts of probers, and HTTP connections, may be open at once."""
        requests = self.http.open_at_once if self.http is not None else 0
        return sum(prober.open_at_once for prober in self.probers) + requests

    def rate_hz(self, proto: str, *, dense: bool) -> float:
        """How often a flow of that transport sends."""
        most = self.tcp_rate_hz if proto == "tcp" else self.udp_rate_hz
        sparse = self.tcp_sparse_rate_hz if proto == "tcp" else self.udp_sparse_rate_hz
        return most if dense or sparse is None else sparse

    def sends_per_s(self, *, dense: bool) -> float:
        """How many requests go out a second, and attempts, each of which counts as one; one of
        HTTP counts as two.
        """
        ends = (("tcp", self.tcp), ("udp", self.udp), ("udp", self.udp_one_way))
        sends = sum(end.flows * self.rate_hz(proto, dense=dense) for proto, end in ends if end)
        requests = self.http.sends_per_s if self.http is not None else 0
        return sends + requests + sum(p.attempts_per_s(dense=dense) for p in self.probers)

    def all_sends_per_s(self, *, dense: bool) -> float:
        """The same of all agents, as if each were in such a stretch now: what the real-time
        guard goes by (limits.py).
        """
        return self.agents * self.sends_per_s(dense=dense)


def parse_config(line: str) -> AgentConfig:
    """Read the configuration. Raises :class:`ConfigError`."""
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the configuration is not JSON: {error}; got {line[:80]!r}") from None
    known = check_object("the configuration", raw, {f.name for f in fields(AgentConfig)})
    for name in ("tcp", "udp", "udp_one_way"):
        if known.get(name) is not None:
            known[name] = _endpoint(name, known[name])
    if known.get("plain") is not None:
        known["plain"] = parse_exchange("plain", known["plain"])
    if "probers" in known:
        known["probers"] = parse_probers(known["probers"])
    if known.get("http") is not None:
        known["http"] = parse_http(known["http"])
    if not any(known.get(name) for name in ("tcp", "udp", "udp_one_way", "probers", "http")):
        raise ConfigError(
            "neither tcp nor udp nor a prober nor http is given; expected one at least"
        )
    record = known.get("record")
    if not isinstance(record, str) or not record:
        raise ConfigError(f"record is {record!r}; expected the path of the recording part")
    if not Path(record).parent.is_dir():
        raise ConfigError(f"record is {record!r}; expected an existing folder to write it in")
    for name in ("target", "source_address"):
        value = known.get(name)
        if value is not None and (not isinstance(value, str) or not value):
            raise ConfigError(f"{name} is {value!r}; expected a text or null")
    for name in ("tcp_rate_hz", "udp_rate_hz"):
        check_number(name, known, 0.01, MAX_RATE_HZ, (int, float))
    check_number("dial_timeout_ns", known, 0, 3600 * NS_PER_S)
    check_number("max_extra", known, 0, MAX_FLOWS)
    check_number("agents", known, 1, 1000)
    config = AgentConfig(**known)  # type: ignore[arg-type]
    for proto in ("tcp", "udp"):
        name = f"{proto}_sparse_rate_hz"
        if known.get(name) is not None:
            check_number(name, known, 0.01, config.rate_hz(proto, dense=True), (int, float))
    if config.wanted == 0 and not config.probers and config.http is None:
        raise ConfigError(
            "0 flows and no prober are asked for, and no HTTP requests; expected one at least"
        )
    _same_family(config)
    return config


def parse_plan(raw: object) -> tuple[Interval, ...]:
    """The dense stretches of a plan: ``[lo, hi]`` pairs on CLOCK_MONOTONIC, in order, apart.

    Raises :class:`ConfigError`.
    """
    if not isinstance(raw, list) or len(raw) > MAX_STRETCHES:
        raise ConfigError(f"dense is {str(raw)[:80]}; expected a list of up to {MAX_STRETCHES}")
    stretches: list[Interval] = []
    for pair in raw:
        after = stretches[-1].hi if stretches else -1
        if not (
            isinstance(pair, list)
            and [type(bound) for bound in pair] == [int, int]
            and after < pair[0] < pair[1] <= MAX_NS
        ):
            raise ConfigError(
                f"dense holds {str(pair)[:80]}; expected [lo_ns, hi_ns], whole numbers, "
                f"{after} < lo_ns < hi_ns"
            )
        stretches.append(Interval(*pair))
    return tuple(stretches)


def parse_trigger(raw: object) -> int | None:
    """When the trigger will be sent, on CLOCK_MONOTONIC. Raises :class:`ConfigError`."""
    if raw is None or (type(raw) is int and 0 < raw <= MAX_NS):
        return raw
    raise ConfigError(f"trigger_ns is {str(raw)[:80]}; expected a whole number of ns, or null")


def _endpoint(name: str, raw: object) -> Endpoint:
    wanted = {f.name for f in fields(Endpoint)}
    known = check_object(name, raw, wanted)
    check_present(name, known, wanted)
    check_address(f"{name}.address", known["address"])
    check_number("port", known, 1, 65535, prefix=f"{name}.")
    check_number("flows", known, 0, MAX_FLOWS, prefix=f"{name}.")
    return Endpoint(**known)  # type: ignore[arg-type]


def _same_family(config: AgentConfig) -> None:
    source = config.source_address
    if source is not None:
        check_address("source_address", source)
    ends = {"tcp": config.tcp, "udp": config.udp, "udp_one_way": config.udp_one_way}
    for name, end in ends.items():
        if end is not None:
            check_same_family("source_address", source, f"{name}.address", end.address)
