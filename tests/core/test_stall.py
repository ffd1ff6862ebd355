"""Stalls of the client: what they take away from a verdict, and what they cannot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.flow.classify import classify
from pytest_drainwatch.core.flow.life import live
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.stall import Stalls, stalls_of
from tests.core import story as s
from tests.core.story import OLD, at

TCP, UDP = "tcp-0001", "udp-0001"
NEVER_ANSWERED = s.unanswered(TCP, 5000, 16_000, 220)
GONE = s.unanswered(UDP, 5000, 9000, 240)
FIN = s.client(Event.FLOW_FIN, TCP, at(6000, 6001))
BYE = s.client(Event.FLOW_ANNOUNCED, TCP, at(6000, 6001), seq=100, reason="drain-deadline")


def stalled(lo: float, hi: float, event: Event = Event.AGENT_STALLED) -> Observation:
    return s.client(event, "", at(lo, hi))


def end(flow: str) -> Observation:
    return s.client(Event.FLOW_OPEN_AT_END, flow, at(40_000))


def judged(proto: Proto, rest: list[Observation], *stalls: Observation) -> tuple[str, str]:
    flow = f"{proto}-0001"
    life = live(proto, [*s.alive(flow, 4999), *rest], {OLD}, stalls_of(stalls))
    outcome, mechanism = classify(life)
    return str(outcome), str(mechanism)


@pytest.mark.parametrize(
    ("proto", "silence", "verdict"),
    [
        (Proto.TCP, NEVER_ANSWERED, ("read-timeout", "silence")),
        (Proto.UDP, GONE, ("severed", "silence")),
    ],
)
def test_silence_counts_only_while_somebody_listens(
    proto: Proto, silence: Observation, verdict: tuple[str, str]
) -> None:
    rest = [silence, end(f"{proto}-0001")]
    assert judged(proto, rest) == verdict
    # A short stall leaves silence enough, a long one does not.
    assert judged(proto, rest, stalled(5000, 5500)) == verdict
    assert judged(proto, rest, stalled(5000, 8000)) == ("not-measured", "client-stall")
    # Nor does the same stall before the silence began.
    assert judged(proto, rest, stalled(1000, 4000)) == verdict
    # Being throttled is a reason; the pauses that it made are stalls of their own.
    assert judged(proto, rest, stalled(5000, 8000, Event.AGENT_THROTTLED)) == verdict


def test_an_answer_after_the_stall_clears_it() -> None:
    back = s.answered(UDP, OLD, 9100, 9900, (400, 440))
    rest = [GONE, back, end(UDP)]
    assert judged(Proto.UDP, rest, stalled(5000, 8000)) == ("survived-observation-window", "none")


def test_an_end_during_a_stall_lies_anywhere_in_it() -> None:
    history = [*s.alive(TCP, 4999), FIN]
    life = live(Proto.TCP, history, {OLD}, stalls_of([stalled(5500, 6000.5)]))
    assert life.end == at(5500, 6001)
    assert classify(life) == classify(live(Proto.TCP, history, {OLD}))


def test_an_end_while_the_machine_slept_is_nobodys() -> None:
    slept = stalled(5900, 6100, Event.HOST_SUSPENDED)
    assert judged(Proto.TCP, [FIN], slept) == ("not-measured", "client-stall")
    assert judged(Proto.TCP, [FIN], stalled(3000, 3100, Event.HOST_SUSPENDED)) == (
        "severed",
        "fin-unannounced",
    )
    # What was announced before is no less true.
    assert judged(Proto.TCP, [BYE, FIN], slept) == ("drained-clean-close", "announced-fin")


def test_the_report_names_the_stall_and_not_the_workload() -> None:
    parts = ([s.accepted()], s.alive(UDP, 4999), [GONE, end(UDP)], s.cluster())
    config: dict[str, object] = {"udp_flows": 1}
    calm = derive(s.recording(*parts, config=config)).trial.flows[0]
    shaken = derive(s.recording(*parts, [stalled(5000, 8000)], config=config)).trial.flows[0]
    assert (calm.outcome, calm.mechanism) == ("severed", "silence")
    assert (shaken.outcome, shaken.mechanism) == ("not-measured", "client-stall")
    assert shaken.terminal_ns is None


SPANS = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 30)).map(lambda p: Interval(p[0], p[0] + p[1])),
    max_size=8,
)


@given(SPANS, st.integers(0, 100), st.integers(0, 40))
def test_the_paused_time_is_that_of_the_union(spans: list[Interval], lo: int, width: int) -> None:
    within = Interval(lo, lo + width)
    stalls = stalls_of(s.client(Event.AGENT_STALLED, "", span) for span in spans)
    covered = {t for span in spans for t in range(span.lo, span.hi)} & set(range(lo, lo + width))
    assert stalls.paused_ns(within) == len(covered)
    wide = stalls.widen(within)
    assert wide.hi == within.hi
    assert wide.lo <= within.lo


def test_nothing_overlaps_no_stall() -> None:
    assert Stalls().widen(at(1, 2)) == at(1, 2)
    assert not Stalls().slept(at(1, 2))
