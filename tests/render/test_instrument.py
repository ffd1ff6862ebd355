"""One line says what was sent when, another what did not run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Episode, Sending, SendingStretch
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.core.observation import Source
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.render import instrument, terminal
from tests.core.trials import recording_of

MS = 1_000_000


def stretch(proto: Proto, rate_hz: float, lo: int, hi: int) -> SendingStretch:
    return SendingStretch(proto=proto, rate_hz=rate_hz, at_ns=(lo * MS, hi * MS))


TWO = (
    stretch(Proto.TCP, 20, -12_000, 8_000),
    stretch(Proto.UDP, 60, -500, 6_000),
    stretch(Proto.UDP, 10, 6_000, 24_500),
    stretch(Proto.UDP, 60, 24_500, 31_240),
)
UDP = "udp 60 Hz within -0.5 to 6.0 s, 24.5 to 31.2 s, else 10 Hz"


@pytest.mark.parametrize(
    ("sending", "line"),
    [
        (
            Sending(sends=8000, missed_slots=3, late_p99_ns=340_000, stretches=TWO),
            f"sent: tcp 20 Hz throughout; {UDP}; 3 of 8003 slots missed, 99 % sent within 0.3 ms",
        ),
        (
            Sending(sends=0, missed_slots=0, stretches=TWO[:1]),
            "sent: tcp 20 Hz throughout; 0 of 0 slots missed",
        ),
        (Sending(stretches=TWO[1:]), f"sent: {UDP}; how many is not known"),
        (
            Sending(
                stretches=tuple(
                    stretch(proto, rates[n], -500 + n * 6500, 6000 + n * 6500)
                    for proto, rates in ((Proto.TCP, (20, 5)), (Proto.UDP, (60, 10)))
                    for n in (0, 1)
                )
            ),
            "sent: tcp 20 Hz and udp 60 Hz within -0.5 to 6.0 s, else 5 Hz and 10 Hz; how many is "
            "not known",
        ),
    ],
)
def test_what_was_sent_when(sending: Sending, line: str) -> None:
    assert list(instrument.lines(sending, ())) == [line]


def test_an_older_recording_says_nothing() -> None:
    assert list(instrument.lines(Sending(sends=8, missed_slots=0), ())) == []


def stall(kind: str, at_ns: Bounds, detail: str) -> Episode:
    return Episode(source=Source.CLIENT, subject="", at_ns=at_ns, kind=kind, detail=detail)


def test_stalls_are_counted_by_kind_and_the_longest_is_told() -> None:
    stalls = [
        stall("agent_stalled", (0, 30 * MS), "short"),
        stall("host_suspended", (1000 * MS, 1300 * MS), "the machine was suspended for 5000 ms"),
        stall("agent_stalled", (2000 * MS, 2040 * MS), "short"),
    ]
    assert list(instrument.lines(Sending(), stalls)) == [
        "stalls: 2 agent stalled, 1 host suspended; the longest: the machine was suspended for "
        "5000 ms, within 1.0 to 1.3 s"
    ]


def test_a_report_shows_it() -> None:
    report = derive(recording_of(Scenario()))
    assert "sent:" not in terminal.show(report)
    told = replace(report.trial, sending=Sending(sends=1, missed_slots=0, stretches=TWO))
    assert UDP in terminal.show(replace(report, trial=told))
