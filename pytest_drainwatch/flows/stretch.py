"""What a ledger counts between two of its lines: runs of sends, and exchanges that worked."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_drainwatch.core.interval import NS_PER_S

QUIET_NS = NS_PER_S  # an answer that is out for so long is not merely on its way
OVERTAKEN_LIMIT = 256


@dataclass(slots=True)
class Sends:
    """A run of sends: their sequence numbers and stamps."""

    count: int = 0
    first_seq: int = 0
    last_seq: int = 0
    first_ns: int = 0
    last_ns: int = 0

    def add(self, seq: int, sent_ns: int) -> None:
        """The next send of the run."""
        if not self.count:
            self.first_seq, self.first_ns = seq, sent_ns
        self.count += 1
        self.last_seq, self.last_ns = seq, sent_ns


@dataclass(slots=True)
class Stretch:
    """Exchanges that worked with one responder, and the few between them that did not.

    ``overtaken`` are requests that wait although a later one was answered: each will
    be counted once, as answered out of order or as lost.
    """

    sends: Sends = field(default_factory=Sends)
    received_ns: int = 0
    rtt_min_ns: int | None = None
    rtt_max_ns: int = 0
    reordered: int = 0
    late: int = 0
    duplicates: int = 0
    overtaken: dict[int, int] = field(default_factory=dict)  # seq -> when sent
    lost: int = 0
    lost_first_seq: int = 0
    lost_last_seq: int = 0

    def add(self, seq: int, sent_ns: int, received_ns: int) -> None:
        """The next request was answered."""
        self.sends.add(seq, sent_ns)
        self._round_trip(sent_ns, received_ns)

    def add_reordered(self, sent_ns: int, received_ns: int) -> None:
        """A request was answered after a later one."""
        self.sends.count += 1
        self.reordered += 1
        self._round_trip(sent_ns, received_ns)

    def lose(self, seq: int) -> None:
        """A request that was overtaken will not be waited for any more."""
        del self.overtaken[seq]
        self.lost_first_seq = min(seq, self.lost_first_seq) if self.lost else seq
        self.lost_last_seq = max(seq, self.lost_last_seq)
        self.lost += 1

    def _round_trip(self, sent_ns: int, received_ns: int) -> None:
        self.received_ns = received_ns
        rtt_ns = received_ns - sent_ns
        if rtt_ns > self.rtt_max_ns:
            self.rtt_max_ns = rtt_ns
        if self.rtt_min_ns is None or rtt_ns < self.rtt_min_ns:
            self.rtt_min_ns = rtt_ns

    def data(self, responder: str | None) -> dict[str, object]:
        """The fields of its ``flow_answered`` line; counts of nothing are left out."""
        run = self.sends
        data: dict[str, object] = {
            "responder": responder,
            "first_seq": run.first_seq,
            "last_seq": run.last_seq,
            "count": run.count,
            "last_sent_ns": run.last_ns,
            "rtt_min_ns": self.rtt_min_ns,
            "rtt_max_ns": self.rtt_max_ns,
            "late": self.late,
            "duplicates": self.duplicates,
        }
        if self.reordered:
            data["reordered"] = self.reordered
        if self.lost:
            data["lost"] = self.lost
            data["lost_first_seq"], data["lost_last_seq"] = self.lost_first_seq, self.lost_last_seq
        return data


@dataclass(slots=True)
class Totals:
    """How a flow's sends went. ``unanswered`` counts the late ones too."""

    unanswered: int = 0
    late: int = 0
    reordered: int = 0
    duplicates: int = 0
