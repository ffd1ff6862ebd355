"""A protocol of which only bytes are known: which answer belongs to which request."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.flows.fields import ConfigError
from pytest_drainwatch.flows.plain import (
    BUFFER_LIMIT,
    Exchange,
    PlainDatagram,
    PlainStream,
    parse_exchange,
)
from pytest_drainwatch.flows.protocol import Frame, Reply

PING = Exchange(send="PING\r\n", expect=r"\+PONG\r\n")


def seqs(frames: list[Frame]) -> list[int]:
    assert all(isinstance(frame, Reply) and not frame.responder for frame in frames)
    return [frame.seq for frame in frames if isinstance(frame, Reply)]


def asked(adapter: PlainStream | PlainDatagram, count: int) -> None:
    for seq in range(1, count + 1):
        adapter.request(seq, False, 0)


def test_the_nth_match_answers_the_nth_request() -> None:
    stream = PlainStream(PING)
    assert stream.request(1, True, 0) == b"PING\r\n"
    asked(stream, 3)
    assert seqs(stream.receive(b"+PONG\r\n+PO")) == [1]
    assert stream.pending == 3
    assert seqs(stream.receive(b"NG\r\n+PONG\r\n")) == [2, 3]


def test_what_nobody_asked_for_answers_nothing() -> None:
    stream = PlainStream(PING)
    assert seqs(stream.receive(b"+PONG\r\nwelcome\r\n")) == []
    asked(stream, 1)
    assert seqs(stream.receive(b"news\r\n+PONG\r\n+PONG\r\n")) == [1]
    asked(stream, 2)
    assert seqs(stream.receive(b"-ERR\r\n")) == []


def test_without_a_pattern_whatever_comes_answers_all_that_was_asked() -> None:
    stream = PlainStream(Exchange(send="x"))
    assert seqs(stream.receive(b"greeting")) == []
    asked(stream, 2)
    assert seqs(stream.receive(b"y")) == [1, 2]
    assert seqs(stream.receive(b"yy")) == []


def test_what_matches_nothing_is_not_held_for_ever() -> None:
    stream = PlainStream(PING)
    asked(stream, 1)
    for _ in range(5):
        stream.receive(b"-" * BUFFER_LIMIT)
    assert stream.pending == BUFFER_LIMIT
    assert seqs(stream.receive(b"+PONG\r\n")) == [1]


def test_a_request_may_carry_its_number() -> None:
    exchange = Exchange.of(b"GET {seq}\x00\xff", None)
    assert exchange.request(7) == b"GET 7\x00\xff"


def test_a_datagram_names_the_request_that_it_answers_or_it_is_the_latest() -> None:
    named = PlainDatagram(Exchange(send="ping {seq}", expect=r"pong (?P<seq>\d+)"))
    asked(named, 5)
    assert seqs(named.receive(b"pong 3")) == [3]
    assert seqs(named.receive(b"pong 6")) == [], "not asked yet"
    assert seqs(named.receive(b"pong x")) == []
    latest = PlainDatagram(Exchange(send="ping", expect="pong"))
    asked(latest, 5)
    assert seqs(latest.receive(b"pong")) == [5]
    assert seqs(latest.receive(b"what?")) == []


@given(st.lists(st.sampled_from([b"+PONG\r\n", b"noise\r\n", b"+PO", b"NG\r\n"])), st.data())
def test_the_pieces_in_which_bytes_arrive_do_not_matter(
    said: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(said)
    one, other = PlainStream(PING), PlainStream(PING)
    asked(one, 100)
    asked(other, 100)
    expected = seqs(one.receive(whole))
    found, at = [], 0
    while at < len(whole):
        step = data.draw(st.integers(1, len(whole) - at))
        found += seqs(other.receive(whole[at : at + step]))
        at += step
    assert found == expected == list(range(1, whole.count(b"+PONG\r\n") + 1))


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"send": 3}, "plain.send is no text"),
        ({"send": ""}, "plain.send is no text"),
        ({"send": "☃"}, "beyond Latin-1"),
        ({"expect": "("}, "plain.expect is no pattern"),
        ({"say": "x"}, "say"),
    ],
)
def test_a_bad_exchange_is_refused_by_name(raw: object, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse_exchange("plain", raw)
