"""A one-way UDP flow: it sends notes and expects nothing; the probe tells what came.

ICMP errors are evidence here as well. Since no answer ends an episode of them, an
error that has not been seen for a while is news again.
"""

from __future__ import annotations

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.flows.schedule import Cadence
from pytest_drainwatch.flows.udp import UdpFlow

CALM_NS = 3 * NS_PER_S
RUNS = 256  # lines about sends; then the last one grows, however uneven it is


class Run:
    """Sends one period apart, give or take less than half of one."""

    __slots__ = ("count", "early_ns", "first_ns", "first_seq", "last_ns", "late_ns", "period_ns")

    def __init__(self, seq: int, at_ns: int) -> None:
        self.first_seq, self.first_ns, self.last_ns = seq, at_ns, at_ns
        self.count = 1
        self.period_ns = self.early_ns = self.late_ns = 0

    def add(self, at_ns: int, cadence: Cadence, *, even: bool) -> bool:
        """The next send. False, and not added, if the run must be ``even`` and is not."""
        if self.count == 1:
            gap_ns = at_ns - self.first_ns
            both = (cadence.dense_ns, cadence.sparse_ns)
            self.period_ns = min(both, key=lambda period_ns: abs(gap_ns - period_ns))
        off_ns = at_ns - self.first_ns - self.count * self.period_ns
        if even and 2 * abs(off_ns) >= self.period_ns:
            return False
        self.count += 1
        self.last_ns = at_ns
        self.early_ns, self.late_ns = min(self.early_ns, off_ns), max(self.late_ns, off_ns)
        return True

    def told(self) -> dict[str, object]:
        return {
            "first_seq": self.first_seq,
            "last_seq": self.first_seq + self.count - 1,
            "count": self.count,
            "first_sent_ns": self.first_ns,
            "last_sent_ns": self.last_ns,
            "period_ns": self.period_ns,
            "early_ns": self.early_ns,
            "late_ns": self.late_ns,
        }


class OneWayFlow(UdpFlow):
    """Sends are written as runs of even cadence, so that any send's stamp is bounded."""

    _run: Run | None = None
    _runs = 0
    _trouble_ns = 0

    def _sent(self, at_ns: int) -> None:
        seq = self.ledger.next_seq
        self.ledger.next_seq = seq + 1
        run = self._run
        if run is None or not run.add(at_ns, self.cadence, even=self._runs < RUNS):
            self._write_run()
            self._run = Run(seq, at_ns)

    def _read_errors(self, lo_ns: int) -> bool:
        self._calm(lo_ns)
        found = super()._read_errors(lo_ns)
        if found:
            self._trouble_ns = lo_ns
        return found

    def _trouble(self, event: Event, lo_ns: int, hi_ns: int, error: OSError) -> None:
        self._calm(lo_ns)
        super()._trouble(event, lo_ns, hi_ns, error)
        self._trouble_ns = lo_ns

    def _calm(self, now_ns: int) -> None:
        """Silence since the last error: whatever it was may be over, so the next is news."""
        if self._trouble_ns and now_ns - self._trouble_ns > CALM_NS:
            self.ledger.calm()
            self._trouble_ns = 0

    def _write_run(self) -> None:
        run = self._run
        if run is not None:
            self._runs += 1
            self.ledger.event(Event.FLOW_SENT, run.first_ns, run.last_ns, **run.told())

    def finish(self, at_ns: int) -> None:
        self._write_run()
        super().finish(at_ns)
