"""A report against the wire: do the packets that ended a flow lie inside its interval?

TCP: the first FIN or RST that the peer sent on the flow.
UDP: a path breaks after the last request that its first responder answered and not
after the next request, which it did not; both must lie inside, and so must the ICMP
error that refused the latter, if the report says that the flow was refused. A capture
on the pods' bridge shows besides when the one reached the old pod, and when the other
reached the new one.

Pure: packets, a translation of their stamps, a recording and its report in; verdicts out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bench.pcap import FIN, RST, Kind, Packet
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.flow.classify import Mechanism
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import Recording
from pytest_drainwatch.core.start import start_of

Place = Callable[[int], Interval]
# Address translation keeps the IP identification and the payload.
Forwarded = Mapping[tuple[int, bytes], Sequence[Packet]]
FORWARDING_NS = 100 * NS_PER_MS  # far more than a node takes

NAMED = {
    "FIN": frozenset({Mechanism.ANNOUNCED_FIN, Mechanism.FIN_UNANNOUNCED}),
    "RST": frozenset({Mechanism.ANNOUNCED_RST, Mechanism.RST}),
}

_REQUEST = re.compile(rb"(?:ping|hello) (\d+)\n")
_REPLY = re.compile(rb"pong (\d+) \d+ \d+ ([!-.0-~]+)/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the report says about the end of a flow; ``end`` on the harness's clock."""

    flow: str
    proto: Proto
    mechanism: Mechanism
    client: tuple[str, int]
    end: Interval | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """A packet that belongs to the end of a flow, and when it passed."""

    what: str
    at: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A claim beside its evidence. ``fault`` says what is wrong, None if all is covered."""

    claim: Claim
    evidence: tuple[Evidence, ...]
    fault: str | None

    @property
    def width_ns(self) -> int | None:
        """How wide the reported interval is."""
        return None if self.claim.end is None else self.claim.end.width

    @property
    def error_ns(self) -> int | None:
        """The shown value (the upper bound) minus the last evidence."""
        if self.claim.end is None or not self.evidence:
            return None
        return self.claim.end.hi - self.evidence[-1].at.lo

    @property
    def slack_ns(self) -> int | None:
        """How long before the first evidence the interval begins."""
        if self.claim.end is None or not self.evidence:
            return None
        return self.evidence[0].at.lo - self.claim.end.lo

    @property
    def named_right(self) -> bool | None:
        """Whether a FIN or RST is what the report calls it; None for anything else."""
        kinds = {evidence.what for evidence in self.evidence} & NAMED.keys()
        return self.claim.mechanism in NAMED[kinds.pop()] if kinds else None

    def __str__(self) -> str:
        seen = ", ".join(f"{e.what} at {e.at}" for e in self.evidence) or "nothing"
        return (
            f"{self.claim.flow} ({self.claim.mechanism}): {self.fault or 'covered'}; "
            f"reported {self.claim.end}, on the wire {seen}"
        )


def judge(
    recording: Recording,
    report: Report,
    packets: Iterable[Packet],
    place: Place,
    inside: Iterable[Packet] = (),
) -> tuple[Verdict, ...]:
    """A verdict on every flow that ended, in the report or on the wire.

    ``packets`` passed the harness's interface, ``inside`` the pods' bridge.
    """
    wires = _wires(packets)
    forwarded: dict[tuple[int, bytes], list[Packet]] = {}
    for packet in inside:
        if packet.kind is Kind.UDP:
            forwarded.setdefault((packet.ident, packet.payload), []).append(packet)
    return tuple(
        verdict
        for claim in claims(recording, report)
        if (
            verdict := _verdict(
                claim, wires.get((claim.proto, claim.client), _Wire()), place, forwarded
            )
        )
    )


def claims(recording: Recording, report: Report) -> Iterator[Claim]:
    """Every flow of the report with its client's address."""
    t0_ns = start_of(recording.observations).t0_ns
    clients = {
        seen.subject: _address(str(seen.data["local"]))
        for seen in recording.observations
        if seen.event is Event.FLOW_CONNECTED
    }
    for flow in report.trial.flows:
        end = flow.terminal_ns
        yield Claim(
            flow=flow.id,
            proto=flow.proto,
            mechanism=flow.mechanism,
            client=clients[flow.id],
            end=None if end is None else Interval(end[0] + t0_ns, end[1] + t0_ns),
        )


@dataclass(slots=True)
class _Wire:
    """The packets of one flow, in the capture's order."""

    sent: list[Packet] = field(default_factory=list)
    received: list[Packet] = field(default_factory=list)
    refused: list[Packet] = field(default_factory=list)


def _wires(packets: Iterable[Packet]) -> dict[tuple[Proto, tuple[str, int]], _Wire]:
    """Sort packets by flow: a packet may be of the flow of either of its ends."""
    wires: dict[tuple[Proto, tuple[str, int]], _Wire] = {}
    for packet in packets:
        if packet.kind is Kind.ICMP:
            wires.setdefault((Proto.UDP, packet.source), _Wire()).refused.append(packet)
            continue
        proto = Proto.TCP if packet.kind is Kind.TCP else Proto.UDP
        wires.setdefault((proto, packet.source), _Wire()).sent.append(packet)
        wires.setdefault((proto, packet.destination), _Wire()).received.append(packet)
    return wires


def _verdict(claim: Claim, wire: _Wire, place: Place, forwarded: Forwarded) -> Verdict | None:
    tcp = claim.proto is Proto.TCP
    evidence = tuple(_tcp(wire, place) if tcp else _udp(claim, wire, place, forwarded))
    if claim.end is None:
        # An unanswered last request is no end: the agent just stopped.
        ended = bool(evidence) and (tcp or _moved(wire))
        fault = "ended on the wire only" if ended else None
        return Verdict(claim=claim, evidence=evidence, fault=fault) if ended else None
    if not evidence:
        return Verdict(claim=claim, evidence=(), fault="not covered: no packet ends it")
    outside = [e.what for e in evidence if e.at.intersect(claim.end) is None]
    fault = f"not covered: {' and '.join(outside)} outside" if outside else None
    return Verdict(claim=claim, evidence=evidence, fault=fault)


def _tcp(wire: _Wire, place: Place) -> Iterator[Evidence]:
    ours = next((p.at_ns for p in wire.sent if p.flags & (FIN | RST)), None)
    for packet in wire.received:
        if packet.flags & (FIN | RST):
            if ours is None or packet.at_ns < ours:
                yield Evidence("RST" if packet.flags & RST else "FIN", place(packet.at_ns))
            return


def _udp(claim: Claim, wire: _Wire, place: Place, forwarded: Forwarded) -> Iterator[Evidence]:
    answers = _answers(wire.received)
    if not answers:
        return
    first = answers[0][1]
    last_seq = max(seq for seq, responder in answers if responder == first)
    requests = [(seq, p) for p in wire.sent if (seq := _number(_REQUEST, p)) is not None]
    served = next((p for seq, p in requests if seq == last_seq), None)
    lost = next((p for seq, p in requests if seq > last_seq), None)
    if served is None or lost is None:
        return
    yield Evidence("last request served", place(served.at_ns))
    old = _forwarded(served, forwarded)
    if old is not None:
        yield Evidence("its arrival at the old pod", place(old.at_ns))
    yield Evidence("first request not served", place(lost.at_ns))
    new = _forwarded(lost, forwarded)
    if old is not None and new is not None and new.destination != old.destination:
        yield Evidence("its arrival at the new pod", place(new.at_ns))
    if claim.mechanism in (Mechanism.REFUSED, Mechanism.UNREACHABLE):
        # One for a later request came after the end that it proves.
        error = next((p for p in wire.refused if p.ident == lost.ident), None)
        if error is not None:
            yield Evidence("its ICMP error", place(error.at_ns))


def _forwarded(request: Packet, forwarded: Forwarded) -> Packet | None:
    """The same request on the pods' bridge."""
    for packet in forwarded.get((request.ident, request.payload), ()):
        if 0 <= packet.at_ns - request.at_ns < FORWARDING_NS:
            return packet
    return None


def _moved(wire: _Wire) -> bool:
    return len({responder for _, responder in _answers(wire.received)}) > 1


def _answers(packets: Sequence[Packet]) -> list[tuple[int, bytes]]:
    """Sequence number and responder's pod of every reply."""
    matches = (_REPLY.match(packet.payload) for packet in packets)
    return [(int(match[1]), match[2]) for match in matches if match]


def _number(pattern: re.Pattern[bytes], packet: Packet) -> int | None:
    match = pattern.fullmatch(packet.payload)
    return int(match[1]) if match else None


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)
