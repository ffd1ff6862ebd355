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
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.stall import Stalls, stalls_of
from tests.core import story as s
from tests.core.story import NEW, OLD, OTHER, at

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


@pytest.mark.parametrize(
    "seen",
    [
        s.client(Event.FLOW_RESET, TCP, at(6000, 6001), errno="ECONNRESET"),
        s.client(Event.FLOW_WRITE_ERROR, TCP, at(6000, 6001), errno="EPIPE"),
        s.client(Event.FLOW_READ_ERROR, TCP, at(6000, 6001), errno="ETIMEDOUT"),
        s.responder(TCP, OTHER, 6000, 6001, previous=OLD),
        s.client(Event.FLOW_GARBAGE, TCP, at(6000, 6001), length=9),
        BYE,
    ],
)
def test_whatever_is_seen_during_a_stall_happened_anywhere_in_it(seen: Observation) -> None:
    """Not the end only: a bye has its time as well."""
    history = [*s.alive(TCP, 4999), seen]
    (step,) = live(Proto.TCP, history, {OLD}, stalls_of([stalled(5500, 6000.5)])).steps[3:]
    assert step.at == at(5500, 6001)
    (calm,) = live(Proto.TCP, history, {OLD}, stalls_of([stalled(5500, 5900)])).steps[3:]
    assert calm.at == seen.at


@pytest.mark.parametrize(
    "sign",
    [
        s.client(Event.FLOW_ICMP, UDP, at(5000, 5001), type=3, code=3, errno="ECONNREFUSED"),
        s.client(Event.FLOW_READ_ERROR, UDP, at(5000, 5001), errno="ECONNREFUSED"),
        s.responder(UDP, NEW, 4999.8, 5017, previous=OLD),
    ],
)
def test_a_udp_path_that_broke_during_a_stall_broke_anywhere_in_it(sign: Observation) -> None:
    """The last good answer may have been read at the stall's end, long after it was sent."""
    history = [*s.alive(UDP, 4999), sign]
    assert live(Proto.UDP, history, {OLD, NEW}).end == Interval(at(4998.8).lo, sign.at.hi)
    stopped = stalls_of([stalled(4500, 4998.9)])
    life = live(Proto.UDP, history, {OLD, NEW}, stopped)
    assert life.end == Interval(at(4500).lo, sign.at.hi)


@pytest.mark.parametrize(
    ("proto", "silence"), [(Proto.TCP, NEVER_ANSWERED), (Proto.UDP, GONE)], ids=["tcp", "udp"]
)
def test_a_silence_that_the_machine_slept_through_is_nobodys(
    proto: Proto, silence: Observation
) -> None:
    """However short the clock says it slept: that clock stood still meanwhile."""
    rest = [silence, end(f"{proto}-0001")]
    slept = stalled(6000, 6001, Event.HOST_SUSPENDED)
    assert judged(proto, rest, slept) == ("not-measured", "client-stall")
    before = stalled(3000, 3001, Event.HOST_SUSPENDED)
    assert judged(proto, rest, before) != ("not-measured", "client-stall")


def test_a_stall_of_the_watches_is_none_of_the_agents() -> None:
    """Another process: the flows were listened to all the same."""
    watches = Observation(source=Source.K8S, event=Event.WATCHER_STALLED, at=at(5000, 8000))
    assert stalls_of([watches]) == Stalls()
    assert judged(Proto.UDP, [GONE, end(UDP)], watches) == ("severed", "silence")


def test_a_send_that_a_stall_followed_may_have_left_at_its_end() -> None:
    """The stamp is made before the send; between the two the agent may have been stopped."""
    history = [*s.alive(UDP, 4999), GONE, end(UDP)]
    assert live(Proto.UDP, history, {OLD}).end == at(4998.8, 5001)
    stopped = stalls_of([stalled(4999, 5200)])
    assert live(Proto.UDP, history, {OLD}, stopped).end == at(4998.8, 5201)
    before = stalls_of([stalled(4000, 4500)])
    assert live(Proto.UDP, history, {OLD}, before).end == at(4998.8, 5001)


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
