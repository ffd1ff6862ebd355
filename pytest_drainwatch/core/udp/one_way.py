"""One-way UDP: the client tells what it sent, the pods tell what they received.

Nobody answers, so a flow's life is put together from both: a receipt counts as an
answer of the pod that received it, placed on the harness's clock; what no pod received
counts as unanswered. From there on the same table judges as for any other flow.

What is not known stays unknown. A pod that was killed told its last count up to a
second before: what was sent from then to its end was received or not, nobody knows. So
losses count from the first send after the end of its container. Where that is not known
either, or its log broke, the flow is followed up to the pod's last word. Where it is not
known who received what, the flow is not measured at all. A note says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pytest_drainwatch.core.clock import Clock
from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.recording import merge
from pytest_drainwatch.core.transitions import Transition
from pytest_drainwatch.core.udp.continuity import CUT, FIRST_RECEIVER, NOT_KNOWN
from pytest_drainwatch.core.udp.receipts import Receipt, Receipts, receipts_of
from pytest_drainwatch.core.udp.sends import Sends

JITTER_NS = 1 * NS_PER_MS  # what a passage may take beyond the shortest one
_OURS = frozenset({Event.FLOW_SENT, Event.FLOW_OPEN_AT_END})


def told_by_the_probe(
    seen: Sequence[Observation], clocks: Mapping[str, Clock], changes: Iterable[Transition]
) -> tuple[tuple[Observation, ...], tuple[str, ...]]:
    """The observations with one-way flows told as if they had been answered, and notes."""
    connected = [o for o in seen if o.event is Event.FLOW_CONNECTED and o.data.get("one_way")]
    if not connected:
        return tuple(seen), ()
    flows = {o.subject for o in connected}
    receipts = receipts_of(seen, clocks, changes)
    told = [o for o in seen if not (o.source is Source.CLIENT and o.subject in flows)]
    notes: list[str] = []
    for flow in sorted(flows):
        history = [o for o in seen if o.source is Source.CLIENT and o.subject == flow]
        retold, note = _retold(flow, history, receipts)
        told += retold
        notes += [] if note is None else [f"{flow} is not {note}"]
    return tuple(told), tuple(notes)


def _retold(
    flow: str, history: Sequence[Observation], receipts: Receipts
) -> tuple[list[Observation], str | None]:
    """The flow's history in a two-way flow's words; what is not known of it, and why."""
    sends = Sends.of(history)
    ended = next((o for o in history if o.event is Event.FLOW_OPEN_AT_END), None)
    told = [o for o in history if o.event not in _OURS]
    why = receipts.unknown(flow, sends)
    if why is not None:
        return _marked(told, why, receipts.first.get(flow)), f"measured: {why}"
    life: list[Observation] = []
    previous: Receipt | None = None
    received = receipts.by_flow.get(flow, ())
    for receipt in received:
        life += _lost(flow, sends, previous, receipt.first_seq - 1, receipt.first.hi)
        life += _received(flow, receipt, previous)
        previous = receipt
    if ended is not None and sends.last_seq:
        life += _lost(flow, sends, previous, sends.last_seq, ended.at.hi)
    told = list(merge(told, life))
    cut = next((receipt for receipt in received if receipt.cut), None)
    if cut is not None:
        why = f"the log of {cut.responder} ends before the pod did"
    elif ended is None:
        why = "the client's record ends before the flow's"
    else:
        answered = sum(receipt.count for receipt in received)
        return [*told, replace(ended, data={**ended.data, "answered": answered})], None
    return _marked(told, why, receipts.first.get(flow)), f"known to its end: {why}"


def _marked(told: Iterable[Observation], why: str, first: str | None) -> list[Observation]:
    """The history, whose first line says that its end is missing, and why."""
    mark = {NOT_KNOWN: why, FIRST_RECEIVER: first}
    return [
        replace(o, data={**o.data, **mark}) if o.event is Event.FLOW_CONNECTED else o for o in told
    ]


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
            **({CUT: True} if receipt.cut else {}),
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


def _observation(event: Event, flow: str, at: Interval, **data: object) -> Observation:
    return Observation(source=Source.CLIENT, event=event, at=at, subject=flow, data=data)
