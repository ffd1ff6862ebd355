"""The table of a flow's life: total, and each verdict with the input that gives another."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.flow.classify import VERDICTS, Mechanism, Outcome, classify
from pytest_drainwatch.core.flow.life import live
from pytest_drainwatch.core.flow.table import ABSORBING, TRANSITIONS, Proto, Signal, State
from pytest_drainwatch.core.observation import Event, Observation
from tests.core import story as s
from tests.core.story import NEW, OLD, OTHER, at

TCP, UDP = "tcp-0001", "udp-0001"
BYE = s.client(Event.FLOW_ANNOUNCED, TCP, at(5000, 5001), seq=100, reason="drain-deadline")
FIN = s.client(Event.FLOW_FIN, TCP, at(5001, 5002))
RST = s.client(Event.FLOW_RESET, TCP, at(5001, 5002), errno="ECONNRESET")
EPIPE = s.client(Event.FLOW_WRITE_ERROR, TCP, at(5001, 5002), errno="EPIPE")
TIMEOUT = s.client(Event.FLOW_READ_ERROR, TCP, at(5001, 5002), errno="ETIMEDOUT")
HOST_DOWN = s.client(Event.FLOW_READ_ERROR, TCP, at(5001, 5002), errno="EHOSTUNREACH")
NO_BUFFERS = s.client(Event.FLOW_WRITE_ERROR, TCP, at(5001, 5002), errno="ENOBUFS")
DEADLINE = s.client(Event.FLOW_WRITE_ERROR, TCP, at(5001, 5002), errno="deadline")
LATE_RST = s.client(Event.FLOW_RESET, TCP, at(16_000, 16_001), errno="ECONNRESET")
GARBAGE = s.client(Event.FLOW_GARBAGE, TCP, at(5001, 5002), length=9)


def end(flow: str, ms: float = 40_000) -> Observation:
    return s.client(Event.FLOW_OPEN_AT_END, flow, at(ms), sent=1, answered=1)


def icmp(ms: float, code: int = 3, errno: str = "ECONNREFUSED") -> Observation:
    return s.client(Event.FLOW_ICMP, UDP, at(ms, ms + 1), type=3, code=code, errno=errno)


def moved(to: str = NEW, lo: float = 4990, hi: float = 5400) -> Observation:
    return s.responder(UDP, to, lo, hi, previous=OLD)


def verdict(proto: Proto, *history: Observation) -> tuple[Outcome, Mechanism]:
    return classify(live(proto, history, {OLD, NEW}))


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("signal", Signal)
def test_every_state_answers_every_signal(state: State, signal: Signal) -> None:
    assert TRANSITIONS[state, signal] in State
    if state in ABSORBING:
        assert TRANSITIONS[state, signal] is state


def test_every_state_has_a_verdict() -> None:
    assert VERDICTS.keys() == set(State)


def test_every_state_can_be_reached() -> None:
    reached = {State.NEW}
    while more := {TRANSITIONS[s_, e] for s_ in reached for e in Signal} - reached:
        reached |= more
    assert reached == set(State)


TCP_FATES = [
    ([BYE, FIN], "drained-clean-close", "announced-fin"),
    ([FIN], "severed", "fin-unannounced"),
    ([RST], "severed", "rst"),
    ([BYE, RST], "severed", "announced-rst"),
    ([EPIPE], "severed", "epipe"),
    ([TIMEOUT], "read-timeout", "silence"),
    ([HOST_DOWN], "severed", "unreachable"),
    ([GARBAGE], "severed", "foreign-responder"),
    ([s.responder(TCP, OTHER, 5000, 5001, previous=OLD)], "severed", "foreign-responder"),
    ([s.responder(TCP, NEW, 5000, 5001, previous=OLD)], "severed", "rehomed"),
    ([end(TCP)], "survived-observation-window", "none"),
    ([BYE, end(TCP)], "survived-observation-window", "none"),
    ([], "not-measured", "none"),
    ([s.unanswered(TCP, 5000, 15_000, 200, end=15_001), end(TCP)], "read-timeout", "silence"),
    # Unanswered when the watch stopped: neither alive nor proven dead.
    ([s.unanswered(TCP, 5000, 14_000, 180), end(TCP)], "not-measured", "silence"),
    # The last request is merely on its way.
    ([s.unanswered(TCP, 39_950, 39_999, 1), end(TCP)], "survived-observation-window", "none"),
    # A quiet server that closes after all did what it said.
    ([BYE, s.unanswered(TCP, 5010, 16_000, 220), FIN], "drained-clean-close", "announced-fin"),
    ([BYE, s.unanswered(TCP, 5010, 16_000, 220), end(TCP)], "read-timeout", "silence"),
    ([s.unanswered(TCP, 5000, 16_000, 220), LATE_RST], "severed", "rst"),
    ([NO_BUFFERS, end(TCP)], "not-measured", "client-limit"),
    ([DEADLINE, end(TCP)], "not-measured", "client-stall"),
    ([DEADLINE], "not-measured", "client-stall"),
    ([DEADLINE, LATE_RST], "severed", "rst"),
    # Our own machine's troubles do not take back what the peer announced.
    ([BYE, NO_BUFFERS, FIN], "drained-clean-close", "announced-fin"),
    ([BYE, DEADLINE, RST], "severed", "announced-rst"),
    (
        [NO_BUFFERS, s.answered(TCP, OLD, 5100, 9000, (120, 400)), end(TCP)],
        "survived-observation-window",
        "none",
    ),
    # What was read before the error counts: a bye and a FIN make a later EPIPE history.
    ([BYE, FIN, EPIPE], "drained-clean-close", "announced-fin"),
]


@pytest.mark.parametrize(("rest", "outcome", "mechanism"), TCP_FATES)
def test_tcp_fates(rest: list[Observation], outcome: str, mechanism: str) -> None:
    assert verdict(Proto.TCP, *s.alive(TCP, 4999), *rest) == (outcome, mechanism)


LOST = s.unanswered(UDP, 5000, 5380, 20)
GONE = s.unanswered(UDP, 5000, 9000, 240)
UDP_FATES = [
    ([moved()], "severed", "rehomed"),
    ([LOST, moved()], "severed", "rehomed"),
    ([moved(OTHER)], "severed", "foreign-responder"),
    ([icmp(5001), end(UDP)], "severed", "refused"),
    ([icmp(5001), moved()], "severed", "refused"),
    ([icmp(5001, 1, "EHOSTUNREACH"), end(UDP)], "severed", "unreachable"),
    ([icmp(5001, 1, "EHOSTUNREACH"), moved()], "severed", "unreachable"),
    ([icmp(5001), icmp(8000, 1, "EHOSTUNREACH"), end(UDP)], "severed", "refused"),
    ([GONE, end(UDP)], "severed", "silence"),
    ([GONE], "not-measured", "silence"),
    # Too few, or not for long enough to be an end; and no sign of life either.
    ([s.unanswered(UDP, 5000, 9000, 5), end(UDP)], "not-measured", "silence"),
    ([s.unanswered(UDP, 5000, 7000, 120), end(UDP)], "not-measured", "silence"),
    ([s.unanswered(UDP, 5000, 5900, 54), end(UDP)], "survived-observation-window", "none"),
    ([s.unanswered(UDP, 5000, 7000, 120), moved()], "severed", "rehomed"),
    # The same responder answers again: the path recovered.
    (
        [icmp(5001), s.answered(UDP, OLD, 5100, 9000, (120, 400)), end(UDP)],
        "survived-observation-window",
        "none",
    ),
    (
        [GONE, s.answered(UDP, OLD, 9100, 9900, (400, 440)), end(UDP)],
        "survived-observation-window",
        "none",
    ),
]


@pytest.mark.parametrize(("rest", "outcome", "mechanism"), UDP_FATES)
def test_udp_fates(rest: list[Observation], outcome: str, mechanism: str) -> None:
    assert verdict(Proto.UDP, *s.alive(UDP, 4999), *rest) == (outcome, mechanism)


def test_a_flow_that_was_accepted_and_never_served() -> None:
    history = [s.connected(TCP), s.unanswered(TCP, 0, 11_000, 220), end(TCP)]
    assert verdict(Proto.TCP, *history) == ("read-timeout", "accepted-never-served")
    short = [s.connected(TCP), s.unanswered(TCP, 0, 900, 20), end(TCP)]
    assert verdict(Proto.TCP, *short) == ("not-measured", "none")


def test_a_udp_flow_that_starts_in_the_dark_is_silent_until_somebody_answers() -> None:
    """Case C02: nobody accepted a datagram, so nobody failed to serve it."""
    dark = [s.connected(UDP), s.unanswered(UDP, 0, 20_000, 400)]
    assert verdict(Proto.UDP, *dark, end(UDP)) == ("severed", "silence")
    first = s.responder(UDP, OLD, 0, 20_100)
    lit = [first, s.answered(UDP, OLD, 20_099, 39_000, (401, 900))]
    assert verdict(Proto.UDP, *dark, *lit, end(UDP)) == ("survived-observation-window", "none")


@pytest.mark.parametrize(
    ("errno", "mechanism"),
    [("EADDRNOTAVAIL", "client-limit"), ("EMFILE", "client-limit"), ("ECONNREFUSED", "none")],
)
def test_a_flow_that_could_not_be_opened_is_not_measured(errno: str, mechanism: str) -> None:
    """Case C69: no source port left is our own machine's limit, and no refusal."""
    failed = s.client(Event.FLOW_CONNECT_FAILED, TCP, at(0, 1), errno=errno)
    assert verdict(Proto.TCP, failed) == ("not-measured", mechanism)


def test_a_udp_end_lies_after_the_last_good_send_and_before_the_first_bad_sign() -> None:
    life = live(Proto.UDP, [*s.alive(UDP, 4999), icmp(5060)], {OLD})
    assert life.end == at(4998.8, 5061)
    quiet = live(Proto.UDP, [*s.alive(UDP, 4999), GONE, end(UDP)], {OLD})
    assert quiet.end == at(4998.8, 5001)  # the first lost send, and a millisecond for its way


def test_a_lost_request_is_allowed_the_shortest_round_trip_for_its_way() -> None:
    """Not the longest: that is how long requests wait in the workload, not how far it is."""
    connected, first, stretch = s.alive(UDP, 4999)
    far = {**stretch.data, "rtt_min_ns": 30_000_000, "rtt_max_ns": 300_000_000}
    seen = s.client(Event.FLOW_ANSWERED, UDP, stretch.at, **far)
    life = live(Proto.UDP, [connected, first, seen, GONE, end(UDP)], {OLD})
    assert life.end == at(4998.8, 5030)


def test_the_shortest_of_all_round_trips_is_the_way_that_a_request_needs() -> None:
    """The last stretch was slow, and the path as long as before."""
    connected, first, stretch = s.alive(UDP, 4999)

    def answered(lo: float, hi: float, rtt_min_ms: int) -> Observation:
        data = {**stretch.data, "last_sent_ns": s.ns(hi - 0.2), "rtt_min_ns": rtt_min_ms * 10**6}
        return s.client(Event.FLOW_ANSWERED, UDP, at(lo, hi), **data)

    for quick, slow in ((5, 30), (30, 5)):
        stretches = [answered(-4999, 2000, quick), answered(2001, 4999, slow)]
        life = live(Proto.UDP, [connected, first, *stretches, GONE, end(UDP)], {OLD})
        assert life.end == at(4998.8, 5005)


def test_a_slow_workload_is_not_quiet_while_an_answer_may_take_so_long() -> None:
    """Answers took 600 ms: after 1.5 s one is late, and three times as long is silence."""
    connected, first, stretch = s.alive(UDP, 4999)

    def judged(rtt_max_ms: int) -> tuple[Outcome, Mechanism]:
        slow = {**stretch.data, "rtt_max_ns": rtt_max_ms * 10**6}
        seen = s.client(Event.FLOW_ANSWERED, UDP, stretch.at, **slow)
        waiting = s.unanswered(UDP, 38_500, 39_980, 80, end=40_000)
        return verdict(Proto.UDP, connected, first, seen, waiting, end(UDP))

    assert judged(600) == ("survived-observation-window", "none")
    assert judged(400) == ("not-measured", "silence")


def test_a_first_responder_is_no_stranger_while_not_all_pods_are_known() -> None:
    """The watch had a gap: who has always answered took nothing over; who came later may have."""
    history = [s.connected(UDP), s.responder(UDP, OTHER, -4999, -4998)]
    history += [s.answered(UDP, OTHER, -4999, 39_990), end(UDP)]

    def judged(history: list[Observation], *, known: bool) -> tuple[Outcome, Mechanism]:
        return classify(live(Proto.UDP, history, {OLD}, all_pods_known=known))

    assert judged(history, known=False) == ("survived-observation-window", "none")
    assert judged(history, known=True) == ("severed", "foreign-responder")
    assert judged([*s.alive(UDP, 4999), moved(OTHER)], known=False) == ("severed", "none")


@pytest.mark.parametrize(
    "errno", ["ENOBUFS", "ENOMEM", "EMFILE", "ENFILE", "EADDRNOTAVAIL", "EPERM"]
)
def test_what_our_own_kernel_refuses_is_our_own_limit(errno: str) -> None:
    """EPERM is what a full conntrack table or a firewall of ours says to a send."""
    refused = s.client(Event.FLOW_WRITE_ERROR, UDP, at(5001, 5002), errno=errno)
    limited = ("not-measured", "client-limit")
    assert verdict(Proto.UDP, *s.alive(UDP, 4999), refused, end(UDP)) == limited
    assert verdict(Proto.TCP, *s.alive(TCP, 4999), refused, end(TCP)) == limited
    theirs = s.client(Event.FLOW_WRITE_ERROR, UDP, at(5001, 5002), errno="EHOSTUNREACH")
    assert verdict(Proto.UDP, *s.alive(UDP, 4999), theirs, end(UDP)) == ("severed", "unreachable")


def test_a_tcp_end_that_the_kernel_tells_overrides_the_silence_before_it() -> None:
    history = [*s.alive(TCP, 4999), s.unanswered(TCP, 5000, 16_000, 220), LATE_RST]
    assert live(Proto.TCP, history, {OLD}).end == at(16_000, 16_001)


def test_the_first_of_several_losses_is_where_the_path_broke() -> None:
    """The new pod may be heard seconds later; the old one was gone by the first loss."""
    history = [*s.alive(UDP, 4999), LOST, moved(hi=7000)]
    assert live(Proto.UDP, history, {OLD, NEW}).end == at(4998.8, 5001)
    # One datagram may be lost by chance, and the path have held until the move…
    once = [s.unanswered(UDP, 5000, 5000, 1), moved(hi=5017)]
    chance = s.unanswered(UDP, 2000, 2000, 1)
    start = [s.connected(UDP), s.responder(UDP, OLD, -4999, -4998)]
    lossy = [s.answered(UDP, OLD, -4999, 1990), chance, s.answered(UDP, OLD, 2010, 4999)]
    counted = replace(lossy[0], data={**lossy[0].data, "lost": 1})
    few = s.answered(UDP, OLD, 4990, 4999, (1, 59))
    for before in (lossy, [counted, lossy[2]], [few]):
        assert live(Proto.UDP, [*start, *before, *once], {OLD, NEW}).end == at(4998.8, 5017)
    # …but not if it is the first one of all.
    clean = live(Proto.UDP, [*s.alive(UDP, 4999), *once], {OLD, NEW})
    assert clean.end == at(4998.8, 5001)


def test_a_new_pods_first_answer_may_be_slow_its_request_was_sent_before() -> None:
    """The path led to the new pod when that request got there, however long the pod took."""
    first = replace(moved(hi=5060), data={**moved().data, "seq": 101})
    answers = s.answered(UDP, NEW, 5010, 9000, (101, 400))
    life = live(Proto.UDP, [*s.alive(UDP, 4999), first, answers, end(UDP)], {OLD, NEW})
    assert life.end == at(4998.8, 5011)
    # Of another request nothing follows.
    other = s.answered(UDP, NEW, 5010, 9000, (102, 400))
    life = live(Proto.UDP, [*s.alive(UDP, 4999), first, other, end(UDP)], {OLD, NEW})
    assert life.end == at(4998.8, 5060)


def test_silence_before_a_host_unreachable_is_where_the_path_broke() -> None:
    """As when a node gives up on ARP after three seconds (FACTS M11)."""
    late = s.client(
        Event.FLOW_ICMP, UDP, at(8000, 8001), type=3, code=1, errno="EHOSTUNREACH", seq=281
    )
    run = s.unanswered(UDP, 5000, 12_000, 420)
    life = live(Proto.UDP, [*s.alive(UDP, 4999), late, run, end(UDP)], {OLD})
    assert life.end == at(4998.8, 5001)
    assert classify(life) == (Outcome.SEVERED, Mechanism.UNREACHABLE)
    # A refusal of the very first datagram that got no answer is the first sign itself.
    first = s.client(Event.FLOW_ICMP, UDP, at(5002, 5003), type=3, code=3, errno="E", seq=101)
    assert live(Proto.UDP, [*s.alive(UDP, 4999), first, run], {OLD}).end == at(4998.8, 5003)
    # One of the second: the first was lost in silence, and two losses are a break.
    second = s.client(Event.FLOW_ICMP, UDP, at(5020, 5021), type=3, code=3, errno="E", seq=102)
    assert live(Proto.UDP, [*s.alive(UDP, 4999), second, run], {OLD}).end == at(4998.8, 5001)


@pytest.mark.parametrize("event", [Event.FLOW_WRITE_ERROR, Event.FLOW_READ_ERROR])
def test_a_udp_error_is_noticed_late_whatever_its_kind(event: Event) -> None:
    error = s.client(event, UDP, at(5999, 6000), errno="ECONNREFUSED")
    assert live(Proto.UDP, [*s.alive(UDP, 4999), error], {OLD}).end == at(4998.8, 6000)


def test_a_recovered_flow_has_no_end() -> None:
    back = s.answered(UDP, OLD, 5100, 9000, (120, 400))
    life = live(Proto.UDP, [*s.alive(UDP, 4999), icmp(5001), back, end(UDP)], {OLD})
    assert life.end is None


def test_a_pods_name_is_not_asked_for_when_the_workload_is_unknown() -> None:
    life = live(Proto.UDP, [*s.alive(UDP, 4999), moved(OTHER)], frozenset())
    assert classify(life) == (Outcome.SEVERED, Mechanism.REHOMED)


def test_a_pod_that_nobody_saw_may_be_one_of_the_workload() -> None:
    """With a gap in the watch of the pods the flow was taken over, and nobody knows by whom."""
    history = [*s.alive(UDP, 4999), moved(OTHER)]
    known = classify(live(Proto.UDP, history, {OLD, NEW}))
    assert known == (Outcome.SEVERED, Mechanism.FOREIGN_RESPONDER)
    gap = classify(live(Proto.UDP, history, {OLD, NEW}, all_pods_known=False))
    assert gap == (Outcome.SEVERED, Mechanism.NONE)


ENDS = [BYE, FIN, RST, EPIPE, TIMEOUT, HOST_DOWN, GARBAGE, LOST, GONE, end(UDP)]
SIGNS = [icmp(5001), icmp(5001, 1), moved(), moved(OTHER), *s.alive(UDP, 4999)]
EVENTS = st.sampled_from([*ENDS, *SIGNS])


@given(st.lists(EVENTS, max_size=12), st.sampled_from(Proto))
def test_any_history_has_a_verdict(history: list[Observation], proto: Proto) -> None:
    life = live(proto, history, {OLD, NEW})
    outcome, mechanism = classify(life)
    assert outcome in Outcome
    assert mechanism in Mechanism
    if outcome is Outcome.SURVIVED:
        assert life.end is None


@given(st.lists(EVENTS, max_size=12), st.sampled_from(Proto))
def test_what_comes_after_a_proven_end_changes_nothing(
    history: list[Observation], proto: Proto
) -> None:
    life = live(proto, history, {OLD, NEW})
    if life.state in ABSORBING:
        longer = live(proto, [*history, FIN, moved(), icmp(9000), end(UDP)], {OLD, NEW})
        assert (longer.state, longer.end) == (life.state, life.end)
