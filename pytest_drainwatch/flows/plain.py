"""A protocol of which only bytes are known: what is sent, and what an answer looks like.

Nobody who answers says who he is, so replies are of an anonymous responder; the recording's
other sources tell whose flow it is, or nobody does.
"""

from __future__ import annotations

import re
import socket
import struct
from dataclasses import dataclass, fields

from pytest_drainwatch.core.scenario.workload import MOST_BYTES, SEQ_GROUP, SEQ_PLACE
from pytest_drainwatch.flows.fields import ConfigError, check_object
from pytest_drainwatch.flows.protocol import Adapter, Frame, Reply

ANONYMOUS = ""
# An answer may be long; what is older than this and matches nothing is let go of.
BUFFER_LIMIT = 64 * 1024

# Nothing is said on a connection that is merely held: keepalives ask the peer's kernel.
KEEPALIVE = (("TCP_KEEPIDLE", 1), ("TCP_KEEPINTVL", 1), ("TCP_KEEPCNT", 5))
# struct tcp_info: tcpi_last_ack_recv, in milliseconds.
_LAST_ACK = struct.Struct("=56xI")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request and a regular expression for its answer, each byte as a Latin-1 character."""

    send: str | None = None
    expect: str | None = None

    @classmethod
    def of(cls, send: bytes | None, expect: bytes | None) -> Exchange:
        """From bytes."""
        return cls(send=_text(send), expect=_text(expect))

    @property
    def pattern(self) -> re.Pattern[bytes] | None:
        """What an answer matches; None: anything is one."""
        return None if self.expect is None else re.compile(self.expect.encode("latin-1"))

    def request(self, seq: int) -> bytes:
        """The bytes of request ``seq``."""
        return (self.send or "").encode("latin-1").replace(SEQ_PLACE, b"%d" % seq)

    def adapter(self, *, stream: bool) -> Adapter:
        """One flow's side of it."""
        return PlainStream(self) if stream else PlainDatagram(self)


class PlainStream:
    """Over a byte stream: the n-th match answers the n-th request."""

    __slots__ = ("_answered", "_asked", "_buffer", "_exchange", "_pattern")

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._pattern = exchange.pattern
        self._asked = self._answered = 0
        self._buffer = b""

    def request(self, seq: int, introduce: bool, at_ns: int) -> bytes:
        self._asked = seq
        return self._exchange.request(seq)

    def receive(self, data: bytes) -> list[Frame]:
        if self._pattern is None:
            return self._replies(self._asked - self._answered)
        buffer = self._buffer + data
        matches, end = 0, 0
        while (match := self._pattern.search(buffer, end)) is not None and match.end() > end:
            matches, end = matches + 1, match.end()
        self._buffer = buffer[end:][-BUFFER_LIMIT:]
        # A peer may say more than it is asked, a greeting for one: that answers nothing.
        return self._replies(min(matches, self._asked - self._answered))

    @property
    def pending(self) -> int:
        return len(self._buffer)

    def _replies(self, count: int) -> list[Frame]:
        first = self._answered + 1
        self._answered += count
        return [_reply(seq) for seq in range(first, first + count)]


class PlainDatagram:
    """Over datagrams: one that matches answers the request that it names, or the latest."""

    __slots__ = ("_asked", "_exchange", "_pattern")

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._pattern = exchange.pattern
        self._asked = 0

    def request(self, seq: int, introduce: bool, at_ns: int) -> bytes:
        self._asked = seq
        return self._exchange.request(seq)

    def receive(self, data: bytes) -> list[Frame]:
        seq = seq_of(self._pattern, data, self._asked)
        return [] if seq is None else [_reply(seq)]

    @property
    def pending(self) -> int:
        return 0


def seq_of(pattern: re.Pattern[bytes] | None, data: bytes, latest: int) -> int | None:
    """Which request the bytes answer; None: none."""
    if pattern is None:
        return latest
    match = pattern.search(data)
    if match is None:
        return None
    if SEQ_GROUP not in pattern.groupindex:
        return latest
    said = match[SEQ_GROUP] or b""
    return int(said) if said.isdigit() and 0 < int(said) <= latest else None


def keep_alive(sock: socket.socket) -> None:
    """Have the kernel ask the peer's every second, and give up after five."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE:
        if (option := getattr(socket, name, None)) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def since_last_ack_ms(sock: socket.socket) -> int | None:
    """How long ago the peer's kernel last acknowledged anything; None: not told."""
    try:
        told = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_ACK.size)
        (ago_ms,) = _LAST_ACK.unpack(told)
    except (OSError, struct.error):
        return None
    return int(ago_ms)


def parse_exchange(name: str, raw: object) -> Exchange:
    """An exchange of a configuration. Raises :class:`ConfigError`."""
    known = check_object(name, raw, {f.name for f in fields(Exchange)})
    for each, value in known.items():
        if value is None:
            continue
        if not isinstance(value, str) or not value or len(value) > MOST_BYTES:
            raise ConfigError(f"{name}.{each} is no text; expected 1 to {MOST_BYTES} characters")
        if any(ord(one) > 255 for one in value):
            raise ConfigError(f"{name}.{each} has characters beyond Latin-1; expected bytes")
    exchange = Exchange(**known)  # type: ignore[arg-type]
    try:
        exchange.pattern  # noqa: B018
    except re.error as error:
        raise ConfigError(f"{name}.expect is no pattern: {error.msg}; expected one") from None
    return exchange


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("latin-1")


def _reply(seq: int) -> Reply:
    return Reply(seq=seq, received_ns=0, sent_ns=0, responder=ANONYMOUS)
