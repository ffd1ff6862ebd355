"""One connection of a lane: dialled, asked on, read to its end before an error is believed.

What the kernel hides, and what is done about it (see also ``flows/tcp.py``):

- A FIN or an RST may have come and not been read when a request is due. So the socket is read
  right before a request is written: what was there then, was there before the write.
- An error of ``send`` may be the reset that a whole response preceded. So what came is read
  first, and the error is believed last.
- Whoever reports a reset first consumes it: after ``send`` said ECONNRESET, an EOF is no FIN.
"""

from __future__ import annotations

import errno
import socket
from collections import deque
from time import monotonic_ns

from pytest_drainwatch.core.http.ending import Ending, Over, Pool
from pytest_drainwatch.flows.http.dialling import (
    begin,
    new_socket,
    refused_at_once,
    refused_later,
    shown,
)
from pytest_drainwatch.flows.http.message import Exchanges, NotHttp
from pytest_drainwatch.flows.http.request import Request
from pytest_drainwatch.flows.http.seams import Loop, Owner
from pytest_drainwatch.flows.icmp import errno_name
from pytest_drainwatch.flows.selector import DELIVERY_NS

READS_PER_TURN = 64  # of 64 KiB; a large answer must not starve the others
_PENDING = frozenset({errno.EINPROGRESS, errno.EALREADY})
_OPEN = frozenset({0, errno.EISCONN})


class Connection:
    """One socket. ``request`` is the one under way on it; ``over`` is None while it is open."""

    def __init__(self, loop: Loop, owner: Owner, number: int) -> None:
        self.number = number
        self.opened_ns = 0  # when the peer had accepted it
        self.local = ""
        self.over: Over | None = None
        self.over_ns = (0, 0)
        self.errno: str | None = None
        self.request: Request | None = None
        self.cut: Request | None = None  # that was under way when it was over
        self.answered = 0
        self.said_close = False
        self.unasked = False
        self.pooled = False  # whether it ever was
        self.responder: str | None = None
        self._loop, self._owner = loop, owner
        self._exchanges = Exchanges(loop.config)
        self._sock: socket.socket | None = None
        self._fd = -1
        self._rest = b""  # what the kernel did not take of the request
        self._quiet_ns = 0  # nothing was pending at this instant
        self._carried_ns: int | None = None  # the last turn did not read to the end
        self._pulled: deque[tuple[int, int, bytes | OSError]] = deque()

    @property
    def usable(self) -> bool:
        """Whether another request may be written on it, as far as is known."""
        return self.over is None and self.request is None and not self.unasked

    @property
    def gone(self) -> Pool:
        """Why it is not usable any more, for the request that was to use it."""
        if self.said_close:
            return Pool.ANNOUNCED
        if self.unasked:
            return Pool.UNASKED
        return {Over.FIN: Pool.FIN, Over.RST: Pool.RST, Over.READ_ERROR: Pool.RST}.get(
            self.over or Over.CLIENT, Pool.EMPTY
        )

    # --- dialling -------------------------------------------------------------------------

    def dial(self, request: Request) -> None:
        """Open it for this request; what this machine lacks ends the request as well."""
        self.request = request
        try:
            self._sock = sock = new_socket(self._loop.config)
            self._fd = sock.fileno()
            number = begin(sock, self._loop.config, self._loop.ports)
            if number not in _PENDING and number not in _OPEN:
                name = errno_name(number)
                self._fail(refused_at_once(name), name)
                return
            self._loop.watch_writes(self._fd, self._connected)
        except OSError as error:
            self._fail(Ending.CLIENT_LIMIT, errno_name(error.errno))

    def _connected(self) -> None:
        assert self._sock is not None
        assert self.request is not None
        config = self._loop.config
        # An ICMP error that came while connect held the socket is told by SO_ERROR alone.
        number = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        number = number or self._sock.connect_ex((config.address, config.port))
        if number in _PENDING:
            return
        if number not in _OPEN:
            name = errno_name(number)
            self._fail(refused_later(name), name)
            return
        if self._sock.getsockname()[:2] == (config.address, config.port):
            self._fail(Ending.REFUSED, None)  # nobody listens there and we have that very port
            return
        self._loop.unwatch_writes(self._fd)
        self.opened_ns = self._quiet_ns = monotonic_ns()
        self.local = shown(self._sock)
        self._loop.watch(self._fd, self._on_readable)
        self._write()

    # --- writing --------------------------------------------------------------------------

    def look(self) -> None:
        """Read what is there: whether it is usable is then known as of now."""
        if self.over is None and self._sock is not None:
            self._pull()
            self._digest()

    def ask(self, request: Request) -> bool:
        """Write a request; False if the kernel took none of it, because of a reset: then it
        is not under way here, and the connection is over.
        """
        self.request = request
        self._write()
        return self.over is None or request.ended is not None

    def _write(self) -> None:
        request = self.request
        assert request is not None
        data = self._exchanges.request(request.path, close=request.close)
        before_ns = monotonic_ns()
        request.written_ns = before_ns
        self._send(data)

    def _go_on_writing(self) -> None:
        rest, self._rest = self._rest, b""
        self._send(rest)

    def _send(self, data: bytes) -> None:
        assert self._sock is not None
        request = self.request
        if request is None:
            self._loop.unwatch_writes(self._fd)
            return
        try:
            taken = self._sock.send(data)
        except BlockingIOError:
            taken = 0
        except OSError as error:
            self._write_failed(error)
            return
        request.written += taken
        self._rest = data[taken:]
        if self._rest:
            self._loop.watch_writes(self._fd, self._go_on_writing)
        elif request.written > taken:
            self._loop.unwatch_writes(self._fd)

    def _write_failed(self, error: OSError) -> None:
        """Read to the end first: a response, or a FIN, may have come before the reset."""
        lo_ns = self._pull()
        if error.errno == errno.ECONNRESET and self._pulled and not self._pulled[-1][2]:
            self._pulled.pop()
        self._digest()
        if self.over is None:
            broken = error.errno in (errno.ECONNRESET, errno.EPIPE)
            over = Over.RST if broken else Over.READ_ERROR
            self._end(over, lo_ns, monotonic_ns(), errno_name(error.errno))

    # --- reading --------------------------------------------------------------------------

    def _on_readable(self) -> None:
        """Pull now, digest in the next turn: many that end at once are then all stamped before
        the bytes of the first are parsed."""
        self._pull()
        self._loop.soon(self._digest)

    def _pull(self) -> int:
        """Read to the end, with a stamp right after each read; returns when it was quiet."""
        assert self._sock is not None
        if self._carried_ns is not None:
            lo_ns, self._carried_ns = self._carried_ns, None
        else:
            lo_ns = max(self._loop.quiet_ns, self._quiet_ns) - DELIVERY_NS
        for _ in range(READS_PER_TURN):
            before_ns = monotonic_ns()
            try:
                data: bytes | OSError = self._sock.recv(65536)
            except BlockingIOError:
                self._quiet_ns = before_ns
                return lo_ns
            except OSError as error:
                data = error
            self._pulled.append((lo_ns, monotonic_ns(), data))
            if not data or isinstance(data, OSError):
                self._loop.unwatch(self._fd)
                return lo_ns
        self._carried_ns = lo_ns
        return lo_ns

    def _digest(self) -> None:
        """Turn what was pulled into responses and ends."""
        while self._pulled and self.over is None:
            lo_ns, hi_ns, data = self._pulled.popleft()
            if isinstance(data, OSError):
                over = Over.RST if data.errno == errno.ECONNRESET else Over.READ_ERROR
                self._end(over, lo_ns, hi_ns, errno_name(data.errno))
            else:
                if self.request is not None:
                    self._take(data, lo_ns, hi_ns)
                elif data:
                    self.unasked = True  # some servers say why they close, though nobody asked
                if not data and self.over is None:
                    self._end(Over.FIN, lo_ns, hi_ns)
        if self.unasked and self.over is None and self.request is None and not self._pulled:
            self.close()

    def _take(self, data: bytes, lo_ns: int, at_ns: int) -> None:
        request = self.request
        assert request is not None
        request.received += len(data)
        try:
            response = self._exchanges.receive(data)
        except NotHttp:
            self._finish(Ending.NOT_HTTP, at_ns)
            self.close()
            return
        if response is None:
            return
        request.status = response.status
        request.said_close = self.said_close = response.said_close
        request.by_fin = response.by_fin
        request.responder = self.responder = response.identity
        self.answered += 1
        reusable = response.reusable and not response.said_close
        if not reusable:
            # Before its owner hears of the end: it is not to be pooled.
            over, since_ns = (Over.CLIENT, at_ns) if data else (Over.FIN, lo_ns)
            self._retire(at_ns, over, since_ns)
        self._finish(Ending.RESPONSE, at_ns)
        if not reusable:
            self._owner.closed(self)

    # --- the end --------------------------------------------------------------------------

    def give_up(self) -> bool:
        """The request's time is over: look once more, for the loop may have been late.

        False if it was written only now: it has as long to be answered as the others.
        """
        if self.opened_ns:
            self.look()
        elif self.over is None:
            self._connected()
            if self.opened_ns and self.over is None:
                return False
        if self.over is None and self.request is not None:
            now_ns = monotonic_ns()
            self.cut = self.request
            self._finish(Ending.TIMEOUT if self.opened_ns else Ending.CONNECT_TIMEOUT, now_ns)
            self.close()
        return True

    def abandon(self) -> None:
        """The client stops: look once more, and close."""
        if self.opened_ns:
            self.look()
        if self.over is None:
            now_ns = monotonic_ns()
            if self.request is not None:
                self.cut = self.request
                self._finish(Ending.UNFINISHED, now_ns)
            self._retire(now_ns, Over.OPEN)
            self._owner.closed(self)

    def close(self) -> None:
        """We close it, and nobody is to use it again."""
        if self.over is None:
            self._retire(monotonic_ns())
            self._owner.closed(self)

    def _fail(self, ending: Ending, name: str | None) -> None:
        """The dial failed: there never was a connection."""
        self.errno = name
        self._retire(monotonic_ns())
        request = self.request
        assert request is not None
        request.errno = name
        self._finish(ending, monotonic_ns())
        self._owner.closed(self)

    def _end(self, over: Over, lo_ns: int, hi_ns: int, name: str | None = None) -> None:
        """The peer, or the path, ended it."""
        self.errno = name
        self.over, self.over_ns = over, (lo_ns, hi_ns)
        self._release()
        request = self.request
        if request is not None and (request.written or request.dialled):
            self.cut = request
            request.errno = name
            self._finish(_ENDING[over], hi_ns)
        self.request = None
        self._owner.closed(self)

    def _retire(self, at_ns: int, over: Over = Over.CLIENT, lo_ns: int | None = None) -> None:
        self.over, self.over_ns = over, (at_ns if lo_ns is None else lo_ns, at_ns)
        self._release()

    def _release(self) -> None:
        if self._sock is not None:
            self._loop.unwatch(self._fd)
            self._sock.close()
            self._sock = None

    def _finish(self, ending: Ending, at_ns: int) -> None:
        request, self.request = self.request, None
        assert request is not None
        request.end(ending, at_ns)
        self._owner.ended(self, request)


_ENDING = {Over.FIN: Ending.FIN, Over.RST: Ending.RST, Over.READ_ERROR: Ending.READ_ERROR}
