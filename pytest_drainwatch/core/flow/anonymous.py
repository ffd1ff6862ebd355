"""Flows of a workload that does not sign its answers: whose they are, from what else is known.

A connection leads to the pod to which it was led when it was opened. Which one that is

- the slices tell, where the Service had a single endpoint from the flow's begin to the trigger;
- conntrack tells, where the node could be looked into just before the trigger.

The answers of such a flow are then that pod's: of TCP all of them, of UDP those up to its end,
for a datagram may be led to another pod. Where neither tells, nobody knows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_drainwatch.core.endpoints import Snapshot, snapshots
from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.jsonvalue import integer, integer_or_none, text
from pytest_drainwatch.core.leading import all_among, led_to, only_endpoint, strangers
from pytest_drainwatch.core.mechanism.occasion import Occasion
from pytest_drainwatch.core.mechanism.pods import Pods, pods_of
from pytest_drainwatch.core.mechanism.snapshot import Look, looks_of
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.transitions import Transition
from pytest_drainwatch.core.udp.continuity import CUT

# Keepalives are a second apart: whoever was silent for longer may be gone.
ACK_FRESH_NS = 2_500 * NS_PER_MS
BY_SLICES, BY_CONNTRACK = "the only endpoint", "conntrack"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identified:
    """The observations with names put to the answers, as far as they are known.

    ``all_targets``: every endpoint of just before the trigger is a target, so that a flow is a
    target's whichever it leads to.
    """

    seen: tuple[Observation, ...]
    anonymous: bool = False
    all_targets: bool = False
    notes: tuple[str, ...] = ()


def identified(
    seen: Sequence[Observation],
    changes: Sequence[Transition],
    *,
    t0_ns: int,
    targets: frozenset[str],
) -> Identified:
    """Put names to the answers of the flows of an attached workload."""
    opened = [o for o in seen if o.event is Event.FLOW_CONNECTED and o.data.get("anonymous")]
    pods, looks = pods_of(seen, changes), looks_of(seen)
    before = [each for each in snapshots(seen) if each.received_ns < t0_ns]
    all_targets = all_among(before, targets)
    look = next((each for each in looks if each.occasion is Occasion.TRIGGER), None)
    owners = {o.subject: _owner(o, before, look, pods) for o in opened}
    histories: dict[str, list[Observation]] = {o.subject: [] for o in opened}
    for o in seen:
        if _is_of(o, histories):
            histories[o.subject].append(o)
    retold: dict[str, list[Observation]] = {}
    for flow, history in histories.items():
        uid, by = owners[flow]
        leading = targets if uid is None and all_targets else {uid or ""}
        gone = [pods.ended_ns.get(each) for each in leading]
        move = _move(history, uid, gone, looks, pods, t0_ns) if flow.startswith("udp") else None
        retold[flow] = list(_retold(history, uid, by, move))
    return Identified(
        seen=tuple(_merged(seen, retold)),
        anonymous=True,
        all_targets=all_targets,
        notes=(
            *_notes(sum(uid is None for uid, _ in owners.values()), owners, all_targets),
            *_of_others(len(strangers(before, seen))),
        ),
    )


def _notes(
    unknown: int, owners: Mapping[str, tuple[str | None, str]], all_targets: bool
) -> Iterator[str]:
    ways = sorted({by for uid, by in owners.values() if uid is not None})
    if ways:
        yield (
            "answers do not say who gives them: to which pod flows lead is known by "
            f"{' and '.join(ways)}"
        )
    if unknown:
        roles = "all pods were targets, so it is known" if all_targets else "it is null"
        yield (
            f"to which pod {unknown} of {len(owners)} flows lead is not known (several endpoints, "
            f"and no conntrack to look into); their role: {roles}"
        )


def _of_others(count: int) -> Iterator[str]:
    if count:
        yield (
            f"the Service led to {count} pod(s) that are not this workload's as well: what these "
            "answered counts as answered, among new connections and requests too"
        )


def _owner(
    opened: Observation, before: Sequence[Snapshot], look: Look | None, pods: Pods
) -> tuple[str | None, str]:
    """The pod that a flow was led to when the trigger came, and by what that is known."""
    only = only_endpoint(before, opened.at.lo)
    if only is not None:
        return only, BY_SLICES
    led = _led(opened, look, pods)
    return (None, "") if led is None else (led, BY_CONNTRACK)


def _led(opened: Observation, look: Look | None, pods: Pods) -> str | None:
    return led_to(text(opened.data.get("proto")), text(opened.data.get("local")), look, pods)


def _move(
    history: Sequence[Observation],
    uid: str | None,
    gone: Sequence[int | None],
    looks: Sequence[Look],
    pods: Pods,
    t0_ns: int,
) -> Interval | None:
    """Within what datagrams came to be led to another pod; None: they were not, or who knows.

    ``gone`` are the ends of the pods to which they can have been led when the trigger came.
    Who is answered after all of these is answered by somebody else.
    """
    ends = [at_ns for at_ns in gone if at_ns is not None]
    answered = [o for o in history if o.event is Event.FLOW_ANSWERED]
    last_ns = max((integer(o.data.get("last_sent_ns"), o.at.lo) for o in answered), default=0)
    if not ends or len(ends) < len(gone) or last_ns <= max(ends):
        return None
    lo, hi = min(t0_ns, max(ends)), max(ends)
    for look in looks:
        led = _led(history[0], look, pods)
        if uid is None or led is None or look.entries_at is None:
            continue
        if led == uid:
            lo = max(lo, min(look.entries_at.lo, hi))
        else:
            hi = min(hi, max(look.entries_at.hi, lo))
    return Interval(lo, hi)


def _retold(
    history: Sequence[Observation], uid: str | None, by: str, move: Interval | None
) -> Iterator[Observation]:
    """A flow's history with its pod named, and what it held in words of its own."""
    moved = False
    for o in history:
        if o.event is Event.FLOW_CONNECTED:
            yield replace(o, data={**o.data, "led_by": by or None})
            if o.data.get("held"):
                yield from _held(o, history, uid)
        elif o.event is Event.FLOW_RESPONDER:
            yield _by(o, uid)
        elif o.event is not Event.FLOW_ANSWERED:
            yield o
        elif move is None or integer(o.data.get("last_sent_ns"), o.at.lo) <= move.lo:
            yield _by(o, uid)
        elif moved:
            yield _by(o, None)
        else:
            moved = True
            yield from _moving(o, uid, move)


def _by(o: Observation, uid: str | None) -> Observation:
    return replace(o, data={**o.data, "responder": uid or ""})


def _moving(o: Observation, uid: str | None, move: Interval) -> Iterator[Observation]:
    """The stretch of answers within, or before, which the flow came to lead elsewhere."""
    if o.at.lo <= move.lo:  # how many of them were whose is not told
        yield replace(o, data={**_by(o, uid).data, "last_sent_ns": move.lo, CUT: True})
    yield _of(
        o,
        Event.FLOW_RESPONDER,
        move,
        responder="",
        seq=integer_or_none(o.data.get("first_seq")),
        previous=uid or "a pod that was terminated",
        last_seq=None,
        bounded=True,
    )
    if o.at.lo > move.lo:
        yield _by(o, None)


def _held(
    opened: Observation, history: Sequence[Observation], uid: str | None
) -> Iterator[Observation]:
    """A connection on which nothing is said: alive for as long as its peer's kernel says so."""
    last = history[-1]
    until_ns = last.at.lo
    if last.event is Event.FLOW_OPEN_AT_END:
        ago_ms = integer_or_none(last.data.get("last_ack_ms"))
        until_ns = opened.at.hi if ago_ms is None else last.at.lo - ago_ms * NS_PER_MS
    until_ns = max(opened.at.hi, until_ns)
    yield _of(opened, Event.FLOW_RESPONDER, opened.at, responder=uid or "", previous=None)
    # Without a responder: a kernel acknowledges for a process that may have ended.
    yield _of(opened, Event.FLOW_ANSWERED, Interval(opened.at.hi, until_ns), count=0)
    if last.event is Event.FLOW_OPEN_AT_END and last.at.lo - until_ns > ACK_FRESH_NS:
        yield _of(opened, Event.FLOW_UNANSWERED, Interval(until_ns, last.at.lo), count=0)


def _of(opened: Observation, event: Event, at: Interval, **data: object) -> Observation:
    return Observation(source=Source.CLIENT, event=event, at=at, subject=opened.subject, data=data)


def _merged(
    seen: Sequence[Observation], retold: Mapping[str, list[Observation]]
) -> Iterator[Observation]:
    """All observations; each anonymous flow's own stand where its last one stood."""
    last = {o.subject: n for n, o in enumerate(seen) if _is_of(o, retold)}
    for n, o in enumerate(seen):
        if not _is_of(o, retold):
            yield o
        elif n == last[o.subject]:
            yield from retold[o.subject]


def _is_of(o: Observation, flows: Collection[str]) -> bool:
    return o.source is Source.CLIENT and o.subject in flows
