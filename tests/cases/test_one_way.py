"""Case C01: a UDP Service scaled to zero, and senders that never read an answer.

The trial on a real cluster is in tests/cluster/test_udp_dead_end.py.
"""

from __future__ import annotations

from pytest_drainwatch.core.udp.continuity import PhaseKind
from tests.core.one_way_story import (
    FINAL,
    LAST_SEQ,
    OLD_LAST,
    RATE_MS,
    cluster,
    flow_of,
    judged,
    ms_of,
    received,
    sent_at,
    seq_at,
    started,
    told_of,
)
from tests.core.story import NEW, OLD, total


def test_c01_scaled_to_zero_is_a_black_hole_with_bounds() -> None:
    flow = flow_of(judged([started(OLD, -6000), FINAL], cluster()))
    assert (flow.outcome, flow.mechanism) == ("severed", "silence")
    lo, hi = ms_of(flow.terminal_ns)
    assert lo == sent_at(OLD_LAST)
    # The first that nobody received was sent up to 2 ms late; a passage takes 0.3 ms, or 1 more.
    assert hi == sent_at(OLD_LAST) + RATE_MS + 2 + 0.3 + 1
    told = told_of(flow)
    assert (told.answered, told.lost) == (OLD_LAST, LAST_SEQ - OLD_LAST)
    assert told.sent == LAST_SEQ
    assert told.recovered_at_ns is None
    assert flow.last_answered_seq == OLD_LAST
    assert flow.role == "target"


def test_c01_recovery_comes_with_the_replacement_only() -> None:
    """0 -> 1: the same flow is received again, by another pod: re-homed, with its gap."""
    again = seq_at(20_000)
    new = [started(NEW, 19_000), received(NEW, 59_900, (again, LAST_SEQ))]
    flow = flow_of(judged([started(OLD, -6000), FINAL], new, cluster()))
    assert (flow.outcome, flow.mechanism) == ("severed", "rehomed")
    assert flow.responders == (f"{OLD}/n", f"{NEW}/n")
    told = told_of(flow)
    assert [p.kind for p in told.phases] == [PhaseKind.ALIVE, PhaseKind.LOST, PhaseKind.REHOMED]
    lo, hi = ms_of(told.recovered_at_ns)
    assert sent_at(again - 1) - 1 <= lo <= sent_at(again)
    assert hi == sent_at(again) + 0.3
    gap = ms_of(told.gap_ns)
    assert gap[0] <= sent_at(again) - sent_at(OLD_LAST) <= gap[1]
    assert told.sent == total(told.answered, told.lost)
