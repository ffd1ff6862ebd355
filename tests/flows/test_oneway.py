"""One-way flows: few lines about sends, and from them the bounds of every send's stamp."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.udp.sends import Sends
from pytest_drainwatch.flows.oneway import RUNS, Run
from pytest_drainwatch.flows.protocol import note, sequence_of, stamp_of
from pytest_drainwatch.flows.schedule import Cadence

MS = 1_000_000
CADENCE = Cadence(dense_ns=50 * MS, sparse_ns=500 * MS)


def recorded(stamps: list[int], limit: int = RUNS) -> list[Observation]:
    """What a flow writes about sends at these times, numbered from 1."""
    lines: list[Run] = []
    for seq, at_ns in enumerate(stamps, 1):
        if not lines or not lines[-1].add(at_ns, CADENCE, even=len(lines) < limit):
            lines.append(Run(seq, at_ns))
    return [
        Observation(
            source=Source.CLIENT,
            event=Event.FLOW_SENT,
            at=Interval(run.first_ns, run.last_ns),
            subject="udp-oneway-0001",
            data=run.told(),
        )
        for run in lines
    ]


GAPS = st.lists(
    st.one_of(
        st.integers(49 * MS, 52 * MS),  # dense, a little late or early
        st.integers(499 * MS, 502 * MS),  # sparse
        st.integers(1, 3000 * MS),  # slots missed, or a stall made good
    ),
    min_size=1,
    max_size=60,
)


@given(GAPS, st.sampled_from([1, 3, RUNS]))
def test_every_send_lies_within_its_bounds(gaps: list[int], limit: int) -> None:
    stamps = [1_000 * MS]
    for gap in gaps:
        stamps.append(stamps[-1] + gap)
    lines = recorded(stamps, limit)
    assert len(lines) <= limit
    sends = Sends.of(lines)
    assert sends.last_seq == len(stamps)
    for seq, at_ns in enumerate(stamps, 1):
        bounds = sends.sent(seq)
        assert bounds.lo <= at_ns <= bounds.hi
    for at_ns in (stamps[0] - 1, stamps[len(stamps) // 2], stamps[-1]):
        first = sends.first_after(at_ns)
        # Never one that was sent before; the very first of them may be passed over.
        assert all(stamp > at_ns for stamp in stamps[first - 1 :])


def test_an_even_cadence_is_one_line_and_bounds_to_its_jitter() -> None:
    stamps = [n * 50 * MS + (n % 7) * 100_000 for n in range(2000)]
    (line,) = recorded(stamps)
    assert line.data["period_ns"] == 50 * MS
    sends = Sends.of([line])
    assert max(sends.sent(seq).width for seq in range(1, 2001)) <= 600_000
    assert sends.first_after(stamps[999]) == 1001


def test_another_density_is_another_line() -> None:
    dense = [n * 50 * MS for n in range(100)]
    sparse = [dense[-1] + n * 500 * MS for n in range(1, 20)]
    lines = recorded([*dense, *sparse, *(sparse[-1] + n * 50 * MS for n in range(1, 9))])
    assert [line.data["count"] for line in lines] == [100, 19, 8]


@pytest.mark.parametrize("quoted", [b"ping 7\n", b"hello 7\n", note(7, 12345, "udp-oneway-0001")])
def test_an_icmp_error_quotes_which_send_it_is_about(quoted: bytes) -> None:
    assert sequence_of(quoted) == 7
    assert stamp_of(quoted) == (12345 if quoted.startswith(b"note") else None)
