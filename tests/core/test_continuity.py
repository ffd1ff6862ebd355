"""UDP continuity: what happened around the end, and that it never contradicts the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.flow.classify import Mechanism, Outcome, classify
from pytest_drainwatch.core.flow.life import FlowLife, live
from pytest_drainwatch.core.flow.report import flow_reports
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.udp.continuity import ANSWERING, Continuity, PhaseKind, RecoveredBy
from pytest_drainwatch.core.udp.phases import continuity
from pytest_drainwatch.flows.ledger import Ledger
from pytest_drainwatch.flows.protocol import Reply
from tests.core import story as s
from tests.core.story import NEW, OLD, OTHER, at

UDP = "udp-0001"
MS = 1_000_000
WORKLOAD = {OLD, NEW}


def judged(history: Sequence[Observation]) -> tuple[FlowLife, Continuity]:
    life = live(Proto.UDP, history, WORKLOAD)
    found = continuity(life, history, s.T0)
    assert found is not None
    return life, found


def icmp(ms: float, code: int = 3, seq: int | None = None, count: int = 1) -> Observation:
    data = {} if seq is None else {"seq": seq}
    return s.client(Event.FLOW_ICMP, UDP, at(ms, ms + 1), type=3, code=code, count=count, **data)


def moved(to: str = NEW, lo: float = 4998.8, hi: float = 7400) -> Observation:
    return s.responder(UDP, to, lo, hi, previous=OLD)


def end(sent: int, **data: object) -> Observation:
    return s.client(Event.FLOW_OPEN_AT_END, UDP, at(40_000), sent=sent, **data)


ALIVE = s.alive(UDP, 4999)  # seq 1..100, the last one sent at 4998.8
LOST = s.unanswered(UDP, 5000, 7380, 120, end=7400)  # seq 101..220


def ms_of(bounds: tuple[int, int] | None) -> tuple[float, float] | None:
    return None if bounds is None else (bounds[0] / MS, bounds[1] / MS)


def test_a_flow_that_was_never_interrupted() -> None:
    _, found = judged([*ALIVE, end(100)])
    (phase,) = found.phases
    assert (phase.kind, phase.responder, phase.answered) == (PhaseKind.ALIVE, f"{OLD}/n", 100)
    assert (found.sent, found.answered, found.lost, found.outages) == (100, 100, 0, ())
    assert (found.recovered_at_ns, found.note) == (None, "never interrupted")


def test_a_move_with_a_gap_says_who_answered_and_for_how_long_nobody_did() -> None:
    """Case C03: old and new UID, and the downtime as an interval."""
    after = s.answered(UDP, NEW, 7399.5, 39_000, (221, 2000))
    life, found = judged([*ALIVE, LOST, moved(), after, end(2000)])
    assert [p.kind for p in found.phases] == [PhaseKind.ALIVE, PhaseKind.LOST, PhaseKind.REHOMED]
    assert [p.responder for p in found.phases] == [f"{OLD}/n", None, f"{NEW}/n"]
    assert [(p.answered, p.lost) for p in found.phases] == [(100, 0), (0, 120), (1780, 0)]
    (outage,) = found.outages
    assert (outage.before, outage.after) == (f"{OLD}/n", f"{NEW}/n")
    assert life.end is not None
    assert ms_of(outage.began_ns) == ms_of((life.end.lo - s.T0, life.end.hi - s.T0))
    assert ms_of(found.recovered_at_ns) == (7380, 7400)
    # At least from the first to the last lost send, at most from good send to good reply.
    assert ms_of(found.gap_ns) == (2380, 2401.2)
    assert found.recovered_by is RecoveredBy.ANOTHER
    assert found.note is None


def test_a_move_without_a_loss_has_a_gap_of_nothing_to_one_exchange() -> None:
    after = s.answered(UDP, NEW, 5010, 39_000, (101, 2000))
    _, found = judged([*ALIVE, moved(hi=5011), after, end(2000)])
    assert [p.kind for p in found.phases] == [PhaseKind.ALIVE, PhaseKind.REHOMED]
    assert ms_of(found.gap_ns) == (0, 12.2)
    assert ms_of(found.recovered_at_ns) == (4998.8, 5011)


def test_recovery_by_the_same_responder_is_no_move() -> None:
    back = s.answered(UDP, OLD, 7399.5, 39_000, (221, 2000))
    _, found = judged([*ALIVE, LOST, back, end(2000)])
    assert [p.kind for p in found.phases][1:] == [PhaseKind.LOST, PhaseKind.RECOVERED]
    assert found.recovered_by is RecoveredBy.SAME
    assert ms_of(found.recovered_at_ns) == (7380, 7399.9)  # its longest round trip: 0.4 ms


def test_what_never_came_back_is_null_with_the_reason() -> None:
    """Case C02, the half that stays dark."""
    gone = s.unanswered(UDP, 5000, 39_990, 2000, end=40_000)
    life, found = judged([*ALIVE, gone, end(2100)])
    assert classify(life) == (Outcome.SEVERED, Mechanism.SILENCE)
    assert (found.recovered_at_ns, found.gap_ns, found.recovered_by) == (None, None, None)
    assert found.note == "did not come back within the observation window"
    assert found.lost == 2000
    _, torn = judged([*ALIVE, gone])
    assert torn.note is not None
    assert torn.note.startswith("not measured")
    assert torn.sent is None


def test_losses_before_a_refusal_are_a_phase_of_their_own() -> None:
    run = s.unanswered(UDP, 5000, 12_000, 400, end=40_000)  # seq 101..500
    history = [*ALIVE, icmp(5160, seq=105), icmp(8300, 1, seq=201), icmp(8301, 1, count=9), run]
    _, found = judged([*history, end(500)])
    kinds = [(p.kind, p.first_seq, p.last_seq, p.lost, p.errors) for p in found.phases[1:]]
    assert kinds == [
        (PhaseKind.LOST, 101, 104, 4, 0),
        (PhaseKind.REFUSED, 105, 200, 96, 1),
        (PhaseKind.UNREACHABLE, 201, 500, 300, 10),
    ]
    assert ms_of(found.phases[2].begins_ns) == (5160, 5161)


def test_losses_that_cannot_be_divided_are_counted_in_the_outage_only() -> None:
    run = s.unanswered(UDP, 5000, 12_000, 400, end=40_000)
    _, found = judged([*ALIVE, icmp(5160), icmp(8300, 1), run, end(500)])
    assert [p.lost for p in found.phases[1:]] == [None, None]
    assert (found.outages[0].lost, found.lost) == (400, 400)


def test_a_stranger_is_no_recovery() -> None:
    _, found = judged([*ALIVE, LOST, moved(OTHER), end(300)])
    assert found.phases[-1].kind is PhaseKind.FOREIGN
    assert (found.recovered_at_ns, found.recovered_by) == (None, RecoveredBy.FOREIGN)
    assert found.note is not None
    assert OTHER in found.note


def test_a_flow_that_starts_in_the_dark_recovers_when_somebody_answers() -> None:
    """Case C02, the half that comes back; the latency counts from the dial."""
    dark = s.unanswered(UDP, -5000, -3000, 4, end=-2000)
    first = s.responder(UDP, OLD, -5000, -2000)
    light = s.answered(UDP, OLD, -2001, 39_000, (5, 2000))
    life, found = judged([s.connected(UDP), dark, first, light, end(2000)])
    assert classify(life)[0] is Outcome.SURVIVED
    assert [p.kind for p in found.phases] == [PhaseKind.LOST, PhaseKind.ALIVE]
    assert found.recovered_by is RecoveredBy.FIRST
    assert ms_of(found.recovered_at_ns) == (-3000, -2000)
    assert ms_of(found.gap_ns) == (2000, 3000)


def test_what_is_merely_on_its_way_at_the_end_is_not_lost() -> None:
    tail = s.unanswered(UDP, 39_990, 39_999, 2, end=40_000)
    life, found = judged([*ALIVE, tail, end(102)])
    assert classify(life)[0] is Outcome.SURVIVED
    assert (found.lost, found.open, len(found.phases)) == (0, 2, 1)


def test_after_a_move_as_well_what_is_on_its_way_at_the_end_is_not_lost() -> None:
    answers = s.answered(UDP, NEW, 7399, 39_990, (300, 900))
    last = s.unanswered(UDP, 39_999.6, 39_999.6, 1, end=40_000)
    _, told = judged([*ALIVE, LOST, moved(), answers, last, end(900)])
    assert (told.open, len(told.outages)) == (1, 1)
    assert told.phases[-1].kind is PhaseKind.REHOMED
    # For longer than a way takes, it is an outage of its own.
    gone = s.unanswered(UDP, 36_000, 39_990, 240, end=40_000)
    _, told = judged([*ALIVE, LOST, moved(), answers, gone, end(900)])
    assert (told.open, len(told.outages)) == (0, 2)


def test_of_several_outages_the_verdict_s_is_shown_else_the_longest() -> None:
    short = s.unanswered(UDP, 5000, 5200, 10, end=5300)
    back = s.answered(UDP, OLD, 5299, 6999, (111, 200))
    long = s.unanswered(UDP, 7000, 9900, 180, end=10_000)
    again = s.answered(UDP, OLD, 9999, 20_000, (381, 900))
    _, found = judged([*ALIVE, short, back, long, again, end(900)])
    assert len(found.outages) == 2
    assert ms_of(found.recovered_at_ns) == (9900, 9999.4)
    move = s.responder(UDP, NEW, 19_999.8, 20_010, previous=OLD)
    life, found = judged([*ALIVE, short, back, long, again, move, end(900)])
    assert life.end is not None
    assert ms_of(found.recovered_at_ns) == (19_999.8, 20_010)


def test_old_recordings_are_judged_as_before() -> None:
    """Lines without the newer counts, and without the agent's totals."""
    _, found = judged([*ALIVE, LOST, moved(), s.answered(UDP, NEW, 7399, 9000, (221, 300))])
    assert (found.answered, found.lost, found.reordered, found.late) == (180, 120, 0, 0)


def test_case_c07_acks_of_another_instance_are_no_survival() -> None:
    """Acks 1..20 from instance A, 21..60 from B."""
    history = [
        s.connected(UDP),
        s.responder(UDP, OLD, 0, 1),
        s.answered(UDP, OLD, 0, 9500, (1, 20)),
        s.responder(UDP, NEW, 9499.8, 10_001, previous=OLD),
        s.answered(UDP, NEW, 10_000, 30_000, (21, 60)),
        end(60),
    ]
    (flow,) = flow_reports(history, s.T0, frozenset({OLD}), WORKLOAD)
    assert (flow.outcome, flow.mechanism) == (Outcome.SEVERED, Mechanism.REHOMED)
    assert flow.last_answered_seq == 20
    assert flow.continuity is not None
    assert flow.continuity.phases[-1].first_seq == 21


# --- whatever happens ------------------------------------------------------------------------

ARBITRARY = st.lists(
    st.sampled_from(
        [
            *ALIVE,
            LOST,
            s.unanswered(UDP, 5000, 5380, 20),
            s.unanswered(UDP, 5000, 39_000, 900),
            icmp(5001, seq=103),
            icmp(5001),
            icmp(8001, 1, seq=150),
            moved(),
            moved(OTHER),
            s.responder(UDP, OLD, 8000, 8001, previous=NEW),
            s.answered(UDP, OLD, 5100, 9000, (221, 400)),
            s.client(Event.FLOW_GARBAGE, UDP, at(5001, 5002), length=9),
            s.client(Event.FLOW_WRITE_ERROR, UDP, at(5001, 5002), errno="ENOBUFS"),
            s.client(Event.FLOW_READ_ERROR, UDP, at(5001, 5002), errno="ECONNRESET"),
        ]
    ),
    max_size=12,
)


@given(ARBITRARY, st.booleans())
def test_an_outage_begins_where_the_verdict_puts_the_end(
    history: list[Observation], to_the_end: bool
) -> None:
    history = [s.connected(UDP), *history, *([end(500)] if to_the_end else [])]
    life, found = judged(history)
    outcome, mechanism = classify(life)
    if life.end is not None:
        ended = (life.end.lo - s.T0, life.end.hi - s.T0)
        assert ended in [outage.began_ns for outage in found.outages]
    if outcome is Outcome.SURVIVED:
        assert all(o.recovered_at_ns for o in found.outages)
    if mechanism is Mechanism.REHOMED:
        assert PhaseKind.REHOMED in [p.kind for p in found.phases]
    for outage in found.outages:
        assert outage.gap_ns is None or outage.gap_ns[0] <= outage.gap_ns[1]
    counted = [o for o in history if o.event is Event.FLOW_ANSWERED]
    assert found.answered == sum(int(str(o.data["count"])) for o in counted)


class Client:
    """A ledger that is told what a path does to its datagrams."""

    def __init__(self) -> None:
        self.seen: list[Observation] = []
        self.ledger = Ledger(UDP, self.seen.append, s.T0)
        self.now = s.T0 + MS
        self.seen.append(s.client(Event.FLOW_CONNECTED, UDP, Interval(s.T0, self.now)))

    def run(self, what: str, count: int) -> None:
        for _ in range(count):
            self.now += 16 * MS
            self.ledger.sent(self.now)
            seq = self.ledger.next_seq - 1
            if what in (OLD, NEW, OTHER):
                self.reply(seq, what)
            elif what == "reorder" and self.ledger.responder and seq % 2 == 0:
                who = self.ledger.responder.partition("/")[0]
                self.reply(seq, who)
                self.reply(seq - 1, who)
            elif what.startswith("icmp"):
                code = int(what[-1])
                data = {"type": 3, "code": code, "seq": seq, "errno": "E"}
                lo, hi = self.now, self.now + MS
                self.ledger.trouble(Event.FLOW_ICMP, lo, hi, same=(code,), **data)

    def reply(self, seq: int, who: str) -> None:
        self.now += MS
        reply = Reply(seq=seq, received_ns=0, sent_ns=0, responder=f"{who}/n")
        self.ledger.reply(reply, self.now)

    def finish(self) -> list[Observation]:
        ledger = self.ledger
        self.now += MS
        ledger.close(self.now)
        totals = ledger.totals
        self.seen.append(
            s.client(
                Event.FLOW_OPEN_AT_END,
                UDP,
                Interval(self.now, self.now),
                sent=ledger.next_seq - 1,
                answered=ledger.answers,
                late=totals.late,
                duplicates=totals.duplicates,
            )
        )
        return self.seen


PATH = st.lists(
    st.tuples(
        st.sampled_from([OLD, OLD, NEW, OTHER, "lost", "reorder", "icmp3", "icmp1"]),
        st.one_of(st.integers(1, 8), st.integers(150, 260)),
    ),
    max_size=12,
)


@given(PATH)
def test_the_books_and_the_judge_agree(path: list[tuple[str, int]]) -> None:
    client = Client()
    for what, count in path:
        client.run(what, count)
    history = client.finish()
    life, found = judged(history)
    outcome, mechanism = classify(life)
    ledger = client.ledger
    assert found.sent == ledger.next_seq - 1
    assert found.sent == s.total(found.answered, found.lost, found.late, found.open)
    assert (found.answered, found.reordered) == (ledger.answers, ledger.totals.reordered)
    assert found.duplicated == ledger.totals.duplicates
    # every answer is in the phase of who gave it, phases and outages alternate
    kinds = [phase.kind for phase in found.phases]
    dark = [kind not in ANSWERING for kind in kinds]
    assert sum(dark) >= sum(1 for outage in found.outages if outage.lost)
    if outcome is Outcome.SURVIVED:
        assert life.end is None
        assert found.phases[-1].responder == ledger.first_responder
        assert {k for k in kinds if k in ANSWERING} <= {PhaseKind.ALIVE, PhaseKind.RECOVERED}
    if life.end is not None:
        shown = next(o for o in found.outages if o.began_ns[0] == life.end.lo - s.T0)
        assert shown.began_ns[1] == life.end.hi - s.T0
        assert found.recovered_at_ns == shown.recovered_at_ns
    if mechanism is Mechanism.SILENCE and outcome is Outcome.SEVERED:
        assert kinds[-1] is PhaseKind.LOST
        assert found.recovered_at_ns is None
    # Downtime and recovery hold the truth that the simulated path is made of.
    for outage in found.outages:
        if outage.recovered_at_ns is not None:
            assert outage.gap_ns is not None
            assert 0 <= outage.gap_ns[0] <= outage.gap_ns[1]
            assert outage.recovered_at_ns[1] >= outage.began_ns[0]
