"""A TCP flow: reads to the end before it believes an error.

What the kernel hides, and what is done about it:

- An error of ``send`` may be the reset that a buffered ``bye`` and FIN preceded. So
  the receive buffer is read to its end first, and the write error is written last.
- Whoever reports a reset first consumes it: after ``send`` said ECONNRESET, the EOF
  that ``recv`` shows is no FIN. (After a FIN, ``send`` says EPIPE instead.)
- ETIMEDOUT is an error of its own, and never silence.
"""

from __future__ import annotations

import errno
from time import monotonic_ns

from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.flows.flow import READS_PER_TURN, Flow
from pytest_drainwatch.flows.icmp import errno_name
from pytest_drainwatch.flows.protocol import Farewell, Frame, Reply


class TcpFlow(Flow):
    """One connection; see the module."""

    proto = "tcp"
    _unfinished = b""  # what the kernel did not take of the last request

    def finish(self, at_ns: int) -> None:
        self._digest()  # what was pulled in this turn
        super().finish(at_ns)

    def send(self) -> int:
        before_ns = monotonic_ns()
        rest = self._unfinished
        request = b"" if rest else self._request(before_ns)
        try:
            taken = self.sock.send(rest or request)
        except BlockingIOError:
            self.unsent += 1
            return before_ns
        except OSError as error:
            self._write_failed(error)
            return before_ns
        if rest:
            self._unfinished = rest[taken:]
            self.unsent += 1  # this slot went into completing an earlier request
            return before_ns
        self._unfinished = request[taken:]
        self.ledger.sent(before_ns)
        return before_ns

    def on_readable(self) -> None:
        """Pull now, digest in the next turn: twenty flows that end at once are then all
        stamped before the books of the first are written."""
        self._pull(self._quiet_since())
        self.host.soon(self._digest)

    def _pull(self, lo_ns: int) -> None:
        """Read to the end, with a stamp right after each read."""
        for _ in range(READS_PER_TURN):
            before_ns = monotonic_ns()
            try:
                data: bytes | OSError = self.sock.recv(65536)
            except BlockingIOError:
                self._quiet_ns = before_ns
                return
            except OSError as error:
                data = error
            self._pulled.append((lo_ns, monotonic_ns(), data))
            if not data or isinstance(data, OSError):
                self.sending = False
                return
        self._carried_lo_ns = lo_ns

    def _digest(self) -> None:
        """Turn into frames and events what was pulled."""
        while self._pulled and not self.closed:
            lo_ns, hi_ns, data = self._pulled.popleft()
            if isinstance(data, OSError):
                self._end(_error_event(data), lo_ns, hi_ns, errno=errno_name(data.errno))
            elif data:
                for frame in self.adapter.receive(data):
                    self._take(frame, lo_ns, hi_ns)
                    if self.closed:
                        return  # the engine did not keep this flow
            else:
                self._end(Event.FLOW_FIN, lo_ns, hi_ns, bytes_pending=self.adapter.pending)

    def _take(self, frame: Frame, lo_ns: int, hi_ns: int) -> None:
        if isinstance(frame, Reply):
            self._take_reply(frame, hi_ns)
        elif isinstance(frame, Farewell):
            self.ledger.event(
                Event.FLOW_ANNOUNCED, lo_ns, hi_ns, seq=frame.seq, reason=frame.reason
            )
        else:
            first = self.ledger.trouble(
                Event.FLOW_GARBAGE,
                lo_ns,
                hi_ns,
                same=(),
                length=frame.length,
                starts=frame.starts,
            )
            if first:
                self.host.changed(self, Event.FLOW_GARBAGE, hi_ns)

    def _write_failed(self, error: OSError) -> None:
        lo_ns = self._quiet_since()
        self._pull(lo_ns)
        if error.errno == errno.ECONNRESET and self._pulled and not self._pulled[-1][2]:
            self._pulled.pop()
        self._digest()
        self._end(Event.FLOW_WRITE_ERROR, lo_ns, monotonic_ns(), errno=errno_name(error.errno))

    def _end(self, event: Event, lo_ns: int, hi_ns: int, **data: object) -> None:
        self.ledger.close(hi_ns)
        self.ledger.event(event, lo_ns, hi_ns, **data)
        if self.ended is None:
            self.ended = event
            self.close()
            self.host.changed(self, event, hi_ns)


def _error_event(error: OSError) -> Event:
    if error.errno == errno.ECONNRESET:
        return Event.FLOW_RESET
    return Event.FLOW_READ_ERROR
