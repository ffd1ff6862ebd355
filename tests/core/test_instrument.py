"""What the report says about the instrument: what was sent when, and its stalls."""

from __future__ import annotations

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report, SendingStretch
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.observation import Event, Observation, Source
from tests.core import story as s

MS = 1_000_000


def told(source: Source, event: Event, lo: float, hi: float, **data: object) -> Observation:
    return Observation(source=source, event=event, at=s.at(lo, hi), data=data)


def sending(proto: str, rate_hz: float, lo: float, hi: float, **data: object) -> Observation:
    return told(Source.CLIENT, Event.AGENT_SENDING, lo, hi, proto=proto, rate_hz=rate_hz, **data)


def report(*more: Observation) -> Report:
    flow = [*s.alive("tcp-0001", 5039), s.client(Event.FLOW_FIN, "tcp-0001", s.at(5040, 5041))]
    return derive(
        s.recording(
            [s.accepted()], flow, [s.log(Event.SIGTERM_RECEIVED, 40)], s.cluster(0, 5200), more
        )
    )


def test_each_stretch_stands_in_the_report() -> None:
    books = {"flows": 10, "sends": 598, "missed_slots": 2, "late_p99_ns": 700, "late_max_ns": 900}
    found = report(
        sending("udp", 10, 6000, 24_500, flows=10, sends=1850, missed_slots=0),
        sending("tcp", 20, -500, 6000),
        sending("udp", 60, -500, 6000, **books),
    ).trial.sending
    assert [(x.proto, x.rate_hz, x.at_ns) for x in found.stretches] == [
        (Proto.TCP, 20, (-500 * MS, 6000 * MS)),
        (Proto.UDP, 60, (-500 * MS, 6000 * MS)),
        (Proto.UDP, 10, (6000 * MS, 24_500 * MS)),
    ]
    assert found.stretches[1] == SendingStretch(
        proto=Proto.UDP,
        rate_hz=60,
        at_ns=(-500 * MS, 6000 * MS),
        flows=10,
        sends=598,
        missed_slots=2,
        late_p99_ns=700,
        late_max_ns=900,
    )
    assert found.stretches[0].sends is None, "not told is not measured"


def test_an_older_recording_has_no_stretches() -> None:
    assert report().trial.sending.stretches == ()


def test_all_four_kinds_of_stalls_are_listed_by_name() -> None:
    found = report(
        told(Source.CLIENT, Event.AGENT_STALLED, 10, 133, late_ns=123 * MS),
        told(Source.CLIENT, Event.AGENT_THROTTLED, 20, 270, throttled_ns=80 * MS, periods=3),
        told(Source.CLIENT, Event.HOST_SUSPENDED, 30, 280, suspended_ns=5000 * MS),
        told(Source.K8S, Event.WATCHER_STALLED, 40, 300, late_ns=240 * MS),
        told(Source.K8S, Event.WATCHER_STALLED, 50, 9000, late_ns=250 * MS, count=7),
    ).trial.stalls
    assert [(x.kind, x.source, x.at_ns) for x in found] == [
        ("agent_stalled", Source.CLIENT, (10 * MS, 133 * MS)),
        ("agent_throttled", Source.CLIENT, (20 * MS, 270 * MS)),
        ("host_suspended", Source.CLIENT, (30 * MS, 280 * MS)),
        ("watcher_stalled", Source.K8S, (40 * MS, 300 * MS)),
        ("watcher_stalled", Source.K8S, (50 * MS, 9000 * MS)),
    ]
    assert [x.detail for x in found] == [
        "the flow agent did not run for 123 ms",
        "a CPU quota held the flow agent's cgroup for 80 ms, summed over CPUs, in 3 period(s)",
        "the machine was suspended for 5000 ms",
        "the watches' process did not run for 240 ms",
        "the watches' process did not run for 250 ms, the longest of 7 times",
    ]


def test_a_gap_of_a_watch_is_no_stall() -> None:
    found = report(
        told(Source.K8S, Event.WATCH_GAP, 100, 900, resource="pods", reason="closed")
    ).trial
    assert found.stalls == ()
    assert [(gap.kind, gap.subject) for gap in found.gaps] == [("watch_gap", "pods")]


def test_a_stretch_of_an_unknown_transport_is_left_out() -> None:
    """As a later version may record one."""
    known = sending("udp", 60, -500, 6000, sends=10)
    odd = sending("sctp", 60, -500, 6000, sends=10)
    assert [s.proto for s in report(known, odd).trial.sending.stretches] == ["udp"]
