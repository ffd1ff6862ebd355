"""One attempt: a new socket, one request, and what became of it.

An attempt is driven from outside: :meth:`Attempt.begin` opens it, :meth:`Attempt.advance`
looks at its socket, :meth:`Attempt.expire` gives it up. Whichever learns the result
stamps it and closes the socket.
"""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from time import monotonic_ns

from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.flows.icmp import errno_name
from pytest_drainwatch.flows.probing import causes
from pytest_drainwatch.flows.probing.config import ProberConfig
from pytest_drainwatch.flows.probing.ports import SourcePorts
from pytest_drainwatch.flows.probing.runs import Settled
from pytest_drainwatch.flows.protocol import Farewell, Reply, parse_line, request


class Attempt(ABC):
    """One attempt of slot ``slot``, of which ``every``-th ones are tried just then.

    ``result`` is None until it is known.
    """

    __slots__ = (
        "_config",
        "_ports",
        "_remote",
        "begun_ns",
        "errno",
        "every",
        "fd",
        "responder",
        "result",
        "slot",
        "sock",
        "took_ns",
    )

    def __init__(self, config: ProberConfig, slot: int, ports: SourcePorts, every: int = 1) -> None:
        self.slot, self.every = slot, every
        self.result: Result | None = None
        self.responder: str | None = None
        self.errno: str | None = None
        self.sock: socket.socket | None = None
        self.fd = -1
        self.begun_ns = monotonic_ns()
        self.took_ns = 0
        self._config = config
        self._ports = ports
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
            self.slot, self.begun_ns, self.took_ns, self.result,
            self.responder, self.errno, self.every,
        )  # fmt: skip

    @property
    @abstractmethod
    def asked(self) -> bool:
        """Whether the request was sent, so that only what comes back is waited for."""

    @abstractmethod
    def begin(self) -> None:
        """Open the socket; what this machine lacks is a result too."""

    def advance(self, *, readable: bool) -> None:
        """Something happened on the socket; ``readable``: it may have data or an error.

        It is told of each event once, so it looks until there is nothing more to see.
        """
        try:
            self._look(readable=readable)
        except OSError as error:
            self._failed(errno_name(error.errno), monotonic_ns())

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

    def cannot(self, name: str) -> None:
        """This machine lacks what an attempt needs."""
        self._settle(Result.CLIENT_LIMIT, monotonic_ns(), error=name)

    @abstractmethod
    def _look(self, *, readable: bool) -> None:
        """See what is there. Raises :class:`OSError` for an error of the socket."""

    @abstractmethod
    def _give_up(self) -> None:
        """Nothing came."""

    def _open(self, kind: socket.SocketKind) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._remote[0] else socket.AF_INET
        self.sock = socket.socket(family, kind | socket.SOCK_NONBLOCK)
        self.fd = self.sock.fileno()
        return self.sock

    def _bind(self, sock: socket.socket) -> None:
        self._ports.bind(sock, self._config.source_address or "")

    def _failed(self, name: str, at_ns: int) -> None:
        """An error that came later."""
        self._settle(causes.told_later(name), at_ns, error=name)

    def _failed_at_once(self, name: str) -> None:
        """An error that the very first call returned."""
        self._settle(causes.told_at_once(name), monotonic_ns(), error=name)

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

    def _question(self) -> bytes:
        """What is asked."""
        return request(self._seq, introduce=False)

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
