"""One-way UDP: the client tells what it sent, the pods tell what they received.

Nobody answers, so a flow's life is put together from both: a receipt counts as an
answer of the pod that received it, placed on the harness's clock; what no pod received
counts as unanswered. From there on the same table judges as for any other flow.

What is not known stays unknown. A pod that was killed told its last count up to a
second before: what was sent from then to its end was received or not, nobody knows. So
losses count from the first send after the end of its container, and where that is not
known either, or a pod's log is missing, the flow is not measured, and a note says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.clock import Clock
from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.jsonvalue import integer, objects
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.recording import merge
from pytest_drainwatch.core.transitions import (
    CONTAINER_TERMINATED,
    POD_DELETION_TIMESTAMP_SET,
    POD_OBJECT_DELETED,
    Transition,
)
from pytest_drainwatch.core.udp.sends import Sends

JITTER_NS = 1 * NS_PER_MS  # what a passage may take beyond the shortest one
_OURS = frozenset({Event.FLOW_SENT, Event.FLOW_OPEN_AT_END})
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
    gone_ns: int | None = None  # its container had ended by then


def told_by_the_probe(
    seen: Sequence[Observation], clocks: Mapping[str, Clock], changes: Iterable[Transition]
) -> tuple[tuple[Observation, ...], tuple[str, ...]]:
    """The observations with one-way flows told as if they had been answered, and notes."""
    connected = [o for o in seen if o.event is Event.FLOW_CONNECTED and o.data.get("one_way")]
    if not connected:
        return tuple(seen), ()
    flows = {o.subject for o in connected}
    receipts, unplaced = _receipts(seen, clocks, changes)
    silent = _pods_without_a_log(seen)
    told = [o for o in seen if not (o.source is Source.CLIENT and o.subject in flows)]
    unknown: list[str] = []
    for flow in sorted(flows):
        history = [o for o in seen if o.source is Source.CLIENT and o.subject == flow]
        why = unplaced.get(flow)
        if why is None:
            history, why = _retold(flow, history, receipts.get(flow, []), silent)
        else:
            history = [o for o in history if o.event not in _OURS]
        told += history
        if why is not None:
            unknown.append(f"{flow} is not measured: {why}")
    return tuple(told), tuple(unknown)


def _receipts(
    seen: Iterable[Observation], clocks: Mapping[str, Clock], changes: Iterable[Transition]
) -> tuple[dict[str, list[Receipt]], dict[str, str]]:
    """By flow, the last word of each process about it, in the order of what they received.

    And, by flow, why such a word cannot be placed in time.
    """
    leaving = [c for c in changes if c.event in _LEAVING]
    left = {c.uid for c in leaving}
    gone = {c.uid: c.received_ns for c in leaving if c.event != POD_DELETION_TIMESTAMP_SET}
    last: dict[tuple[str, str], tuple[Observation, Mapping[str, object]]] = {}
    closed: set[str] = set()
    newest: dict[str, str] = {}  # a pod's container may be another process by now
    for o in seen:
        if o.source is not Source.PROBE:
            continue
        who = f"{o.subject}/{o.data.get('nonce')}"
        newest[o.subject] = who
        if o.event is Event.EXITING or (o.event is Event.UDP_RECEIVED and o.data.get("final")):
            closed.add(who)
        if o.event is Event.UDP_RECEIVED:
            for row in objects(o.data.get("flows")):
                last[who, str(row.get("flow"))] = (o, row)
    found: dict[str, list[Receipt]] = {}
    unplaced: dict[str, str] = {}
    for (who, flow), (o, row) in last.items():
        uid = who.partition("/")[0]
        running = newest[uid] == who
        final = who in closed or (running and uid not in left)
        gone_ns = gone.get(uid) if running and not final else None
        receipt = _placed(who, o, row, clocks, final, gone_ns)
        if receipt is None:
            unplaced[flow] = f"nothing bounds the clock of {who}, which received it"
        else:
            found.setdefault(flow, []).append(receipt)
    for each in found.values():
        each.sort(key=lambda receipt: (receipt.last_seq, receipt.first_seq))
    return found, unplaced


def _placed(
    who: str,
    told: Observation,
    row: Mapping[str, object],
    clocks: Mapping[str, Clock],
    final: bool,
    gone_ns: int | None,
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
    return Receipt(
        responder=who,
        clock=told.clock,
        first_seq=integer(row.get("first_seq")),
        last_seq=integer(row.get("last_seq")),
        count=integer(row.get("count")),
        first_sent_ns=first_sent_ns,
        last_sent_ns=last_sent_ns,
        first=_not_before(first_sent_ns, Interval.point(first_ns) + starts),
        last=_not_before(last_sent_ns, Interval.point(last_ns) + ends),
        passage_min_ns=max(0, shortest_ns + max(starts.hi, ends.hi)),
        passage_max_ns=max(0, longest_ns + max(starts.hi, ends.hi)),
        reordered=integer(row.get("reordered")),
        duplicates=integer(row.get("duplicates")),
        final=final,
        gone_ns=gone_ns,
    )


def _not_before(sent_ns: int, at: Interval) -> Interval:
    return Interval(max(at.lo, sent_ns), max(at.hi, sent_ns))


def _pods_without_a_log(seen: Iterable[Observation]) -> list[str]:
    """Pods that were ready, and so may have received something, but told nothing."""
    ready = {o.subject for o in seen if o.event is Event.POD and o.data.get("ready")}
    told = {o.subject for o in seen if o.source is Source.PROBE}
    return sorted(ready - told)


def _retold(
    flow: str, history: Sequence[Observation], receipts: Sequence[Receipt], silent: Sequence[str]
) -> tuple[list[Observation], str | None]:
    """The flow's history in a two-way flow's words; the reason if its end is not known."""
    sends = Sends.of(history)
    ended = next((o for o in history if o.event is Event.FLOW_OPEN_AT_END), None)
    told = [o for o in history if o.event not in _OURS]
    why = f"no log of pod {silent[0]}, which may have received" if silent else None
    life: list[Observation] = []
    previous: Receipt | None = None
    for receipt in receipts:
        if previous is not None:
            life += _lost(flow, sends, previous, receipt.first_seq - 1, receipt.first.hi)
        life += _received(flow, receipt, previous)
        previous = receipt
    if ended is not None and sends.last_seq:
        life += _lost(flow, sends, previous, sends.last_seq, ended.at.hi)
        if previous is not None and not previous.final and previous.gone_ns is None:
            why = why or f"the log of {previous.responder} ends before the pod did"
    told = list(merge(told, life))
    if ended is None:
        return told, why or "the client's record ends before the flow's"
    if why is None:
        answered = sum(receipt.count for receipt in receipts)
        told.append(_with(ended, {**ended.data, "answered": answered}))
    return told, why


def _received(flow: str, receipt: Receipt, previous: Receipt | None) -> list[Observation]:
    since_ns = previous.last_sent_ns if previous else receipt.first_sent_ns
    moved = Interval(min(since_ns, receipt.first_sent_ns), receipt.first.hi)
    span = receipt.last_seq - receipt.first_seq + 1
    return [
        _observation(
            Event.FLOW_RESPONDER,
            flow,
            moved,
            responder=receipt.responder,
            clock=receipt.clock,
            seq=receipt.first_seq,
            previous=previous.responder if previous else None,
            last_seq=previous.last_seq if previous else None,
        ),
        _observation(
            Event.FLOW_ANSWERED,
            flow,
            Interval(receipt.first_sent_ns, max(receipt.last.hi, receipt.last_sent_ns)),
            responder=receipt.responder,
            first_seq=receipt.first_seq,
            last_seq=receipt.last_seq,
            count=receipt.count,
            last_sent_ns=receipt.last_sent_ns,
            rtt_min_ns=receipt.passage_min_ns + JITTER_NS,
            rtt_max_ns=receipt.passage_max_ns,
            reordered=receipt.reordered,
            duplicates=receipt.duplicates,
            lost=max(0, span - receipt.count),
        ),
    ]


def _lost(
    flow: str, sends: Sends, after: Receipt | None, last_seq: int, known_ns: int
) -> list[Observation]:
    """What was sent after the last that ``after`` received, up to ``last_seq``."""
    first_seq = after.last_seq + 1 if after else 1
    if after is not None and not after.final:
        if after.gone_ns is None:
            return []
        first_seq = max(first_seq, sends.first_after(after.gone_ns))
    last_seq = min(last_seq, sends.last_seq)  # of an agent that was killed some are untold
    if first_seq > last_seq:
        return []
    first = sends.sent(first_seq)
    last = sends.sent(last_seq)
    return [
        _observation(
            Event.FLOW_UNANSWERED,
            flow,
            Interval(first.hi, max(first.hi, last.lo, known_ns)),
            first_seq=first_seq,
            last_seq=last_seq,
            count=last_seq - first_seq + 1,
            first_sent_ns=first.hi,  # at the latest: an end is shown by it
            last_sent_ns=max(first.hi, last.lo),
        )
    ]


def _with(seen: Observation, data: Mapping[str, object]) -> Observation:
    return Observation(
        source=seen.source, event=seen.event, at=seen.at, subject=seen.subject, data=data
    )


def _observation(event: Event, flow: str, at: Interval, **data: object) -> Observation:
    return Observation(source=Source.CLIENT, event=event, at=at, subject=flow, data=data)
