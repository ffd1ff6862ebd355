"""A UDP flow: a connected socket that keeps sending whatever happens.

Errors are evidence and not an end: the path may recover, or lead to another pod.

Linux reports an ICMP error of an earlier datagram in place of the next ``send``,
whose datagram is then *not* sent. So the error queue is read and the send repeated
once; the slot counts as unsent only if that fails as well.
"""

from __future__ import annotations

from time import monotonic_ns

from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.flows import icmp
from pytest_drainwatch.flows.flow import READS_PER_TURN, Flow
from pytest_drainwatch.flows.protocol import Reply, sequence_of, stamp_of


class UdpFlow(Flow):
    """One source port to one address; see the module."""

    proto = "udp"

    def send(self) -> int:
        before_ns = monotonic_ns()
        try:
            self.sock.send(self._request(before_ns))
        except BlockingIOError:
            self.unsent += 1
            return before_ns
        except OSError:
            before_ns = self._send_again()
            if before_ns < 0:
                return -before_ns
        self._sent(before_ns)
        return before_ns

    def _sent(self, at_ns: int) -> None:
        self.ledger.sent(at_ns)

    def _send_again(self) -> int:
        """The stamp of the second attempt, negative if it failed too."""
        lo_ns = self._quiet_since()
        self._read_errors(lo_ns)
        before_ns = monotonic_ns()
        try:
            self.sock.send(self._request(before_ns))
        except OSError as error:
            self.unsent += 1
            self._trouble(Event.FLOW_WRITE_ERROR, lo_ns, monotonic_ns(), error)
            return -before_ns
        return before_ns

    def on_readable(self) -> None:
        lo_ns = self._quiet_since()
        self._read_errors(lo_ns)
        for _ in range(READS_PER_TURN):
            before_ns = monotonic_ns()
            try:
                data = self.sock.recv(2048)
            except BlockingIOError:
                self._quiet_ns = before_ns
                return
            except OSError as error:
                # Arrived after the error queue was read, or not an ICMP error at all.
                if not self._read_errors(lo_ns):
                    self._trouble(Event.FLOW_READ_ERROR, lo_ns, monotonic_ns(), error)
                continue
            hi_ns = monotonic_ns()
            for frame in self.adapter.receive(data):
                if isinstance(frame, Reply):
                    self._take_reply(frame, hi_ns)
                    if self.closed:
                        return  # the engine did not keep this flow
                else:
                    length, starts = len(data), getattr(frame, "starts", "")
                    self.ledger.trouble(
                        Event.FLOW_GARBAGE, lo_ns, hi_ns, same=(), length=length, starts=starts
                    )
        self._carried_lo_ns = lo_ns

    def _read_errors(self, lo_ns: int) -> bool:
        """Write what the error queue holds; returns whether it held anything."""
        found = False
        for _ in range(READS_PER_TURN):
            error = icmp.read_one(self.sock)
            hi_ns = monotonic_ns()
            if error is None:
                break
            found = True
            seq = sequence_of(error.quoted)
            # An error comes after the datagram that it quotes.
            sent_ns = stamp_of(error.quoted) or self.ledger.outstanding.get(seq or 0, 0)
            first = self.ledger.trouble(
                Event.FLOW_ICMP,
                max(lo_ns, sent_ns),
                hi_ns,
                same=(error.origin, error.type, error.code, error.errno),
                type=error.type,
                code=error.code,
                errno=error.errno,
                offender=error.offender,
                seq=seq,
            )
            if first:
                self.host.changed(self, Event.FLOW_ICMP, hi_ns)
        return found

    def _trouble(self, event: Event, lo_ns: int, hi_ns: int, error: OSError) -> None:
        name = icmp.errno_name(error.errno)
        if self.ledger.trouble(event, lo_ns, hi_ns, same=(name,), errno=name):
            self.host.changed(self, event, hi_ns)
