"""One attempt: a new socket, one request, and what became of it.

An attempt is driven from outside: :meth:`Attempt.begin` opens it, :meth:`Attempt.advance`
looks at its socket, :meth:`Attempt.expire` gives it up. Whichever learns the result
stamps it and closes the socket.
"""

from __future__ import annotations

import errno
import socket
import struct
from abc import ABC, abstractmethod
from contextlib import suppress
from time import monotonic_ns

from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.flows import icmp
from pytest_drainwatch.flows.dial import IP_BIND_ADDRESS_NO_PORT
from pytest_drainwatch.flows.icmp import errno_name
from pytest_drainwatch.flows.probing.config import ProberConfig
from pytest_drainwatch.flows.probing.ports import SourcePorts
from pytest_drainwatch.flows.probing.runs import Settled
from pytest_drainwatch.flows.protocol import LINE_LIMIT, Farewell, Reply, parse_line, request

# An RST instead of a FIN. At 200 attempts a second a FIN would leave 200 ports a second in
# TIME_WAIT here for a minute, and as many conntrack entries in the node for two.
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_PENDING = frozenset({errno.EINPROGRESS, errno.EALREADY})
_OPEN = frozenset({0, errno.EISCONN})
# What the path answers with; anything else was never said by a peer.
_BY_ERRNO = {
    "ECONNREFUSED": Result.REFUSED,
    "ECONNRESET": Result.RESET,
    "ECONNABORTED": Result.RESET,
    "EPIPE": Result.RESET,
    "EHOSTUNREACH": Result.UNREACHABLE,
    "ENETUNREACH": Result.UNREACHABLE,
    "EHOSTDOWN": Result.UNREACHABLE,
    "ENONET": Result.UNREACHABLE,
    "ENOPROTOOPT": Result.UNREACHABLE,
    "ETIMEDOUT": Result.TIMEOUT,
}


class Attempt(ABC):
    """One attempt of slot ``slot``; ``result`` is None until it is known."""

    __slots__ = (
        "_config",
        "_remote",
        "begun_ns",
        "errno",
        "fd",
        "responder",
        "result",
        "slot",
        "sock",
        "took_ns",
    )

    def __init__(self, config: ProberConfig, slot: int) -> None:
        self.slot = slot
        self.result: Result | None = None
        self.responder: str | None = None
        self.errno: str | None = None
        self.sock: socket.socket | None = None
        self.fd = -1
        self.begun_ns = monotonic_ns()
        self.took_ns = 0
        self._config = config
        self._remote = (config.address, config.port)

    @property
    def deadline_ns(self) -> int:
        """When to give it up."""
        return self.begun_ns + self._config.patience_ns

    def settled(self) -> Settled | None:
        """For the books; None until the result is known."""
        if self.result is None:
            return None
        return Settled(
            self.slot, self.begun_ns, self.took_ns, self.result, self.responder, self.errno
        )

    @abstractmethod
    def begin(self) -> None:
        """Open the socket; what this machine lacks is a result too."""

    @abstractmethod
    def advance(self, *, readable: bool) -> None:
        """Something happened on the socket; ``readable``: it may have data or an error."""

    def expire(self) -> None:
        """Its time is over: look once more, for the loop may have been late, and give it up."""
        self.advance(readable=True)
        if self.result is None:
            self._give_up()

    def abandon(self) -> None:
        """The prober stops: look once more, and close."""
        self.advance(readable=True)
        if self.result is None:
            self._settle(Result.UNFINISHED, monotonic_ns())

    @abstractmethod
    def _give_up(self) -> None:
        """Nothing came."""

    def _open(self, kind: socket.SocketKind) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._remote[0] else socket.AF_INET
        self.sock = socket.socket(family, kind | socket.SOCK_NONBLOCK)
        self.fd = self.sock.fileno()
        return self.sock

    def _failed(self, name: str, at_ns: int) -> None:
        """An error of the socket. One that no path and no peer can cause is our own."""
        self._settle(_BY_ERRNO.get(name, Result.CLIENT_LIMIT), at_ns, error=name)

    def _cannot(self, name: str) -> None:
        """This machine did not even let us begin."""
        self._settle(Result.CLIENT_LIMIT, monotonic_ns(), error=name)

    def _settle(
        self,
        result: Result,
        at_ns: int,
        *,
        responder: str | None = None,
        error: str | None = None,
    ) -> None:
        self.result = result
        self.responder = responder
        self.errno = error
        self.took_ns = at_ns - self.begun_ns
        if self.sock is not None:
            self.sock.close()

    def _take_line(self, line: bytes, at_ns: int) -> None:
        frame = parse_line(line)
        if isinstance(frame, Reply) and frame.seq == self._seq:
            self._settle(Result.ANSWERED, at_ns, responder=frame.responder)
        elif isinstance(frame, Farewell):
            self._settle(Result.NEVER_SERVED, at_ns)
        else:
            self._settle(Result.FOREIGN, at_ns)

    @property
    def _seq(self) -> int:
        return self.slot + 1  # sequence numbers count from 1


class TcpAttempt(Attempt):
    """Connect, ask once, wait for the answer."""

    __slots__ = ("_asked_ns", "_received")

    def __init__(self, config: ProberConfig, slot: int) -> None:
        super().__init__(config, slot)
        self._asked_ns: int | None = None  # None: not accepted yet
        self._received = b""

    @property
    def deadline_ns(self) -> int:
        """Who was asked late, by a loop that was, has as long to answer as the others."""
        patience_ns, asked_ns = self._config.patience_ns, self._asked_ns
        if asked_ns is not None and asked_ns - self.begun_ns > patience_ns // 2:
            return asked_ns + patience_ns
        return self.begun_ns + patience_ns

    def begin(self) -> None:
        try:
            sock = self._open(socket.SOCK_STREAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            if self._config.source_address is not None:
                # Let connect choose the port: it may be shared with other destinations.
                sock.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
                sock.bind((self._config.source_address, 0))
        except OSError as error:
            self._cannot(errno_name(error.errno))
            return
        self.begun_ns = monotonic_ns()
        number = sock.connect_ex(self._remote)
        if number not in _PENDING and number not in _OPEN:
            self._failed(errno_name(number), monotonic_ns())

    def advance(self, *, readable: bool) -> None:
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
            # Nobody listens there and the kernel gave us that very port.
            self._failed("ECONNREFUSED", monotonic_ns())
            return
        self._asked_ns = monotonic_ns()
        try:
            self.sock.send(request(self._seq, introduce=False))
        except OSError as error:
            self._not_asked(errno_name(error.errno), monotonic_ns())

    def _not_asked(self, name: str, at_ns: int) -> None:
        """The send failed: perhaps the peer had said bye before. An EOF is no FIN by now."""
        assert self.sock is not None
        with suppress(OSError):
            line, ended, _ = self.sock.recv(2 * LINE_LIMIT).partition(b"\n")
            if ended:
                self._take_line(line, monotonic_ns())
                return
        self._failed(name, at_ns)

    def _read(self) -> None:
        assert self.sock is not None
        try:
            data = self.sock.recv(2 * LINE_LIMIT)
        except BlockingIOError:
            return
        except OSError as error:
            self._failed(errno_name(error.errno), monotonic_ns())
            return
        at_ns = monotonic_ns()
        received = self._received = self._received + data
        line, ended, _ = received.partition(b"\n")
        if ended or len(received) > LINE_LIMIT:
            self._take_line(line, at_ns)
        elif not data:
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


class UdpAttempt(Attempt):
    """One datagram from a source port that was not used lately; see ports.py for why."""

    __slots__ = ("_ports",)

    def __init__(self, config: ProberConfig, slot: int, ports: SourcePorts) -> None:
        super().__init__(config, slot)
        self._ports = ports

    def begin(self) -> None:
        try:
            sock = self._open(socket.SOCK_DGRAM)
            icmp.enable(sock)
            self._ports.bind(sock, self._config.source_address or "")
        except OSError as error:
            self._cannot(errno_name(error.errno))
            return
        try:
            sock.connect(self._remote)
            self.begun_ns = monotonic_ns()
            sock.send(request(self._seq, introduce=False))
        except OSError as error:
            self._failed(errno_name(error.errno), monotonic_ns())

    def advance(self, *, readable: bool) -> None:
        if not readable:
            return
        assert self.sock is not None
        error = icmp.read_one(self.sock)
        if error is not None:
            self._failed(error.errno, monotonic_ns())
            return
        try:
            data = self.sock.recv(4 * LINE_LIMIT)
        except BlockingIOError:
            return
        except OSError as failed:
            self._failed(errno_name(failed.errno), monotonic_ns())
            return
        at_ns = monotonic_ns()
        self._take_line(data[:-1] if data.endswith(b"\n") else b"", at_ns)

    def _give_up(self) -> None:
        self._settle(Result.TIMEOUT, monotonic_ns())
