"""The judge of the instrument: what it must call covered, and what it must not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.pcap import FIN, RST, Kind, Packet
from bench.truth import Verdict, judge
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.recording import Recording
from tests.core import story as s

CLIENT, NODE = ("198.18.0.1", 40000), ("198.18.0.8", 31000)
OLD_POD, NEW_POD = ("10.244.0.5", 7002), ("10.244.0.6", 7002)
TCP, UDP = "tcp-0001", "udp-0001"
MASQUERADED = ("10.244.0.1", 50000)


def known(ns: int) -> Interval:
    """A wall clock that shows the monotonic one, for once."""
    return Interval.point(ns)


def connected(flow: str) -> Observation:
    seen = s.connected(flow)
    return replace(seen, data={**seen.data, "local": f"{CLIENT[0]}:{CLIENT[1]}"})


def alive(flow: str, until: float) -> list[Observation]:
    return [connected(flow), *s.alive(flow, until)[1:]]


def ended_tcp(event: Event | None) -> Recording:
    """A flow that ended within [5040, 5041] ms, or none did."""
    end = [] if event is None else [s.client(event, TCP, s.at(5040, 5041), errno="ECONNRESET")]
    still = [] if end else [s.client(Event.FLOW_OPEN_AT_END, TCP, s.at(5999))]
    return s.recording([s.accepted()], alive(TCP, 5039), end, still, s.cluster())


def segment(ms: float, flags: int, *, ours: bool = False) -> Packet:
    source, destination = (CLIENT, NODE) if ours else (NODE, CLIENT)
    return Packet(
        at_ns=s.ns(ms),
        kind=Kind.TCP,
        source=source,
        destination=destination,
        ident=1,
        flags=flags,
    )


def verdicts(
    recording: Recording, *packets: Packet, inside: tuple[Packet, ...] = ()
) -> list[Verdict]:
    return [*judge(recording, derive(recording), packets, known, inside)]


@pytest.mark.parametrize(("event", "flag"), [(Event.FLOW_FIN, FIN), (Event.FLOW_RESET, RST)])
@pytest.mark.parametrize("ms", [5040, 5040.5, 5041])
def test_a_tcp_end_inside_is_covered(event: Event, flag: int, ms: float) -> None:
    late = segment(5041.5, RST)  # only the first one ends a flow
    (verdict,) = verdicts(ended_tcp(event), segment(ms, flag), late)
    assert verdict.fault is None
    assert verdict.named_right
    assert verdict.width_ns == 1_000_000
    assert verdict.error_ns == s.ns(5041) - s.ns(ms)


@pytest.mark.parametrize(("event", "flag"), [(Event.FLOW_FIN, RST), (Event.FLOW_RESET, FIN)])
def test_an_end_of_another_kind_is_told(event: Event, flag: int) -> None:
    (verdict,) = verdicts(ended_tcp(event), segment(5040.5, flag))
    assert verdict.named_right is False


def test_a_segment_with_both_flags_is_a_reset() -> None:
    """So the receiver's kernel takes it, whatever else it was meant to say."""
    (verdict,) = verdicts(ended_tcp(Event.FLOW_RESET), segment(5040.5, FIN | RST))
    assert [evidence.what for evidence in verdict.evidence] == ["RST"]
    assert verdict.named_right


@pytest.mark.parametrize("ms", [5039.999, 5041.001])
def test_a_tcp_end_outside_is_not(ms: float) -> None:
    (verdict,) = verdicts(ended_tcp(Event.FLOW_FIN), segment(ms, FIN))
    assert verdict.fault == "not covered: FIN outside"
    assert TCP in str(verdict)


@pytest.mark.parametrize("packets", [[], [segment(5040.2, FIN, ours=True), segment(5040.5, FIN)]])
def test_an_end_that_nobody_sent_is_not_covered(packets: list[Packet]) -> None:
    (verdict,) = verdicts(ended_tcp(Event.FLOW_FIN), *packets)
    assert verdict.fault == "not covered: no packet ends it"


def test_an_end_that_the_report_does_not_know_is_a_fault() -> None:
    (verdict,) = verdicts(ended_tcp(None), segment(5040.5, FIN))
    assert verdict.fault == "ended on the wire only"


def test_a_flow_that_we_closed_did_not_end() -> None:
    assert verdicts(ended_tcp(None), segment(5999, FIN, ours=True), segment(6000, FIN)) == []


def moved_udp() -> Recording:
    """Served by the old pod until the request at 100 ms; by the new one from 117.2 ms on."""
    old = s.answered(UDP, s.OLD, -4999, 100.2)
    return s.recording(
        [s.accepted()],
        [connected(UDP), s.responder(UDP, s.OLD, -4999, -4998), old],
        [
            s.responder(UDP, s.NEW, 100, 117.2, previous=s.OLD),
            s.answered(UDP, s.NEW, 117, 200, (101, 105)),
            s.client(Event.FLOW_OPEN_AT_END, UDP, s.at(201)),
        ],
        s.cluster(),
    )


def request(ms: float, seq: int, *, to: tuple[str, int] = NODE) -> Packet:
    return Packet(
        at_ns=s.ns(ms),
        kind=Kind.UDP,
        source=CLIENT if to == NODE else MASQUERADED,
        destination=to,
        ident=seq,
        payload=b"ping %d\n" % seq,
    )


def reply(ms: float, seq: int, who: str) -> Packet:
    payload = b"pong %d 1 2 %s/n\n" % (seq, who.encode())
    return Packet(
        at_ns=s.ns(ms), kind=Kind.UDP, source=NODE, destination=CLIENT, ident=0, payload=payload
    )


SERVED = (request(100.01, 100), reply(100.1, 100, s.OLD))
FOLLOWED = (request(117.01, 101), reply(117.1, 101, s.NEW))


def test_a_udp_move_inside_is_covered() -> None:
    inside = (request(100.02, 100, to=OLD_POD), request(117.03, 101, to=NEW_POD))
    (verdict,) = verdicts(moved_udp(), *SERVED, *FOLLOWED, inside=inside)
    assert verdict.fault is None
    assert verdict.named_right is None
    assert [e.at.lo for e in verdict.evidence] == [
        s.ns(x) for x in (100.01, 100.02, 117.01, 117.03)
    ]


def test_a_request_served_before_the_interval_began_is_no_fault_but_one_within_it_is() -> None:
    early = (request(50, 97), reply(50.1, 97, s.OLD))
    (verdict,) = verdicts(moved_udp(), *early, *SERVED, *FOLLOWED)
    assert verdict.fault is None
    between = (request(110, 101), reply(110.1, 101, s.OLD))
    after = (request(118, 102), reply(118.1, 102, s.NEW))
    (verdict,) = verdicts(moved_udp(), *SERVED, *between, *after)
    assert verdict.fault == "not covered: first request not served outside"


def test_a_loss_before_the_interval_is_a_fault() -> None:
    (verdict,) = verdicts(moved_udp(), request(80, 98), reply(80.1, 98, s.OLD), request(99, 99))
    assert verdict.fault is not None
    assert "last request served and first request not served outside" in verdict.fault


def test_an_arrival_at_the_new_pod_after_the_interval_is_a_fault() -> None:
    inside = (request(100.02, 100, to=OLD_POD), request(117.3, 101, to=NEW_POD))
    (verdict,) = verdicts(moved_udp(), *SERVED, *FOLLOWED, inside=inside)
    assert verdict.fault == "not covered: its arrival at the new pod outside"


def test_a_request_arrives_after_it_was_sent() -> None:
    """A restarted counter sends the same bytes again: an earlier packet is another one's."""
    inside = (request(90, 100, to=OLD_POD), request(100.02, 100, to=OLD_POD))
    (verdict,) = verdicts(moved_udp(), *SERVED, *FOLLOWED, inside=inside)
    assert verdict.fault is None
    assert [(e.what, e.at.lo) for e in verdict.evidence][1] == (
        "its arrival at the old pod",
        s.ns(100.02),
    )


def refused_udp() -> Recording:
    """Served until 100 ms, refused at [117, 117.5]."""
    icmp = s.client(
        Event.FLOW_ICMP, UDP, s.at(117, 117.5), type=3, code=3, errno="ECONNREFUSED", seq=101
    )
    return s.recording(
        [s.accepted()],
        [connected(UDP), s.responder(UDP, s.OLD, -4999, -4998)],
        [s.answered(UDP, s.OLD, -4999, 100.2), icmp, s.unanswered(UDP, 117, 4000, 200)],
        [s.client(Event.FLOW_OPEN_AT_END, UDP, s.at(4001))],
        s.cluster(),
    )


def error(ms: float, ident: int) -> Packet:
    return Packet(at_ns=s.ns(ms), kind=Kind.ICMP, source=CLIENT, destination=NODE, ident=ident)


def test_a_refusal_belongs_to_the_request_that_it_quotes() -> None:
    lost = request(117.01, 101)
    (verdict,) = verdicts(refused_udp(), *SERVED, lost, error(117.1, 101), error(140, 102))
    assert verdict.fault is None
    assert len(verdict.evidence) == 3
    (verdict,) = verdicts(refused_udp(), *SERVED, lost, error(140, 102))
    assert [e.what for e in verdict.evidence] == ["last request served", "first request not served"]
    (verdict,) = verdicts(refused_udp(), *SERVED, lost, error(140, 101))
    assert verdict.fault == "not covered: its ICMP error outside"


def test_a_lost_request_that_went_to_the_old_pod_has_no_arrival_at_a_new_one() -> None:
    """It was refused there: when it got that far is no part of the end."""
    lost = request(117.01, 101)
    inside = (request(100.02, 100, to=OLD_POD), request(117.6, 101, to=OLD_POD))
    (verdict,) = verdicts(refused_udp(), *SERVED, lost, error(117.1, 101), inside=inside)
    assert verdict.fault is None
    assert "its arrival at the new pod" not in [e.what for e in verdict.evidence]


def test_a_udp_flow_whose_last_request_is_on_its_way_did_not_end() -> None:
    still = [s.client(Event.FLOW_OPEN_AT_END, UDP, s.at(5999))]
    recording = s.recording([s.accepted()], alive(UDP, 5998), still, s.cluster())
    assert verdicts(recording, *SERVED, request(117, 101)) == []
    (verdict,) = verdicts(recording, *SERVED, *FOLLOWED)
    assert verdict.fault == "ended on the wire only"
