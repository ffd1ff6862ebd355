"""The held flows of a simulated trial: what the flow agent would have written of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.scenario import App, Behavior
from pytest_drainwatch.core.simulation.cluster import Pod
from pytest_drainwatch.core.simulation.dataplane import DataPlane, told
from pytest_drainwatch.core.simulation.latencies import Latencies
from pytest_drainwatch.core.simulation.record import ADDRESS, CLOCK, TCP_PORT, UDP_PORT, at
from pytest_drainwatch.core.simulation.sends import Sends

# A node gives up asking for a dead pod's hardware address after three seconds (FACTS M11).
NEIGHBOUR_NS = 3 * NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A flow, the pod that it was dialled to, and when it sends."""

    id: str
    proto: Proto
    pod: Pod
    sends: Sends


def tcp_flow(flow: Held, app: App, took: Latencies, end_ns: int) -> Iterator[Observation]:
    """A connection stays with its pod, until one of them closes it or the trial is over."""
    answer_ns = took.rtt_ns + app.response_delay_ns
    end = flow.pod.end
    lasts = end is None or end_ns < end.ended_ns
    ended_ns = end_ns if end is None else min(end_ns, end.ended_ns)
    answered = flow.sends.number_before(ended_ns - answer_ns + 1)
    sent = flow.sends.number_before(ended_ns)
    if lasts:
        sent = answered  # what is under way when the trial is over counts for nothing
    elif end is not None and end.deadline_ns is not None:
        # A probe that drains answers what it has read, and nothing is sent after its bye.
        sent = answered = min(answered, flow.sends.number_before(end.deadline_ns))
    yield from _opened(flow, flow.pod, took)
    yield _answered(flow, flow.pod, 1, answered, answer_ns)
    if sent > answered:
        yield _unanswered(flow, answered + 1, sent, ended_ns)
    if end is None or lasts:
        yield _open_at_end(flow, sent, answered, answered, end_ns)
        return
    if end.deadline_ns is not None:
        data: dict[str, object] = {"seq": sent, "reason": "drain-deadline"}
        yield _client(Event.FLOW_ANNOUNCED, flow, at(ended_ns), **data)
    if app.behavior is Behavior.EXIT_NOW and app.exit_now_reset and not end.killed:
        yield _client(Event.FLOW_RESET, flow, at(ended_ns), errno="ECONNRESET")
    else:
        yield _client(Event.FLOW_FIN, flow, at(ended_ns), bytes_pending=0)


@dataclass(frozen=True, slots=True)
class Leg:
    """Part of a UDP flow's path: the requests ``first`` to ``last`` lead to this pod, of which
    it answers those up to ``answered``; None: they are rejected.
    """

    pod: Pod | None
    first: int
    answered: int
    last: int


def legs(
    flow: Held, pods: Mapping[str, Pod], plane: DataPlane, took: Latencies, end_ns: int
) -> list[Leg]:
    """The whole path of a UDP flow."""
    found: list[Leg] = []
    # What is under way when the trial is over counts for nothing.
    number, pod, total = 1, flow.pod, flow.sends.number_before(end_ns - took.rtt_ns)
    since_ns = flow.sends.slot(1)
    index = int(flow.id.rpartition("-")[2])
    while number <= total:
        moves_ns = plane.dropped_ns(pod.uid, since_ns)
        last = total if moves_ns is None else min(total, flow.sends.number_before(moves_ns))
        answered = total
        if pod.end is not None:  # what has got there in time is answered
            passage_ns = min(took.rtt_ns, took.refusal_ns) // 2
            answered = min(total, flow.sends.number_before(pod.end.exit_ns - passage_ns))
        if last >= number:
            found.append(Leg(pod, number, max(number - 1, min(last, answered)), last))
        number = max(number, last + 1)
        if moves_ns is None or number > total:
            break
        since_ns = flow.sends.slot(number)
        chosen = plane.chosen(since_ns, index)
        if chosen is None:  # dropped while somebody serves, so somebody is routable
            break
        pod = pods[chosen]
    return found


def refused_by_kernels(
    flows: Sequence[tuple[Held, Sequence[Leg]]], fresh: Mapping[str, Iterable[int]]
) -> tuple[dict[str, list[int]], dict[str, set[int]]]:
    """Whom a dead process's kernel told, while its network was there: the flows' requests by
    number, and of the new ones that were ``fresh`` (by the pod's uid) when they were sent.

    They share one limit, for all of them come from the node's address (FACTS K13).
    """
    asked: dict[str, list[tuple[int, str, int]]] = {}
    for flow, path in flows:
        for leg in path:
            end = leg.pod.end if leg.pod else None
            if leg.pod is None or end is None or leg.last <= leg.answered:
                continue
            for number in range(leg.answered + 1, leg.last + 1):
                sent_ns = flow.sends.slot(number)
                if sent_ns >= end.network_ns:
                    break
                asked.setdefault(leg.pod.uid, []).append((sent_ns, flow.id, number))
    for uid, times in fresh.items():
        asked.setdefault(uid, []).extend((sent_ns, "", 0) for sent_ns in times)
    by_flow: dict[str, list[int]] = {}
    by_pod: dict[str, set[int]] = {}
    for uid, found in asked.items():
        found.sort()
        for (sent_ns, who, number), heard in zip(
            found, told(ns for ns, _, _ in found), strict=True
        ):
            if heard and who:
                by_flow.setdefault(who, []).append(number)
            elif heard:
                by_pod.setdefault(uid, set()).add(sent_ns)
    return by_flow, by_pod


def udp_flow(
    flow: Held,
    path: Sequence[Leg],
    refused: Sequence[int],
    took: Latencies,
    end_ns: int,
    *,
    alone: bool,
) -> Iterator[Observation]:
    """A UDP flow along its path. ``refused``: requests of which a kernel told that nobody listens.

    ``alone``: no other pod is on the node, so it learns that the dead pod's address is gone.
    """
    yield from _opened(flow, flow.pod, took)
    answered, good, before = 0, 0, flow.pod
    for leg in path:
        pod = leg.pod
        if pod is None:
            continue
        served = leg.answered >= leg.first
        if served and pod is not before:
            yield _moved(flow, before, pod, leg.first, good, took)
            before = pod
        if served:
            yield _answered(flow, pod, leg.first, leg.answered, took.rtt_ns)
            answered, good = answered + leg.answered - leg.first + 1, leg.answered
        if leg.last > leg.answered:
            lost = max(leg.first, leg.answered + 1)
            for number in refused:
                if lost <= number <= leg.last:
                    yield _icmp(flow, number, 3, "ECONNREFUSED", took.refusal_ns)
            dead_ns = None if pod.end is None else pod.end.network_ns + NEIGHBOUR_NS
            if alone and dead_ns is not None and dead_ns < flow.sends.slot(leg.last):
                number = flow.sends.number_before(dead_ns)
                late_ns = dead_ns - flow.sends.slot(number)
                yield _icmp(flow, number, 1, "EHOSTUNREACH", late_ns)
            known_ns = end_ns
            if leg is not path[-1]:
                known_ns = flow.sends.slot(leg.last + 1) + took.rtt_ns
            yield _unanswered(flow, lost, leg.last, known_ns)
    yield _open_at_end(flow, path[-1].last if path else 0, answered, good, end_ns)


def _opened(flow: Held, pod: Pod, took: Latencies) -> Iterator[Observation]:
    first_ns = flow.sends.slot(1)
    port = TCP_PORT if flow.proto is Proto.TCP else UDP_PORT
    yield _client(
        Event.FLOW_CONNECTED,
        flow,
        at(first_ns - took.rtt_ns, first_ns),
        proto=str(flow.proto),
        remote=f"{ADDRESS}:{port}",
        attempts=1,
    )
    yield _client(
        Event.FLOW_RESPONDER,
        flow,
        at(first_ns, first_ns + took.rtt_ns),
        responder=pod.responder,
        clock=CLOCK,
        seq=1,
        previous=None,
        last_seq=None,
    )


def _moved(
    flow: Held, before: Pod, pod: Pod, number: int, good: int, took: Latencies
) -> Observation:
    lo_ns = flow.sends.slot(good) if good else flow.sends.slot(1)
    return _client(
        Event.FLOW_RESPONDER,
        flow,
        at(lo_ns, flow.sends.slot(number) + took.rtt_ns),
        responder=pod.responder,
        clock=CLOCK,
        seq=number,
        previous=before.responder,
        last_seq=good,
    )


def _answered(flow: Held, pod: Pod, first: int, last: int, took_ns: int) -> Observation:
    sent_ns = flow.sends.slot(last)
    return _client(
        Event.FLOW_ANSWERED,
        flow,
        at(flow.sends.slot(first) + took_ns, sent_ns + took_ns),
        responder=pod.responder,
        first_seq=first,
        last_seq=last,
        count=last - first + 1,
        last_sent_ns=at(sent_ns).lo,
        rtt_min_ns=took_ns,
        rtt_max_ns=took_ns,
        late=0,
        duplicates=0,
    )


def _unanswered(flow: Held, first: int, last: int, known_ns: int) -> Observation:
    first_ns, last_ns = flow.sends.slot(first), flow.sends.slot(last)
    return _client(
        Event.FLOW_UNANSWERED,
        flow,
        at(first_ns, max(last_ns, known_ns)),
        first_seq=first,
        last_seq=last,
        count=last - first + 1,
        first_sent_ns=at(first_ns).lo,
        last_sent_ns=at(last_ns).lo,
    )


def _icmp(flow: Held, number: int, code: int, errno: str, after_ns: int) -> Observation:
    sent_ns = flow.sends.slot(number)
    return _client(
        Event.FLOW_ICMP,
        flow,
        at(sent_ns, sent_ns + after_ns),
        type=3,
        code=code,
        errno=errno,
        offender=ADDRESS,
        seq=number,
        count=1,
    )


def _open_at_end(flow: Held, sent: int, answered: int, good: int, end_ns: int) -> Observation:
    return _client(
        Event.FLOW_OPEN_AT_END,
        flow,
        at(end_ns),
        sent=sent,
        answered=answered,
        unanswered=sent - answered,
        late=0,
        reordered=0,
        duplicates=0,
        last_seq=good,
        unsent=0,
    )


def _client(event: Event, flow: Held, when: Interval, **data: object) -> Observation:
    return Observation(source=Source.CLIENT, event=event, at=when, subject=flow.id, data=data)
