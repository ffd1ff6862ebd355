"""What a prober is told to try."""

from __future__ import annotations

from dataclasses import dataclass, fields
from ipaddress import IPv6Address, ip_address

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.flows.fields import (
    ConfigError,
    check_address,
    check_number,
    check_object,
    check_present,
    check_same_family,
)
from pytest_drainwatch.flows.plain import Exchange, parse_exchange

PROTOS = ("tcp", "udp")
MOST_PROBERS = 64  # of one proto
MOST_SPARSE = 60_000  # 1 ms apart where it is dense, a minute elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class ProberConfig:
    """A new connection to ``address`` every ``interval_ns``, each given up after ``patience_ns``.

    Where the plan is sparse only each ``sparse_every``-th slot is tried; 1: all of them.
    ``number`` tells it from others of its protocol, and ``node`` is the name of the node whose
    address it is; None: not known.

    The patience is a second because Linux sends a lost SYN again after a second: who is
    answered later than that has lost its first one. Such an attempt is a timeout, however
    long the patience.
    """

    proto: str
    address: str
    port: int
    interval_ns: int
    source_address: str | None = None
    patience_ns: int = NS_PER_S
    sparse_every: int = 1
    number: int = 1
    node: str | None = None
    exchange: Exchange | None = None  # what is said to a workload of the user's

    @property
    def subject(self) -> str:
        """What its observations are about."""
        return f"{self.proto}-new" if self.number == 1 else f"{self.proto}-new-{self.number}"

    @property
    def open_at_once(self) -> int:
        """So many attempts may wait for their result, each with a descriptor and a port."""
        return self.patience_ns // self.interval_ns + 1

    def attempts_per_s(self, *, dense: bool) -> float:
        """How many are made in a second."""
        return NS_PER_S / (self.interval_ns * (1 if dense else self.sparse_every))


def parse_probers(raw: object) -> tuple[ProberConfig, ...]:
    """The probers of a configuration. Raises :class:`ConfigError`."""
    if not isinstance(raw, list):
        raise ConfigError(f"probers is {str(raw)[:80]}; expected a list")
    probers = tuple(_prober(f"probers[{number}]", one) for number, one in enumerate(raw))
    subjects = [prober.subject for prober in probers]
    if len(set(subjects)) < len(subjects):
        raise ConfigError(
            f"probers are {', '.join(subjects)}; expected one per proto and number at most"
        )
    return probers


def _prober(name: str, raw: object) -> ProberConfig:
    known = check_object(name, raw, {f.name for f in fields(ProberConfig)})
    check_present(name, known, {"proto", "address", "port", "interval_ns"})
    if known["proto"] not in PROTOS:
        raise ConfigError(f"{name}.proto is {known['proto']!r}; expected tcp or udp")
    check_address(f"{name}.address", known["address"])
    known["address"] = _one_host(f"{name}.address", known["address"])
    source = known.get("source_address")
    check_same_family(f"{name}.source_address", source, f"{name}.address", known["address"])
    if source is not None:
        known["source_address"] = _one_host(f"{name}.source_address", source)
    check_number("port", known, 1, 65535, prefix=f"{name}.")
    check_number("interval_ns", known, NS_PER_MS, 60 * NS_PER_S, prefix=f"{name}.")
    check_number("sparse_every", known, 1, MOST_SPARSE, prefix=f"{name}.")
    check_number("number", known, 1, MOST_PROBERS, prefix=f"{name}.")
    node = known.get("node")
    if node is not None and (not isinstance(node, str) or not node):
        raise ConfigError(f"{name}.node is {node!r}; expected a text or null")
    check_number("patience_ns", known, 10 * NS_PER_MS, 60 * NS_PER_S, prefix=f"{name}.")
    if known.get("exchange") is not None:
        known["exchange"] = parse_exchange(f"{name}.exchange", known["exchange"])
    return ProberConfig(**known)  # type: ignore[arg-type]


def _one_host(name: str, value: object) -> str:
    """An address that is one host's, as sockets name it. Raises :class:`ConfigError`.

    Others are refused by each attempt, or lead elsewhere than to where they say.
    """
    address = ip_address(str(value))
    odd = address.is_multicast or address.is_unspecified or address == ip_address("255.255.255.255")
    if isinstance(address, IPv6Address):
        # One with a scope is looked up, which blocks; one of IPv4 has another error queue.
        odd = odd or address.is_link_local or address.ipv4_mapped is not None
        odd = odd or address.scope_id is not None
    if odd:
        raise ConfigError(
            f"{name} is {value!r}; expected the address of one host, without a scope: not "
            "link-local, multicast, unspecified or IPv4 in IPv6"
        )
    return str(address)
