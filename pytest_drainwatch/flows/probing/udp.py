"""An attempt over UDP: one datagram from a socket of its own, and its answer."""

from __future__ import annotations

import socket
from time import monotonic_ns

from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.flows import icmp
from pytest_drainwatch.flows.icmp import errno_name
from pytest_drainwatch.flows.probing.attempt import Attempt
from pytest_drainwatch.flows.protocol import LINE_LIMIT


class UdpAttempt(Attempt):
    """One question; errors are read from the socket's queue (FACTS K18)."""

    __slots__ = ()

    @property
    def asked(self) -> bool:
        return True

    def begin(self) -> None:
        try:
            sock = self._open(socket.SOCK_DGRAM)
            icmp.enable(sock)
            self._bind(sock)
            sock.connect(self._remote)
        except OSError as error:
            self.cannot(errno_name(error.errno))
            return
        self.begun_ns = monotonic_ns()
        try:
            sock.send(self._question())
        except OSError as error:
            self._not_sent(sock, errno_name(error.errno))

    def _not_sent(self, sock: socket.socket, name: str) -> None:
        """The send failed. A rule of this host that rejects (kube-proxy's, where we run on a
        node) lets it fail with EPERM and says why in an ICMP message."""
        told = icmp.read_one(sock)
        if told is None:
            self._failed_at_once(name)
        else:
            self._failed(told.errno, monotonic_ns())

    def _look(self, *, readable: bool) -> None:
        if not readable:
            return
        assert self.sock is not None
        while self.result is None:
            error = icmp.read_one(self.sock)
            if error is not None:
                self._failed(error.errno, monotonic_ns())
                return
            try:
                data = self.sock.recv(4 * LINE_LIMIT)
            except BlockingIOError:
                return
            self._take(data, monotonic_ns())

    def _take(self, data: bytes, at_ns: int) -> None:
        """See whether a datagram is an answer."""
        self._take_line(data[:-1] if data.endswith(b"\n") else b"", at_ns)

    def _give_up(self) -> None:
        self._settle(Result.TIMEOUT, monotonic_ns())
