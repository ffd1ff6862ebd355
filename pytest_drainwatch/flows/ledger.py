"""One flow's books, sans-io: sends and replies in, run-length coded observations out.

A steady stretch is one line however long it lasts; a line is written when
something changes, so a recording grows with what happens and not with time.

- ``flow_answered`` closes when sends go unanswered, when the responder changes, before
  any other event of the flow, and at its end.
- A send counts as unanswered once a later one was answered, or the flow ended. Until
  then it is outstanding, however long ago it was.
- A repeated error of the same kind is written at its first occurrence and then once
  more with the count of its repeats, when something else happens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.flows.protocol import Reply

OUTSTANDING_LIMIT = 8192
REMEMBERED_LOST = 256
QUIET_NS = NS_PER_S  # with nothing answered for so long, the stretch before is closed

Emit = Callable[[Observation], None]


@dataclass(slots=True)
class _Sends:
    """A run of sends: their sequence numbers and stamps."""

    count: int = 0
    first_seq: int = 0
    last_seq: int = 0
    first_ns: int = 0
    last_ns: int = 0

    def add(self, seq: int, sent_ns: int) -> None:
        if not self.count:
            self.first_seq, self.first_ns = seq, sent_ns
        self.count += 1
        self.last_seq, self.last_ns = seq, sent_ns


@dataclass(slots=True)
class _Stretch:
    """Exchanges that worked, one after the other, with one responder."""

    sends: _Sends = field(default_factory=_Sends)
    received_ns: int = 0
    rtt_min_ns: int | None = None
    rtt_max_ns: int = 0
    late: int = 0
    duplicates: int = 0

    def add(self, seq: int, sent_ns: int, received_ns: int) -> None:
        self.sends.add(seq, sent_ns)
        self.received_ns = received_ns
        rtt_ns = received_ns - sent_ns
        if rtt_ns > self.rtt_max_ns:
            self.rtt_max_ns = rtt_ns
        if self.rtt_min_ns is None or rtt_ns < self.rtt_min_ns:
            self.rtt_min_ns = rtt_ns


@dataclass(slots=True)
class _Trouble:
    """An error that repeats: what its first line said, and the repeats since."""

    data: dict[str, object]
    repeats: int = 0
    first_lo_ns: int = 0
    last_hi_ns: int = 0


class Ledger:
    """Everything that is written about one flow."""

    __slots__ = (
        "_emit",
        "_last_good_ns",
        "_lost",
        "_lost_seqs",
        "_responders",
        "_stretch",
        "_troubles",
        "answers",
        "flow_id",
        "highest",
        "next_seq",
        "outstanding",
        "responder",
    )

    def __init__(self, flow_id: str, emit: Emit, connected_ns: int) -> None:
        self.flow_id = flow_id
        self.next_seq = 1
        self.answers = 0  # exchanges that worked
        self.highest = 0  # the highest answered sequence number
        self.responder: str | None = None
        self.outstanding: dict[int, int] = {}  # seq -> when sent, oldest first
        self._emit = emit
        self._responders: list[str] = []  # all that ever answered here
        self._last_good_ns = connected_ns  # when the last exchange that worked began
        self._lost_seqs: dict[int, None] = {}
        self._lost = _Sends()
        self._troubles: dict[tuple[object, ...], _Trouble] = {}
        self._stretch = _Stretch()

    @property
    def oldest_outstanding_ns(self) -> int | None:
        """When the oldest send that still waits for its reply was sent."""
        return next(iter(self.outstanding.values()), None)

    @property
    def in_trouble(self) -> bool:
        """Whether an error was seen since the last answer."""
        return bool(self._troubles)

    @property
    def moved(self) -> bool:
        """Whether anybody but the first responder ever answered."""
        return len(self._responders) > 1

    @property
    def first_responder(self) -> str | None:
        """Who answered first."""
        return self._responders[0] if self._responders else None

    def event(self, event: Event, lo_ns: int, hi_ns: int, **data: object) -> None:
        """Write an event of this flow, after the stretch that it ends."""
        self._close_stretch()
        self._write(event, lo_ns, hi_ns, data)

    def sent(self, at_ns: int) -> None:
        """Request ``next_seq`` went out, not before ``at_ns``."""
        self.outstanding[self.next_seq] = at_ns
        self.next_seq += 1
        oldest_ns = next(iter(self.outstanding.values()))
        if self._stretch.sends.count and at_ns - oldest_ns > QUIET_NS:
            self._close_stretch()
        if len(self.outstanding) > OUTSTANDING_LIMIT:
            self._lose(next(iter(self.outstanding)))

    def reply(self, reply: Reply, received_ns: int) -> int | None:
        """Book a reply; returns when its request was sent, None for a late or double one."""
        seq = reply.seq
        if reply.responder != self.responder and (
            reply.responder not in self._responders or seq > self.highest
        ):
            self._change_responder(reply, received_ns)
        sent_ns = self.outstanding.get(seq)
        if sent_ns is None:
            self._unexpected(seq, received_ns)
            return None
        self._settle_before(seq, received_ns)
        del self.outstanding[seq]
        self._clear_troubles()
        self._stretch.add(seq, sent_ns, received_ns)
        self.answers += 1
        self.highest = seq
        self._last_good_ns = sent_ns
        return sent_ns

    def trouble(
        self,
        event: Event,
        lo_ns: int,
        hi_ns: int,
        *,
        same: tuple[object, ...],
        **data: object,
    ) -> bool:
        """Write an error, or count it if one with the same ``same`` is open already."""
        known = self._troubles.get((event, *same))
        if known is None:
            self._troubles[(event, *same)] = _Trouble(data)
            self.event(event, lo_ns, hi_ns, **data, count=1)
            return True
        if not known.repeats:
            known.first_lo_ns = lo_ns
        known.repeats += 1
        known.last_hi_ns = hi_ns
        return False

    def close(self, at_ns: int) -> None:
        """Settle everything open; what is outstanding will not be waited for."""
        self._close_stretch()
        for seq in list(self.outstanding):
            self._lose(seq)
        self._clear_troubles()
        self._write_lost(at_ns)

    def _change_responder(self, reply: Reply, received_ns: int) -> None:
        if reply.seq in self.outstanding:
            self._settle_before(reply.seq, received_ns)
        self._close_stretch()
        self._clear_troubles()
        previous, last_seq = self.responder, self.highest
        self.responder = reply.responder
        if reply.responder not in self._responders:
            self._responders.append(reply.responder)
        self._write(
            Event.FLOW_RESPONDER,
            min(self._last_good_ns, received_ns),
            received_ns,
            {
                "responder": reply.responder,
                "clock": reply.clock,
                "seq": reply.seq,
                "previous": previous,
                "last_seq": last_seq or None,
            },
        )

    def _unexpected(self, seq: int, received_ns: int) -> None:
        if seq >= self.next_seq:
            lo_ns = self._last_good_ns
            self.trouble(
                Event.FLOW_GARBAGE, lo_ns, received_ns, same=("unasked",), length=0, unasked=seq
            )
        elif seq in self._lost_seqs:
            del self._lost_seqs[seq]
            self._stretch.late += 1
        else:
            self._stretch.duplicates += 1

    def _settle_before(self, seq: int, known_ns: int) -> None:
        """Everything sent before ``seq`` is unanswered, now that ``seq`` is answered."""
        while (oldest := next(iter(self.outstanding))) < seq:
            self._lose(oldest)
        if self._lost.count:
            self._close_stretch()
            self._clear_troubles()
            self._write_lost(known_ns)

    def _lose(self, seq: int) -> None:
        self._lost.add(seq, self.outstanding.pop(seq))
        self._lost_seqs[seq] = None
        if len(self._lost_seqs) > REMEMBERED_LOST:
            del self._lost_seqs[next(iter(self._lost_seqs))]

    def _write_lost(self, known_ns: int) -> None:
        lost, self._lost = self._lost, _Sends()
        if lost.count:
            self._write(
                Event.FLOW_UNANSWERED,
                lost.first_ns,
                max(known_ns, lost.last_ns),
                {
                    "first_seq": lost.first_seq,
                    "last_seq": lost.last_seq,
                    "count": lost.count,
                    "first_sent_ns": lost.first_ns,
                    "last_sent_ns": lost.last_ns,
                },
            )

    def _close_stretch(self) -> None:
        stretch, run = self._stretch, self._stretch.sends
        if not run.count:
            return  # late and double replies go with the next stretch
        self._stretch = _Stretch()
        self._write(
            Event.FLOW_ANSWERED,
            run.first_ns,
            stretch.received_ns,
            {
                "responder": self.responder,
                "first_seq": run.first_seq,
                "last_seq": run.last_seq,
                "count": run.count,
                "last_sent_ns": run.last_ns,
                "rtt_min_ns": stretch.rtt_min_ns,
                "rtt_max_ns": stretch.rtt_max_ns,
                "late": stretch.late,
                "duplicates": stretch.duplicates,
            },
        )

    def _clear_troubles(self) -> None:
        if not self._troubles:
            return
        for (event, *_), known in self._troubles.items():
            if known.repeats:
                data = {**known.data, "count": known.repeats}
                data.pop("seq", None)  # that of the first
                self._write(Event(str(event)), known.first_lo_ns, known.last_hi_ns, data)
        self._troubles.clear()

    def _write(self, event: Event, lo_ns: int, hi_ns: int, data: dict[str, object]) -> None:
        self._emit(
            Observation(
                source=Source.CLIENT,
                event=event,
                at=Interval(lo_ns, hi_ns),
                subject=self.flow_id,
                data=data,
            )
        )
