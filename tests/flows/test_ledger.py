"""The books: whatever happens, they balance, and a line is only written at a change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.flows.ledger import OUTSTANDING_LIMIT, Ledger
from pytest_drainwatch.flows.protocol import Reply

A, B = "pod-a/aa", "pod-b/bb"
MS = 1_000_000


class Books:
    """A ledger with a clock of its own that only moves when told."""

    def __init__(self) -> None:
        self.seen: list[Observation] = []
        self.ledger = Ledger("udp-0001", self.seen.append, 0)
        self.now = 1

    def send(self, count: int = 1) -> None:
        for _ in range(count):
            self.now += 16 * MS
            self.ledger.sent(self.now)

    def reply(self, seq: int, responder: str = A) -> int | None:
        self.now += MS
        reply = Reply(seq=seq, received_ns=0, sent_ns=0, responder=responder)
        return self.ledger.reply(reply, self.now)

    def exchange(self, count: int, responder: str = A) -> None:
        for _ in range(count):
            self.send()
            self.reply(self.ledger.next_seq - 1, responder)

    def close(self) -> list[tuple[Event, object]]:
        self.now += MS
        self.ledger.close(self.now)
        return [(o.event, o.data.get("count", o.data.get("responder"))) for o in self.seen]


def test_a_long_steady_stretch_is_one_line() -> None:
    books = Books()
    books.exchange(5000)
    assert books.close() == [(Event.FLOW_RESPONDER, A), (Event.FLOW_ANSWERED, 5000)]
    stretch = books.seen[1]
    assert (stretch.data["first_seq"], stretch.data["last_seq"]) == (1, 5000)
    assert stretch.data["rtt_min_ns"] == stretch.data["rtt_max_ns"] == MS
    assert stretch.at.lo == 1 + 16 * MS
    assert stretch.at.hi == books.now - MS
    assert stretch.data["last_sent_ns"] == stretch.at.hi - MS


def test_outstanding_is_not_lost_until_a_later_one_is_answered() -> None:
    books = Books()
    books.exchange(3)
    books.send(4)  # 4..7
    assert Event.FLOW_UNANSWERED not in [o.event for o in books.seen]
    books.reply(6)
    kinds = [(o.event, o.data.get("first_seq"), o.data.get("last_seq")) for o in books.seen[1:]]
    assert kinds == [(Event.FLOW_ANSWERED, 1, 3), (Event.FLOW_UNANSWERED, 4, 5)]
    assert books.close()[-2:] == [(Event.FLOW_ANSWERED, 1), (Event.FLOW_UNANSWERED, 1)]


def test_a_long_wait_closes_the_stretch_before_it() -> None:
    """If the agent is killed during a silence, what came before is on disk."""
    books = Books()
    books.exchange(3)
    books.send(80)
    assert [o.event for o in books.seen] == [Event.FLOW_RESPONDER, Event.FLOW_ANSWERED]


def test_a_move_lies_between_the_last_good_send_and_the_first_new_reply() -> None:
    books = Books()
    books.exchange(3)
    last_good = books.now - MS
    books.send(2)
    books.exchange(1, B)
    move = books.seen[-1]
    assert move.event is Event.FLOW_RESPONDER
    assert (move.at.lo, move.at.hi) == (last_good, books.now)
    assert move.data == {"responder": B, "clock": None, "seq": 6, "previous": A, "last_seq": 3}


def test_an_old_pods_last_words_are_late_and_no_move_back() -> None:
    books = Books()
    books.exchange(3)
    books.send(2)
    books.reply(5, B)
    assert books.reply(4, A) is None
    responders = [o.data["responder"] for o in books.seen if o.event is Event.FLOW_RESPONDER]
    assert responders == [A, B]
    books.exchange(1, A)  # but a new request that the old one answers is
    responders = [o.data["responder"] for o in books.seen if o.event is Event.FLOW_RESPONDER]
    assert responders == [A, B, A]


def test_a_repeated_error_is_two_lines_however_often() -> None:
    books = Books()
    books.exchange(2)
    for _ in range(50):
        books.send()
        books.ledger.trouble(
            Event.FLOW_ICMP, books.now, books.now + 1, same=(3, 3), type=3, code=3, seq=1
        )
    books.ledger.trouble(Event.FLOW_ICMP, books.now, books.now, same=(3, 1), type=3, code=1)
    books.exchange(1)
    icmp = [o.data for o in books.seen if o.event is Event.FLOW_ICMP]
    assert [(d["code"], d["count"]) for d in icmp] == [(3, 1), (1, 1), (3, 49)]
    assert "seq" not in icmp[-1]
    # and after an answer the same error is news again
    assert books.ledger.trouble(Event.FLOW_ICMP, books.now, books.now, same=(3, 3), type=3)


def test_hours_of_silence_take_no_more_memory() -> None:
    books = Books()
    books.exchange(1)
    books.send(OUTSTANDING_LIMIT + 500)
    assert len(books.ledger.outstanding) == OUTSTANDING_LIMIT
    assert books.close()[-1] == (Event.FLOW_UNANSWERED, OUTSTANDING_LIMIT + 500)


STEPS = st.lists(
    st.one_of(
        st.just(("send", 0, A)),
        st.tuples(st.just("reply"), st.integers(-3, 12), st.sampled_from([A, B, "x/y"])),
        st.just(("trouble", 0, A)),
    ),
    max_size=120,
)


@given(STEPS)
def test_the_books_balance(steps: list[tuple[str, int, str]]) -> None:
    """Every send is answered or unanswered, once; every interval and order is sound."""
    books = Books()
    answered = set()
    for kind, back, responder in steps:
        if kind == "send":
            books.send()
        elif kind == "trouble":
            books.ledger.trouble(Event.FLOW_ICMP, books.now, books.now, same=(3,), type=3)
        else:
            seq = books.ledger.next_seq - back
            if books.reply(seq, responder) is not None:
                assert seq not in answered, "one reply per request"
                answered.add(seq)
    books.close()
    stretches = [o for o in books.seen if o.event is Event.FLOW_ANSWERED]
    gaps = [o for o in books.seen if o.event is Event.FLOW_UNANSWERED]
    assert sum(_int(o, "count") for o in stretches) == len(answered)
    assert sum(_int(o, "count") for o in [*stretches, *gaps]) == books.ledger.next_seq - 1
    for o in [*stretches, *gaps]:
        assert _int(o, "first_seq") <= _int(o, "last_seq")
        assert _int(o, "count") <= _int(o, "last_seq") - _int(o, "first_seq") + 1
        assert o.at.lo <= _int(o, "last_sent_ns") <= o.at.hi
    # what was recorded is what the flow says of itself
    responders = [o.data["responder"] for o in books.seen if o.event is Event.FLOW_RESPONDER]
    assert (responders[-1] if responders else None) == books.ledger.responder
    assert books.ledger.outstanding == {}


def _int(seen: Observation, name: str) -> int:
    value = seen.data[name]
    assert isinstance(value, int)
    return value
