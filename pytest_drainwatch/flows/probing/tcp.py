"""An attempt over TCP: connect, ask once, wait for the answer."""

from __future__ import annotations

import errno
import socket
import struct
from contextlib import suppress
from time import monotonic_ns

from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.flows.icmp import errno_name
from pytest_drainwatch.flows.probing.attempt import Attempt
from pytest_drainwatch.flows.probing.config import ProberConfig
from pytest_drainwatch.flows.probing.ports import SourcePorts
from pytest_drainwatch.flows.protocol import LINE_LIMIT

# An RST instead of a FIN. At 200 attempts a second a FIN would leave 200 ports a second in
# TIME_WAIT here for a minute, and as many conntrack entries in the node for two.
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_PENDING = frozenset({errno.EINPROGRESS, errno.EALREADY})
_OPEN = frozenset({0, errno.EISCONN})
# struct tcp_info: tcpi_total_retrans, all segments that were sent again, is its last field.
_TCP_INFO = struct.Struct("=100xI")


class TcpAttempt(Attempt):
    """A new connection; closed with an RST."""

    __slots__ = ("_asked_ns", "_received")

    def __init__(self, config: ProberConfig, slot: int, ports: SourcePorts, every: int = 1) -> None:
        super().__init__(config, slot, ports, every)
        self._asked_ns: int | None = None  # None: not accepted yet
        self._received = b""

    @property
    def deadline_ns(self) -> int:
        """Who was asked late, by a loop that was, has as long to answer as the others."""
        patience_ns, asked_ns = self._config.patience_ns, self._asked_ns
        if asked_ns is not None and asked_ns - self.begun_ns > patience_ns // 2:
            return asked_ns + patience_ns
        return self.begun_ns + patience_ns

    @property
    def asked(self) -> bool:
        return self._asked_ns is not None

    def begin(self) -> None:
        try:
            sock = self._open(socket.SOCK_STREAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self._bind(sock)
            self.begun_ns = monotonic_ns()
            number = sock.connect_ex(self._remote)
        except OSError as error:
            self.cannot(errno_name(error.errno))
            return
        if number not in _PENDING and number not in _OPEN:
            self._failed_at_once(errno_name(number))

    def _look(self, *, readable: bool) -> None:
        if self._asked_ns is None:
            self._connect()
            if self.result is not None or self._asked_ns is None:
                return
        if readable:
            self._read()

    def _connect(self) -> None:
        """Whether the peer has accepted; if so, ask."""
        assert self.sock is not None
        # An ICMP error that came while connect held the socket is told by SO_ERROR alone.
        number = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        number = number or self.sock.connect_ex(self._remote)
        if number in _PENDING:
            return
        if number not in _OPEN:
            self._failed(errno_name(number), monotonic_ns())
            return
        if self.sock.getsockname()[:2] == self._remote:
            # Nobody listens there and we have that very port: no peer, and no word of one.
            self._settle(Result.REFUSED, monotonic_ns())
            return
        if self._repeated_syn():
            # A late loop finds the connection that the second SYN made, a second after a
            # first one that went nowhere. Every client waits that second.
            self._settle(Result.TIMEOUT, monotonic_ns())
            return
        self._accepted()

    def _accepted(self) -> None:
        """It was accepted: ask."""
        assert self.sock is not None
        self._asked_ns = monotonic_ns()
        try:
            self.sock.send(self._question())
        except OSError as error:
            self._not_asked(errno_name(error.errno), monotonic_ns())

    def _repeated_syn(self) -> bool:
        """Whether anything had to be sent again, before anything but a SYN was sent.

        A request that is lost later is another matter: the connection was accepted.
        """
        assert self.sock is not None
        told = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        (repeated,) = _TCP_INFO.unpack(told)
        return bool(repeated)

    def _not_asked(self, name: str, at_ns: int) -> None:
        """The send failed: perhaps the peer had said bye before. An EOF is no FIN by now."""
        assert self.sock is not None
        with suppress(OSError):
            received = self.sock.recv(2 * LINE_LIMIT)
            if received:
                self._take(received, monotonic_ns(), ended=False)
            if self.result is not None:
                return
        self._failed(name, at_ns)

    def _read(self) -> None:
        assert self.sock is not None
        while self.result is None:
            try:
                data = self.sock.recv(2 * LINE_LIMIT)
            except BlockingIOError:
                return
            at_ns = monotonic_ns()
            received = self._received = self._received + data
            self._take(received, at_ns, ended=not data)

    def _take(self, received: bytes, at_ns: int, *, ended: bool) -> None:
        """See whether what came so far is an answer; ``ended``: nothing more will come."""
        line, whole, _ = received.partition(b"\n")
        if whole or len(received) > LINE_LIMIT:
            self._take_line(line, at_ns)
        elif ended:
            self._settle(self._unserved(), at_ns)

    def _give_up(self) -> None:
        now_ns = monotonic_ns()
        if self._asked_ns is None:
            self._settle(Result.TIMEOUT, now_ns)
        elif now_ns >= self.deadline_ns:  # which moves if it was asked just now
            self._settle(self._unserved(), now_ns)

    def _unserved(self) -> Result:
        """Of a torn line: whether it began as one of the probe's."""
        ours = any(
            self._received[: len(word)] == word[: len(self._received)]
            for word in (b"pong ", b"bye ")
        )
        return Result.NEVER_SERVED if ours else Result.FOREIGN
