"""One flow's books, sans-io: sends and replies in, run-length coded observations out.

A steady stretch is one line however long it lasts; a line is written when
something changes, so a recording grows with what happens and not with time.

- ``flow_answered`` closes when a run of sends goes unanswered, when the responder
  changes, before any other event of the flow, and at its end.
- A send that a later one overtook waits on for a second. Answered within it, it was
  *reordered*; else it is *lost*, and a reply that comes after all is *late*. Another
  reply to an answered send is a *duplicate*.
- Short losses are counted in the stretch around them. ``flow_unanswered`` is a run
  that is long, or that leads to a change: to another responder, an error, or the end.
  What counts as long grows with every few such lines: a bad path fills no disk.
- A repeated error of the same kind is written at its first occurrence and then once
  more with the count of its repeats, when something else happens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.flows.protocol import Reply
from pytest_drainwatch.flows.stretch import OVERTAKEN_LIMIT, QUIET_NS, Sends, Stretch, Totals

OUTSTANDING_LIMIT = 8192
REMEMBERED_LOST = 256  # replies to sends that were lost before these count as duplicates
LONG_RUN = 3  # at first; doubled after every so many lines about losses between answers
LINES_PER_LENGTH = 16

__all__ = ["LONG_RUN", "OUTSTANDING_LIMIT", "QUIET_NS", "Ledger"]

Emit = Callable[[Observation], None]


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
        "_long_run",
        "_lost",
        "_lost_lines",
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
        "totals",
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
        self.totals = Totals()
        self._long_run = LONG_RUN
        self._lost_lines = 0
        self._lost_seqs: dict[int, None] = {}
        self._lost = Sends()
        self._troubles: dict[tuple[object, ...], _Trouble] = {}
        self._stretch = Stretch()

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
        waiting = len(self.outstanding)
        if waiting >= self._long_run and at_ns - self._stretch.received_ns > QUIET_NS:
            self._close_stretch()
        if waiting > OUTSTANDING_LIMIT:
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
            return self._out_of_order(reply, received_ns)
        if self._lost.count or next(iter(self.outstanding)) < seq:
            self._overtake(seq, received_ns)
        del self.outstanding[seq]
        if self._troubles:
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

    def calm(self) -> None:
        """What went wrong is over: the next error is news."""
        self._clear_troubles()

    def close(self, at_ns: int) -> None:
        """Settle everything open; what is outstanding will not be waited for."""
        self._close_stretch()
        for seq in list(self.outstanding):
            self._lose(seq)
        self._clear_troubles()
        self._write_lost(at_ns)

    def _change_responder(self, reply: Reply, received_ns: int) -> None:
        if reply.seq in self.outstanding:
            self._settle([one for one in self.outstanding if one < reply.seq], received_ns)
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

    def _out_of_order(self, reply: Reply, received_ns: int) -> int | None:
        """Book a reply that is not the next one; returns when its request was sent."""
        seq, stretch = reply.seq, self._stretch
        if seq >= self.next_seq:
            lo_ns = self._last_good_ns
            self.trouble(
                Event.FLOW_GARBAGE, lo_ns, received_ns, same=("unasked",), length=0, unasked=seq
            )
            return None
        sent_ns = stretch.overtaken.get(seq)
        timely = sent_ns is not None and received_ns - sent_ns <= QUIET_NS
        if sent_ns is not None and timely and reply.responder == self.responder:
            del stretch.overtaken[seq]
            stretch.add_reordered(sent_ns, received_ns)
            self.answers += 1
            self.totals.reordered += 1
            return sent_ns
        if sent_ns is not None:
            self._lose_overtaken(seq)
        if seq in self._lost_seqs:
            del self._lost_seqs[seq]
            stretch.late += 1
            self.totals.late += 1
        else:
            stretch.duplicates += 1
            self.totals.duplicates += 1
        return None

    def _overtake(self, seq: int, known_ns: int) -> None:
        """``seq`` is answered, and what was sent before it is not."""
        older = []
        for one in self.outstanding:
            if one >= seq:
                break
            older.append(one)
        stretch = self._stretch
        is_long = self._lost.count + len(older) >= self._long_run
        if is_long or not stretch.sends.count:  # no stretch: after a change, an error say
            self._settle(older, known_ns)
            self._lost_lines += 1
            if self._lost_lines % LINES_PER_LENGTH == 0:
                self._long_run *= 2
            return
        for one in older:
            stretch.overtaken[one] = self.outstanding.pop(one)
        while len(stretch.overtaken) > OVERTAKEN_LIMIT:
            self._lose_overtaken(next(iter(stretch.overtaken)))

    def _settle(self, older: list[int], known_ns: int) -> None:
        """Nobody will answer ``older`` any more: write them as a run of their own."""
        for one in older:
            self._lose(one)
        if self._lost.count:
            self._close_stretch()
            self._clear_troubles()
            self._write_lost(known_ns)

    def _lose(self, seq: int) -> None:
        self._lost.add(seq, self.outstanding.pop(seq))
        self._remember(seq)

    def _lose_overtaken(self, seq: int) -> None:
        self._stretch.lose(seq)
        self._remember(seq)

    def _remember(self, seq: int) -> None:
        self.totals.unanswered += 1
        self._lost_seqs[seq] = None
        if len(self._lost_seqs) > REMEMBERED_LOST:
            del self._lost_seqs[next(iter(self._lost_seqs))]

    def _write_lost(self, known_ns: int) -> None:
        lost, self._lost = self._lost, Sends()
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
        for seq in list(stretch.overtaken):
            self._lose_overtaken(seq)
        self._stretch = Stretch()
        self._write(
            Event.FLOW_ANSWERED, run.first_ns, stretch.received_ns, stretch.data(self.responder)
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
