"""What pods said that they received of one-way flows, and where what they said ends.

A pod tells what it received so far, again and again. What its last line leaves open:
it may have been killed before the next, its log may have broken under the harness, it
may have told nothing at all. Each of these is told apart here, so that nothing counts
as lost that somebody may have received.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytest_drainwatch.core.clock import Clock
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.jsonvalue import integer, objects
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.transitions import (
    CONTAINER_TERMINATED,
    POD_DELETION_TIMESTAMP_SET,
    POD_OBJECT_DELETED,
    Transition,
)
from pytest_drainwatch.core.udp.sends import Sends

_LEAVING = frozenset({CONTAINER_TERMINATED, POD_DELETION_TIMESTAMP_SET, POD_OBJECT_DELETED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What one process received of one flow, on the harness's clock."""

    responder: str
    clock: str
    first_seq: int
    last_seq: int
    count: int
    first_sent_ns: int
    last_sent_ns: int
    first: Interval
    last: Interval
    passage_min_ns: int
    passage_max_ns: int
    reordered: int
    duplicates: int
    final: bool  # nothing can have been received after it was told
    gone_ns: int | None  # if not: its container had ended by then
    replaced: bool  # if not: another process runs in its container

    @property
    def cut(self) -> bool:
        """Whether it may have received more, and nothing says until when."""
        return not (self.final or self.replaced) and self.gone_ns is None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Doubt:
    """A pod that may have received what nobody told; ``who`` is its last known process."""

    who: str | None
    gone_ns: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Receipts:
    """All that the pods told, by flow."""

    by_flow: Mapping[str, Sequence[Receipt]]  # in the order of what they received
    unplaced: Mapping[str, str]  # why a receipt of the flow cannot be placed in time
    first: Mapping[str, str]  # who surely received the first of its datagrams
    _doubts: Sequence[_Doubt]

    def unknown(self, flow: str, sends: Sends) -> str | None:
        """Why it is not known who received what of ``flow``; None if it is."""
        if flow in self.unplaced:
            return self.unplaced[flow]
        receipts = self.by_flow.get(flow, ())
        for one, other in pairwise(receipts):
            if other.first_seq <= one.last_seq:
                # Each told a sum: which of it came before the other's is not known.
                return f"{one.responder} and {other.responder} received it by turns"
        told = {receipt.responder for receipt in receipts}
        for doubt in self._doubts:
            if doubt.who not in told and _lacks(receipts, sends, doubt.gone_ns):
                return doubt.why
        return None


def receipts_of(
    seen: Sequence[Observation], clocks: Mapping[str, Clock], changes: Iterable[Transition]
) -> Receipts:
    """The last word of each process about each flow."""
    leaving: dict[str, list[Transition]] = {}
    for change in changes:
        if change.event in _LEAVING:
            leaving.setdefault(change.uid, []).append(change)
    last: dict[tuple[str, str], tuple[Observation, Mapping[str, object]]] = {}
    closed: set[str] = set()
    newest: dict[str, str] = {}  # a pod's container may be another process by now
    signed = _signatures(seen)
    broken = _broken_logs(seen)
    for o in seen:
        if o.source is not Source.PROBE:
            continue
        who = f"{o.subject}/{o.data.get('nonce')}"
        newest[o.subject] = who
        if o.event is Event.EXITING or (o.event is Event.UDP_RECEIVED and o.data.get("final")):
            closed.add(who)
        if o.event is Event.UDP_RECEIVED:
            for row in objects(o.data.get("flows")):
                flow = signed.get(str(row.get("flow")))
                if flow is not None:
                    last[who, flow] = (o, row)
    found: dict[str, list[Receipt]] = {}
    unplaced: dict[str, str] = {}
    first: dict[str, tuple[int, str]] = {}
    for (who, flow), (o, row) in last.items():
        earliest = (integer(row.get("first_seq")), who)
        first[flow] = min(first.get(flow, earliest), earliest)
        uid = who.partition("/")[0]
        receipt = _placed(
            who,
            o,
            row,
            clocks,
            leaving.get(uid, ()),
            closed=who in closed,
            replaced=newest[uid] != who,
            broken=uid in broken,
        )
        if receipt is None:
            unplaced[flow] = f"nothing bounds the clock of {who}, which received it"
        elif receipt.first_seq > receipt.last_seq or receipt.first_sent_ns > receipt.last.hi:
            unplaced[flow] = f"what {who} told of it contradicts itself"
        else:
            found.setdefault(flow, []).append(receipt)
    for each in found.values():
        each.sort(key=lambda receipt: (receipt.first_seq, receipt.last_seq))
    doubts = _doubts(seen, newest, broken, closed, leaving)
    sure = {flow: who for flow, (seq, who) in first.items() if seq == 1 or not doubts}
    return Receipts(found, unplaced, sure, doubts)


def _signatures(seen: Iterable[Observation]) -> Mapping[str, str]:
    """Which flow each signature is that of, for the flows of this recording.

    A pod may receive what another trial's agent sends, whose flows have the same ids: a
    path may keep leading to an address that is another pod's by now. Recordings of
    before notes were signed with more than the flow's id say no ``note``.
    """
    return {
        str(o.data.get("note") or o.subject): o.subject
        for o in seen
        if o.event is Event.FLOW_CONNECTED and o.data.get("one_way")
    }


def _broken_logs(seen: Iterable[Observation]) -> frozenset[str]:
    """Pods whose logs were not followed as far as the harness meant to.

    A log that nobody followed was read at the end, whole; if that failed it told nothing.
    """
    return frozenset(
        o.subject for o in seen if o.event is Event.LOG_ENDED and o.data.get("problem") is not None
    )


def _placed(
    who: str,
    told: Observation,
    row: Mapping[str, object],
    clocks: Mapping[str, Clock],
    leaving: Sequence[Transition],
    *,
    closed: bool,
    replaced: bool,
    broken: bool,
) -> Receipt | None:
    clock = clocks.get(told.clock)
    first_ns, last_ns = integer(row.get("first_ns")), integer(row.get("last_ns"))
    starts = clock.offset_at(first_ns) if clock else None
    ends = clock.offset_at(last_ns) if clock else None
    if starts is None or ends is None:
        return None
    # Offsets lie within the exchanges' bounds; nothing is received before it was sent.
    longest_ns = integer(row.get("passage_max_ns"))
    shortest_ns = integer(row.get("passage_min_ns"), longest_ns)
    first_sent_ns, last_sent_ns = (
        integer(row.get("first_sent_ns")),
        integer(row.get("last_sent_ns")),
    )
    last = _not_before(last_sent_ns, Interval.point(last_ns) + ends)
    # A container that ended before this was received was that of a process before.
    over = [c for c in leaving if c.received_ns > last.lo or c.event == POD_DELETION_TIMESTAMP_SET]
    gone = [c.received_ns for c in over if c.event != POD_DELETION_TIMESTAMP_SET]
    final = closed or not (replaced or over or broken)
    return Receipt(
        responder=who,
        clock=told.clock,
        first_seq=integer(row.get("first_seq")),
        last_seq=integer(row.get("last_seq")),
        count=integer(row.get("count")),
        first_sent_ns=first_sent_ns,
        last_sent_ns=last_sent_ns,
        first=_not_before(first_sent_ns, Interval.point(first_ns) + starts),
        last=last,
        passage_min_ns=max(0, shortest_ns + max(starts.hi, ends.hi)),
        passage_max_ns=max(0, longest_ns + max(starts.hi, ends.hi)),
        reordered=integer(row.get("reordered")),
        duplicates=integer(row.get("duplicates")),
        final=final,
        gone_ns=gone[-1] if gone and not replaced and not final else None,
        replaced=replaced,
    )


def _not_before(sent_ns: int, at: Interval) -> Interval:
    return Interval(max(at.lo, sent_ns), max(at.hi, sent_ns))


def _doubts(
    seen: Sequence[Observation],
    newest: Mapping[str, str],
    broken: frozenset[str],
    closed: frozenset[str] | set[str],
    leaving: Mapping[str, Sequence[Transition]],
) -> list[_Doubt]:
    """Pods that were ready, and so may have received something, and did not tell all."""
    ready = {o.subject for o in seen if o.event is Event.POD and o.data.get("ready")}
    untold = _untold_restarts(seen)
    found = []
    for uid in sorted(ready):
        who = newest.get(uid)
        gone = [c.received_ns for c in leaving.get(uid, ()) if c.event == POD_OBJECT_DELETED]
        gone_ns = gone[-1] if gone else None
        if who is None:
            why = f"no log of pod {uid}, which may have received"
            found.append(_Doubt(who=None, gone_ns=gone_ns, why=why))
        elif uid in broken and who not in closed:
            why = f"the log of pod {uid} broke off, and it may have received"
            found.append(_Doubt(who=who, gone_ns=gone_ns, why=why))
        if who is not None and uid in untold:
            why = f"a process of pod {uid} told nothing, and may have received"
            found.append(_Doubt(who=None, gone_ns=gone_ns, why=why))
    return found


def _untold_restarts(seen: Iterable[Observation]) -> frozenset[str]:
    """Pods that had more processes, one after the other, than told of themselves."""
    first: dict[tuple[str, str], int] = {}
    seen_restarts: dict[str, int] = {}
    told: dict[str, set[str]] = {}
    for o in seen:
        if o.source is Source.PROBE:
            told.setdefault(o.subject, set()).add(str(o.data.get("nonce")))
        elif o.event is Event.POD:
            for container in objects(o.data.get("containers")):
                restarts = integer(container.get("restarts"))
                before = first.setdefault((o.subject, str(container.get("name"))), restarts)
                known = seen_restarts.get(o.subject, 0)
                seen_restarts[o.subject] = max(known, restarts - before)
    return frozenset(
        uid for uid, number in seen_restarts.items() if len(told.get(uid, ())) <= number
    )


def _lacks(receipts: Sequence[Receipt], sends: Sends, gone_ns: int | None) -> bool:
    """Whether something that was sent before ``gone_ns``, or ever, is in none of ``receipts``."""
    until = sends.last_seq if gone_ns is None else sends.first_after(gone_ns) - 1
    after = 1
    for receipt in receipts:
        holed = receipt.count < receipt.last_seq - receipt.first_seq + 1
        if after <= until and (receipt.first_seq > after or holed):
            return True
        after = receipt.last_seq + 1
    return after <= until
