"""A real trial with tcpdump beside: on the link to the node, and on the pods' bridge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench import pcap
from bench.pcap import Packet
from bench.tcpdump import Tcpdump, interface_towards
from bench.truth import Verdict, judge
from bench.wallclock import Translation, WallClock
from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.cluster.embedded.cluster import EmbeddedCluster
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.jsonvalue import integer
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import Recording, loads
from pytest_drainwatch.standing import Standing
from pytest_drainwatch.trial import Trial, hold, measure
from pytest_drainwatch.workload.manifests import UDP_PORT

BRIDGE = "cni0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnessed:
    """A measured trial, and what the wire says about its flows."""

    trial: Trial
    recording: Recording
    link: tuple[Packet, ...]  # between the harness and the node
    bridge: tuple[Packet, ...]  # between the node and its pods, where we can look
    place: Translation
    verdicts: tuple[Verdict, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdicts", self.judge(self.trial.report))

    def judge(self, report: Report) -> tuple[Verdict, ...]:
        """A verdict on every flow that ended, by ``report`` or by the wire."""
        return judge(self.recording, report, self.link, self.place, inside=self.bridge)

    @property
    def longest_round_trip_ns(self) -> int:
        """Of all UDP flows: what a lost request may add to the width of an end."""
        return max(
            (
                integer(seen.data.get("rtt_max_ns"))
                for seen in self.recording.observations
                if seen.event is Event.FLOW_ANSWERED and seen.subject.startswith(Proto.UDP)
            ),
            default=0,
        )

    @property
    def faults(self) -> list[str]:
        """Each flow whose interval does not hold what the wire shows."""
        return [str(verdict) for verdict in self.verdicts if verdict.fault]


def witness(probe: Standing, folder: Path) -> Witnessed:
    """Hold flows to a deployed probe and measure it, captured.

    Raises :class:`~bench.tcpdump.CaptureError`, :class:`~bench.wallclock.ClockStepped`,
    and what a trial raises.
    """
    clock = WallClock()
    try:
        with ExitStack() as stack:
            captures = [stack.enter_context(capture) for capture in _captures(probe, folder)]
            held = stack.enter_context(hold(probe))
            trial = measure(held)
    finally:
        pairs = clock.close()
    link, *bridge = (tuple(pcap.read(capture.file)) for capture in captures)
    return Witnessed(
        trial=trial,
        recording=loads((trial.folder / "recording.jsonl").read_text(encoding="utf-8")),
        link=link,
        bridge=bridge[0] if bridge else (),
        place=Translation(pairs),
    )


def _captures(probe: Standing, folder: Path) -> Iterator[Tcpdump]:
    """The ends of TCP flows and all of UDP: the kernel says nothing at a UDP flow's end."""
    cluster, ports = probe.stage.cluster, probe.way
    ends = f"tcp[tcpflags] & (tcp-fin|tcp-rst) != 0 and port {ports.tcp}"
    assert cluster.node_address is not None, "it is a cluster of our own"
    link = interface_towards(cluster.node_address)
    wanted = f"({ends}) or (udp and port {ports.udp}) or icmp"
    yield Tcpdump(link, wanted, folder / "link.pcap")
    inside = _into(cluster)
    if inside:
        wanted = f"udp and dst port {UDP_PORT}"
        yield Tcpdump(BRIDGE, wanted, folder / "bridge.pcap", prefix=inside)


def _into(cluster: Cluster) -> tuple[str, ...]:
    """The command that leads into the node's network namespace, where there is one."""
    if not isinstance(cluster, EmbeddedCluster):
        return ()
    node = cluster.layout.node_pid.read_text().strip()
    return ("nsenter", f"--net=/proc/{node}/ns/net", "--")
