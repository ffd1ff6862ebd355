"""What goes over a flow, sans-io: bytes in, frames out.

An :class:`Adapter` is the seam at which other protocols plug in: it turns a
sequence number into the bytes of a request, and received bytes into frames. It
holds no socket and reads no clock. This module holds the probe's own protocol:
ASCII lines of at most 512 bytes (see probe_image/probe.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

LINE_LIMIT = 512
SAMPLE = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer, its responder, and when that received and sent (on its own clock)."""

    seq: int
    received_ns: int
    sent_ns: int
    responder: str
    clock: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Farewell:
    """The peer says that it will close."""

    seq: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbage:
    """Bytes that are no frame: how many, and how they start."""

    length: int
    starts: str


Frame = Reply | Farewell | Garbage


class Adapter(Protocol):
    """One flow's protocol state."""

    def request(self, seq: int, introduce: bool, at_ns: int) -> bytes:
        """The request ``seq``, sent at ``at_ns``; ``introduce`` asks the peer for its clock."""

    def receive(self, data: bytes) -> list[Frame]:
        """What ``data`` completes."""

    @property
    def pending(self) -> int:
        """Received bytes that do not make a frame yet."""


class LineStream:
    """The probe's protocol over a byte stream; lines may arrive in any pieces."""

    __slots__ = ("_buffer", "_discarded")

    def __init__(self) -> None:
        self._buffer = b""
        self._discarded = 0  # length so far of an over-long line

    def request(self, seq: int, introduce: bool, at_ns: int) -> bytes:
        return request(seq, introduce)

    def receive(self, data: bytes) -> list[Frame]:
        *lines, rest = (self._buffer + data).split(b"\n")
        frames: list[Frame] = []
        for line in lines:
            if self._discarded:
                frames.append(Garbage(length=self._discarded + len(line), starts="(over-long)"))
                self._discarded = 0
            else:
                frames.append(parse_line(line))
        if self._discarded or len(rest) > LINE_LIMIT:
            self._discarded += len(rest)
            rest = b""
        self._buffer = rest
        return frames

    @property
    def pending(self) -> int:
        return self._discarded + len(self._buffer)


class NoteDatagram:
    """A one-way flow's side, which signs with ``name``: what comes back was not asked for."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def request(self, seq: int, introduce: bool, at_ns: int) -> bytes:
        return note(seq, at_ns, self._name)

    def receive(self, data: bytes) -> list[Frame]:
        return [_garbage(data)]

    @property
    def pending(self) -> int:
        return 0


class LineDatagram:
    """The probe's protocol over datagrams: each is exactly one line."""

    __slots__ = ()

    def request(self, seq: int, introduce: bool, at_ns: int) -> bytes:
        return request(seq, introduce)

    def receive(self, data: bytes) -> list[Frame]:
        if data.endswith(b"\n") and data.count(b"\n") == 1:
            return [parse_line(data[:-1])]
        return [_garbage(data)]

    @property
    def pending(self) -> int:
        return 0


def request(seq: int, introduce: bool) -> bytes:
    """``hello`` until the responder has named its clock, ``ping`` from then on."""
    return b"%s %d\n" % (b"hello" if introduce else b"ping", seq)


def note(seq: int, sent_ns: int, flow: str) -> bytes:
    """What a one-way flow sends: nobody answers it, so it says itself when it was sent, and
    whose it is, for a path that translates addresses makes all flows look alike."""
    return b"note %d %d %s\n" % (seq, sent_ns, flow.encode())


def sequence_of(quoted: bytes) -> int | None:
    """The sequence number of our own request, as an ICMP error quotes it."""
    match = _REQUEST.match(quoted)
    return int(match[1]) if match else None


def stamp_of(quoted: bytes) -> int | None:
    """When our own note was sent, as an ICMP error quotes it."""
    match = _NOTE.match(quoted)
    return int(match[1]) if match else None


def parse_line(line: bytes) -> Frame:
    """One line without its line feed."""
    if len(line) <= LINE_LIMIT:
        if match := _PONG.fullmatch(line):
            clock = match[5]
            return Reply(
                seq=int(match[1]),
                received_ns=int(match[2]),
                sent_ns=int(match[3]),
                responder=match[4].decode(),
                clock=clock.decode() if clock else None,
            )
        if match := _BYE.fullmatch(line):
            return Farewell(seq=int(match[1]), reason=match[2].decode())
    return _garbage(line)


_NUMBER = rb"(\d{1,19})"
_PONG = re.compile(
    rb"pong " + rb" ".join([_NUMBER] * 3) + rb" ([!-.0-~]{1,128}/[!-.0-~]{1,64})"
    rb"(?: clock=([!-~]{1,128}))?"
)
_BYE = re.compile(rb"bye " + _NUMBER + rb" ([a-z-]{1,64})")
_REQUEST = re.compile(rb"(?:ping|hello|note) (\d{1,19})[ \n]")
_NOTE = re.compile(rb"note \d{1,19} (\d{1,19}) ")


def _garbage(data: bytes) -> Garbage:
    starts = data[:SAMPLE].decode("ascii", "replace")
    return Garbage(length=len(data), starts="".join(c if c.isprintable() else "." for c in starts))
