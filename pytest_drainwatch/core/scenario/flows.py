"""The connections of a trial: those that are held, and the new ones that are tried."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario.values import ScenarioError, check_kind, check_within

TCP_SPARSE_RATE_HZ = 5
UDP_SPARSE_RATE_HZ = 10
PROBE_INTERVAL_NS = 5 * NS_PER_MS
# Between the times that matter a new connection tells that all is well, and no window's edge.
PROBE_SPARSE_EVERY = 10
PROBE_SPARSE_NS = 100 * NS_PER_MS  # and no longer than this, unless asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """The connections held: how many, and how often each of them sends (Hz).

    Beside them new connections are tried, one every ``probe_interval_ns`` (TCP), and one from
    a fresh source port every ``udp_probe_interval_ns`` (UDP); None tries none.

    Rates and intervals are those around the times that are known beforehand (core.plan);
    elsewhere flows send at the sparse rates, which by default are lower where the rates
    allow it, and of the new connections each ``probe_sparse_every``-th is tried: 1 is all of
    them throughout the trial, and None each tenth, or as many as make no more than 100 ms.
    ``probe_each_node`` tries TCP at the NodePort of each node, and not of one alone.
    """

    tcp: int = 10
    udp: int = 10
    tcp_rate_hz: int = 20
    udp_rate_hz: int = 60
    tcp_sparse_rate_hz: int | None = None
    udp_sparse_rate_hz: int | None = None
    udp_one_way: int = 0  # further UDP flows that expect no answer; pods say what they received
    probe_interval_ns: int | None = PROBE_INTERVAL_NS
    udp_probe_interval_ns: int | None = None
    probe_sparse_every: int | None = None
    probe_each_node: bool = False

    @property
    def sparse_rates_hz(self) -> tuple[int, int]:
        """The rates of TCP and UDP in sparse stretches."""
        tcp, udp = self.tcp_sparse_rate_hz, self.udp_sparse_rate_hz
        return (
            min(TCP_SPARSE_RATE_HZ, self.tcp_rate_hz) if tcp is None else tcp,
            min(UDP_SPARSE_RATE_HZ, self.udp_rate_hz) if udp is None else udp,
        )

    def sparse_every(self, interval_ns: int) -> int:
        """Of new connections ``interval_ns`` apart each so many-th is tried where it is sparse."""
        if self.probe_sparse_every is not None:
            return self.probe_sparse_every
        return max(1, min(PROBE_SPARSE_EVERY, PROBE_SPARSE_NS // interval_ns))

    @property
    def probe_sparse_intervals_ns(self) -> tuple[int | None, int | None]:
        """How far apart new connections of TCP and UDP are where it is sparse; None: none."""
        tcp, udp = self.probe_interval_ns, self.udp_probe_interval_ns
        return (
            None if tcp is None else tcp * self.sparse_every(tcp),
            None if udp is None else udp * self.sparse_every(udp),
        )

    def unusual(self) -> dict[str, object]:
        """What a report says of it only where it is asked for."""
        return {"probe_each_node": True} if self.probe_each_node else {}

    def check(self) -> None:
        """Refuse values that cannot be, alone or together. Raises :class:`ScenarioError`."""
        check_within("tcp flows", self.tcp, 0, 20_000)
        check_within("udp flows", self.udp, 0, 20_000)
        check_within("one-way udp flows", self.udp_one_way, 0, 1024)  # what a probe tells apart
        check_within("tcp_rate_hz", self.tcp_rate_hz, 1, 1000)
        check_within("udp_rate_hz", self.udp_rate_hz, 1, 1000)
        sparse_tcp_hz, sparse_udp_hz = self.sparse_rates_hz
        check_within("tcp_sparse_rate_hz", sparse_tcp_hz, 1, self.tcp_rate_hz)
        check_within("udp_sparse_rate_hz", sparse_udp_hz, 1, self.udp_rate_hz)
        for name in ("probe_interval_ns", "udp_probe_interval_ns"):
            if (interval_ns := getattr(self, name)) is not None:
                check_within(name, interval_ns, NS_PER_MS, 60 * NS_PER_S)
        check_kind("probe_each_node", self.probe_each_node, bool)
        if self.probe_each_node and self.probe_interval_ns is None:
            raise ScenarioError(
                "probe_each_node is True and probe_interval_ns None: nothing is tried; expected "
                "an interval, or probe_each_node False"
            )
        if self.probe_sparse_every is not None:
            check_within("probe_sparse_every", self.probe_sparse_every, 1, 1000)
