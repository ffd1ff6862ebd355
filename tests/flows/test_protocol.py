"""Framing: any cutting of the stream gives the same frames, and nothing crashes it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.flows.protocol import (
    LINE_LIMIT,
    Farewell,
    Frame,
    Garbage,
    LineDatagram,
    LineStream,
    Reply,
    parse_line,
    request,
    sequence_of,
)

PONG = b"pong 12 345 678 uid-1/00ff00ff00ff00ff"
REPLY = Reply(seq=12, received_ns=345, sent_ns=678, responder="uid-1/00ff00ff00ff00ff")


def test_a_reply_with_and_without_a_clock() -> None:
    assert parse_line(PONG) == REPLY
    named = parse_line(PONG + b" clock=boot/4026531834")
    assert isinstance(named, Reply)
    assert named.clock == "boot/4026531834"


def test_a_farewell() -> None:
    assert parse_line(b"bye 7 drain-deadline") == Farewell(seq=7, reason="drain-deadline")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"pong",
        b"pong 1 2 3",
        b"pong 1 2 3 no-nonce",
        b"pong 1 2 3 uid/",
        b"pong 1 2 3 a/b/c",
        b"pong x 2 3 uid/nonce",
        b"pong -1 2 3 uid/nonce",
        b"pong 1 2 3 uid/nonce ",
        b"pong 1 2 3 uid/nonce clock=",
        b"pong 1 2 3 uid/nonce\r",
        b"pong 1 2 3 \xff/nonce",
        b"bye 1",
        b"bye x drain-deadline",
        b"pong 1 2 3 uid/" + b"n" * LINE_LIMIT,
    ],
)
def test_almost_a_line_is_garbage(line: bytes) -> None:
    frame = parse_line(line)
    assert isinstance(frame, Garbage)
    assert frame.length == len(line)
    assert frame.starts.isprintable()


LINES = st.lists(
    st.one_of(
        st.just(PONG),
        st.just(b"bye 3 drain-deadline"),
        st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")),
        st.integers(LINE_LIMIT - 2, LINE_LIMIT * 3).map(lambda n: b"x" * n),
    ),
    max_size=8,
)


@given(lines=LINES, tail=st.binary(max_size=30), cuts=st.lists(st.integers(0, 5000), max_size=12))
def test_how_the_stream_is_cut_changes_nothing(
    lines: list[bytes], tail: bytes, cuts: list[int]
) -> None:
    tail = tail.replace(b"\n", b"")
    data = b"".join(line + b"\n" for line in lines) + tail
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    stream = LineStream()
    got: list[Frame] = []
    for begin, end in itertools.pairwise(places):
        got += stream.receive(data[begin:end])
    assert [_kind(frame) for frame in got] == [_kind(parse_line(line)) for line in lines]
    assert stream.pending == len(tail)


def test_an_over_long_line_takes_no_memory() -> None:
    stream = LineStream()
    for received in range(1, 100):
        assert stream.receive(b"x" * 100) == []
        assert stream.pending == received * 100
        assert len(stream._buffer) <= LINE_LIMIT
    (frame,) = stream.receive(b"\n")
    assert isinstance(frame, Garbage)
    assert frame.length == 9900
    assert stream.receive(PONG + b"\n") == [REPLY]


def test_a_datagram_is_one_line() -> None:
    assert LineDatagram().receive(PONG + b"\n") == [REPLY]
    for data in (PONG, PONG + b"\n" + PONG + b"\n", b""):
        (frame,) = LineDatagram().receive(data)
        assert isinstance(frame, Garbage)
        assert frame.length == len(data)


def test_requests() -> None:
    assert request(5, introduce=True) == b"hello 5\n"
    assert request(5, introduce=False) == b"ping 5\n"
    assert sequence_of(request(5, introduce=True)) == 5
    assert sequence_of(b"ping 5") is None, "an ICMP error may quote only the beginning"


def _kind(frame: Frame) -> object:
    # An over-long line is not kept, so what it starts with is not known at its end.
    return ("garbage", frame.length) if isinstance(frame, Garbage) else frame
