"""Less evidence makes less certain, and never certain of something else.

A generated trial is judged, then judged again with evidence taken away, repeated,
reordered where its order means nothing, or moved within its bounds. A verdict may
become ``not-measured`` and an interval wider or null; nothing else may change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.clock import ClockError
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report, Summary
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome
from pytest_drainwatch.core.interval import NS_PER_MS, Interval, Order
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.recording import Recording
from pytest_drainwatch.core.start import CannotDerive
from tests.core import story as s
from tests.core.story import NEW, OLD, OTHER, at
from tests.core.tries import prober, tries

MS = NS_PER_MS
ELSEWHERE = "boot-2/7"  # the probe's clock in half of the trials
TCP_FATES = ("drained", "reset", "killed", "silent", "survived", "bystander")
UDP_FATES = ("moved", "lost-moved", "refused", "unreachable", "silent", "recovered", "foreign")


def tcp(flow: str, fate: str, ms: float) -> list[Observation]:
    """A TCP flow that meets its fate at ``ms``."""
    end = s.client(Event.FLOW_OPEN_AT_END, flow, at(40_000), sent=1)
    if fate == "bystander":
        return [*s.alive(flow, 39_990, OTHER), end]
    start = s.alive(flow, ms - 1)
    if fate == "drained":
        bye = s.client(Event.FLOW_ANNOUNCED, flow, at(ms, ms + 1), seq=9, reason="drain-deadline")
        return [*start, bye, s.client(Event.FLOW_FIN, flow, at(ms, ms + 1))]
    if fate == "reset":
        return [*start, s.client(Event.FLOW_RESET, flow, at(ms, ms + 1), errno="ECONNRESET")]
    if fate == "killed":
        return [*start, s.client(Event.FLOW_FIN, flow, at(ms, ms + 1))]
    if fate == "silent":
        return [*start, s.unanswered(flow, ms, 39_990, 300, end=40_000), end]
    return [*s.alive(flow, 39_990), end]


def udp(flow: str, fate: str, ms: float) -> list[Observation]:
    """A UDP flow that meets its fate at ``ms``."""
    start = s.alive(flow, ms - 1)
    end = s.client(Event.FLOW_OPEN_AT_END, flow, at(40_000), sent=1)
    after = [s.answered(flow, NEW, ms + 2500, 39_990, (300, 900)), end]
    error = {"type": 3, "code": 3 if fate == "refused" else 1, "errno": "E", "seq": 101}
    match fate:
        case "moved":
            return [*start, s.responder(flow, NEW, ms - 1.2, ms + 16, previous=OLD), *after]
        case "lost-moved":
            lost = s.unanswered(flow, ms, ms + 2400, 140)
            return [*start, lost, s.responder(flow, NEW, ms - 1, ms + 2417, previous=OLD), *after]
        case "foreign":
            return [*start, s.responder(flow, "uid-stranger", ms - 1, ms + 16, previous=OLD), end]
        case "recovered":
            lost = s.unanswered(flow, ms, ms + 400, 20)
            return [*start, lost, s.answered(flow, OLD, ms + 420, 39_990, (130, 900)), end]
        case "silent":
            return [*start, s.unanswered(flow, ms, 39_990, 900, end=40_000), end]
    icmp = s.client(Event.FLOW_ICMP, flow, at(ms, ms + 1), **error)
    return [*start, icmp, s.unanswered(flow, ms, 39_990, 900, end=40_000), end]


def exchange(ms: float, clock: str, skew_ms: float) -> Observation:
    middle = s.ns(ms + 0.1 + skew_ms)
    stamps = {"t1": s.ns(ms), "t2": middle, "t3": middle, "t4": s.ns(ms + 0.2)}
    return s.client(Event.CLOCK_EXCHANGE, f"{OLD}/n", at(ms, ms + 0.2), clock=clock, **stamps)


def logs(clock: str, skew_ms: float, deadline_ms: float | None) -> list[Observation]:
    """The old pod's lifecycle on its own clock."""
    lines = [(Event.PROBE_STARTED, -5950.0), (Event.SIGTERM_RECEIVED, 40.0)]
    if deadline_ms is not None:
        lines += [(Event.DRAIN_DEADLINE_REACHED, deadline_ms), (Event.EXITING, deadline_ms + 5)]
    return [s.log(event, ms + skew_ms, clock=clock, nonce="n") for event, ms in lines]


@st.composite
def trials(draw: st.DrawFn) -> Recording:
    """A finished trial: some flows, an ordinary termination, one clock or two, a stall or none."""
    end_ms = draw(st.sampled_from([60.0, 5100.0, 10_050.0]))
    jitter = st.integers(0, 20)
    tcps = draw(st.lists(st.sampled_from(TCP_FATES), min_size=1, max_size=3))
    udps = draw(st.lists(st.sampled_from(UDP_FATES), min_size=1, max_size=3))
    flows = [
        seen
        for proto, make, fates in (("tcp", tcp, tcps), ("udp", udp, udps))
        for n, fate in enumerate(fates, 1)
        for seen in make(f"{proto}-{n:04d}", fate, end_ms + draw(jitter))
    ]
    clock = draw(st.sampled_from([s.CLOCK, ELSEWHERE]))
    skew = 0.0 if clock == s.CLOCK else draw(st.sampled_from([-300.0, 0.0, 300.0]))
    drains = end_ms - 2 if end_ms > 1000 else None
    seen = [exchange(ms, clock, skew) for ms in (-4000, 10, end_ms)]
    stall = draw(st.sampled_from([None, (0, 50), (end_ms - 30, end_ms + 3), (6000, 14_000)]))
    own = [] if stall is None else [s.client(Event.AGENT_STALLED, "", at(*stall))]
    other = [s.pod(OTHER, -6000, ready=True)]
    return s.recording(
        *([s.accepted()], flows, seen, own, logs(clock, skew, drains), other),
        s.cluster(end_ms=end_ms + 60),
        draw(st.sampled_from([[], met_by_new_connections(end_ms)])),
    )


def met_by_new_connections(end_ms: float) -> list[Observation]:
    """A prober's runs: the old pod until its end, then nobody, then the other one."""
    return prober(
        tries(-200, round((end_ms + 200) / 5)),
        tries(end_ms, 7, Result.REFUSED),
        tries(end_ms + 35, 3, Result.TIMEOUT),
        tries(end_ms + 50, 90, who=OTHER),
        end_ms=40_000,
    )


def judged(recording: Recording) -> Report | None:
    """The report, or None where judging is refused: the most uncertain answer of all."""
    try:
        return derive(recording)
    except (CannotDerive, ClockError):
        return None


def contradictions(sure: Report, less: Report | None) -> list[str]:
    """What ``less`` is certain of that ``sure`` does not allow."""
    if less is None:
        return []
    found = []
    before = {flow.id: flow for flow in sure.trial.flows}
    for flow in less.trial.flows:
        was = before[flow.id]
        if flow.outcome is Outcome.NOT_MEASURED:
            continue
        told = (was.mechanism, Mechanism.NONE)  # none: by what is not known any more
        if flow.outcome is not was.outcome or flow.mechanism not in told:
            found.append(f"{flow.id}: {was.outcome}/{was.mechanism} -> {flow.outcome}")
        elif not _allows(flow.terminal_ns, was.terminal_ns):
            found.append(f"{flow.id}: {was.terminal_ns} -> {flow.terminal_ns}")
    for field in fields(Summary):
        if field.name.endswith("_ns"):
            a, b = getattr(sure.trial.summary, field.name), getattr(less.trial.summary, field.name)
            if b is not None and not _allows(b, a):
                found.append(f"{field.name}: {a} -> {b}")
    found += [
        f"{name}: {windows_of(sure).get(name)} -> {now}"
        for name, now in windows_of(less).items()
        if now is not None and not _allows(now, windows_of(sure).get(name))
    ]
    for tried, now in zip(sure.trial.new_connections, less.trial.new_connections, strict=True):
        if not now.failed <= tried.failed <= now.failed + now.not_judged + (now.lost or 0):
            found.append(f"{tried.prober}: {tried.failed} -> {now.failed} failed")
        for name in ("by_terminating", "after_unready"):
            most, least = getattr(tried, name), getattr(now, name)
            if least is not None and most is not None and least > most:
                found.append(f"{tried.prober}: {name} {most} -> {least}")
        if now.observed_failing and tried.observed_failing:
            for name in ("first_ns", "last_ns", "lasts_ns"):
                was_at = getattr(tried.observed_failing, name)
                if not _allows(getattr(now.observed_failing, name), was_at):
                    found.append(f"{tried.prober}: {name} of {was_at}")
    known = {(o.first, o.second): o.order for o in sure.trial.summary.orders}
    for order in less.trial.summary.orders:
        was_order = known.get((order.first, order.second), order.order)
        if order.order not in (Order.INDETERMINATE, was_order):
            found.append(f"{order} was {was_order}")
    return found


def windows_of(report: Report) -> dict[str, tuple[int, int] | None]:
    """When each window of the target closed and how long it lasted, and the instants beside."""
    found: dict[str, tuple[int, int] | None] = {}
    for pod in report.trial.windows:
        for name in ("advertised", "ready_routable", "dead_endpoint"):
            span = getattr(pod, name)
            found |= {f"{name} closes": span.closes_ns, f"{name} lasts": span.lasts_ns}
        for name in ("deletion_ns", "terminating_ns", "ready_false_ns", "removed_ns"):
            found[name] = getattr(pod, name)
        for n, span in enumerate(pod.fallback_routable or ()):
            found |= {f"fallback {n}": span.opens_ns, f"fallback {n} closes": span.closes_ns}
        if pod.fallback_routable == ():
            found["fallback 0"] = (0, 0)  # certain that there was none
    return found


def _allows(now: tuple[int, int] | None, was: tuple[int, int] | None) -> bool:
    """Whether what was thought possible still is: the new bounds hold the old ones."""
    if now is None or was is None:
        return now is None and was is None
    return now[0] <= was[0] and was[1] <= now[1]


def keep(recording: Recording, wanted: Callable[[Observation], bool]) -> Recording:
    return replace(recording, observations=tuple(filter(wanted, recording.observations)))


def _shows_the_deletion(o: Observation) -> bool:
    """Without it there is no trial to judge, and nothing to contradict."""
    gone = o.data.get("deletion_timestamp") or o.data.get("type") == "DELETED"
    return o.event is Event.POD and o.subject == OLD and bool(gone)


LOST_SOURCES: dict[str, Callable[[Observation], bool]] = {
    "the probes' logs": lambda o: o.source is Source.PROBE,
    "the cluster, but for the deletion": lambda o: (
        o.event in (Event.POD, Event.ENDPOINT_SLICE) and not _shows_the_deletion(o)
    ),
    "the slices": lambda o: o.event is Event.ENDPOINT_SLICE,
    "the pods, but for the deletion": lambda o: o.event is Event.POD and not _shows_the_deletion(o),
    "the exchanges": lambda o: o.event is Event.CLOCK_EXCHANGE,
}


@pytest.mark.parametrize("lost", LOST_SOURCES)
def test_without_a_source(lost: str) -> None:
    found: list[Report | None] = []

    @given(recording=trials())
    @settings(max_examples=80, deadline=None)
    def run(recording: Recording) -> None:
        if lost.endswith("but for the deletion"):
            recording = _with_gap("pods", recording, at(-6001, 60_000))
        less = judged(keep(recording, lambda o: not LOST_SOURCES[lost](o)))
        found.append(less)
        assert contradictions(derive(recording), less) == []

    run()
    assert sum(less is not None for less in found) > len(found) / 2, "most were judged at all"


@pytest.mark.parametrize("source", [Source.CLIENT, Source.ORCHESTRATOR, Source.K8S])
@given(recording=trials())
@settings(max_examples=20, deadline=None)
def test_without_the_trial_itself_nothing_is_judged(source: Source, recording: Recording) -> None:
    """What it was that ended, when, and by whom: each of these sources alone can tell one."""
    assert judged(keep(recording, lambda o: o.source is not source)) is None


LOSABLE = (
    Event.POD,
    Event.ENDPOINT_SLICE,
    Event.CLOCK_EXCHANGE,
    Event.SIGTERM_RECEIVED,
    Event.PROBE_STARTED,
    Event.DRAIN_DEADLINE_REACHED,
)


@pytest.mark.parametrize("event", LOSABLE)
def test_without_some_of_a_kind(event: Event) -> None:
    found: list[Report | None] = []

    @given(recording=trials(), data=st.data())
    @settings(max_examples=80, deadline=None)
    def run(recording: Recording, data: st.DataObject) -> None:
        seen = recording.observations
        several = [o for o in seen if o.event is event and not _shows_the_deletion(o)]
        assume(several)
        lost = data.draw(st.sets(st.integers(0, len(several) - 1), min_size=1))
        gone = [several[i] for i in sorted(lost)]
        if event in (Event.POD, Event.ENDPOINT_SLICE):
            # What a watch misses shows as a gap: without one, nothing was missed.
            gone, recording = _behind_a_gap(gone, recording)
        less = judged(keep(recording, lambda o: not any(o is x for x in gone)))
        found.append(less)
        assert contradictions(derive(recording), less) == []

    run()
    assert sum(less is not None for less in found) > len(found) / 2, "most were judged at all"


def _behind_a_gap(
    gone: Sequence[Observation], recording: Recording
) -> tuple[list[Observation], Recording]:
    resource = "pods" if gone[0].event is Event.POD else "endpointslices"
    first, last = gone[0].at.lo, gone[-1].at.hi
    missed = [
        o
        for o in recording.observations
        if o.event is gone[0].event and first <= o.at.hi <= last and not _shows_the_deletion(o)
    ]
    return missed, _with_gap(resource, recording, Interval(first - MS, last + MS))


def _with_gap(resource: str, recording: Recording, when: Interval) -> Recording:
    gap = Observation(
        source=Source.K8S,
        event=Event.WATCH_GAP,
        at=when,
        data={"resource": resource, "reason": "test"},
    )
    return replace(recording, observations=(*recording.observations, gap))


@given(recording=trials(), data=st.data())
@settings(max_examples=150, deadline=None)
def test_with_frames_repeated(recording: Recording, data: st.DataObject) -> None:
    """A watch may deliver a frame twice, a log be read again from its start."""
    seen = list(recording.observations)
    frames = [i for i, o in enumerate(seen) if o.source in (Source.K8S, Source.PROBE)]
    twice = data.draw(st.sets(st.sampled_from(frames)))
    repeated = [o for i, o in enumerate(seen) for _ in range(2 if i in twice else 1)]
    again = derive(replace(recording, observations=tuple(repeated)))
    assert contradictions(derive(recording), again) == []
    assert again.trial.summary == derive(recording).trial.summary


@given(recording=trials(), data=st.data())
@settings(max_examples=150, deadline=None)
def test_with_simultaneous_observations_in_another_order(
    recording: Recording, data: st.DataObject
) -> None:
    """Each subject's own order is what its source saw; between subjects there is none."""
    known: dict[int, list[Observation]] = {}
    for o in recording.observations:
        known.setdefault(o.at.hi, []).append(o)
    shuffled: list[Observation] = []
    for hi in sorted(known):
        shuffled += _interleaved(known[hi], data)
    swapped = judged(replace(recording, observations=tuple(shuffled)))
    original = replace(recording, observations=tuple(o for hi in sorted(known) for o in known[hi]))
    assert swapped is not None
    assert swapped.trial.flows == derive(original).trial.flows
    assert swapped.trial.summary == derive(original).trial.summary


def _interleaved(together: Iterable[Observation], data: st.DataObject) -> list[Observation]:
    queues: dict[tuple[Source, str], list[Observation]] = {}
    for o in together:
        queues.setdefault((o.source, o.subject), []).append(o)
    order = [key for key, queue in queues.items() for _ in queue]
    if len(queues) > 1:
        order = data.draw(st.permutations(order))
    return [queues[key].pop(0) for key in order]


@given(recording=trials(), shift=st.integers(-400, 400))
@settings(max_examples=150, deadline=None)
def test_with_another_clock_shifted_as_a_whole(recording: Recording, shift: int) -> None:
    """Case C53: what the other clock shows is arbitrary; only differences count."""

    def moved(o: Observation) -> Observation:
        if o.clock == ELSEWHERE:
            return replace(o, at=Interval(o.at.lo + shift * MS, o.at.hi + shift * MS))
        if o.data.get("clock") == ELSEWHERE and o.event is Event.CLOCK_EXCHANGE:
            t2, t3 = (int(str(o.data[t])) + shift * MS for t in ("t2", "t3"))
            return replace(o, data={**o.data, "t2": t2, "t3": t3})
        return o

    there = replace(recording, observations=tuple(map(moved, recording.observations)))
    assert derive(there).trial.summary == derive(recording).trial.summary
    assert derive(there).trial.flows == derive(recording).trial.flows


@given(recording=trials(), shift_us=st.integers(-100, 100))
@settings(max_examples=150, deadline=None)
def test_with_stamps_moved_within_their_bounds(recording: Recording, shift_us: int) -> None:
    """Half a round trip either way cannot be told from the truth: no order may turn over."""

    def moved(o: Observation) -> Observation:
        if o.clock != ELSEWHERE:
            return o
        return replace(o, at=Interval(o.at.lo + shift_us * 1000, o.at.hi + shift_us * 1000))

    there = judged(replace(recording, observations=tuple(map(moved, recording.observations))))
    if there is None:
        return
    before = {(o.first, o.second): o.order for o in derive(recording).trial.summary.orders}
    for order in there.trial.summary.orders:
        was = before[order.first, order.second]
        assert {order.order, was} != {Order.BEFORE, Order.AFTER}
    assert there.trial.flows == derive(recording).trial.flows


@given(recording=trials(), data=st.data())
@settings(max_examples=100, deadline=None)
def test_with_another_stall(recording: Recording, data: st.DataObject) -> None:
    lo = data.draw(st.integers(-5000, 39_000))
    width = data.draw(st.sampled_from([1, 50, 3000, 40_000]))
    stall = s.client(Event.AGENT_STALLED, "", at(lo, lo + width))
    less = replace(recording, observations=(*recording.observations, stall))
    assert contradictions(derive(recording), judged(less)) == []


def test_the_yardstick_sees_a_contradiction() -> None:
    """What these tests rely on: a verdict turned over, bounds moved, are both noticed."""
    drained = derive(s.recording([s.accepted(), s.deleted()], tcp("tcp-0001", "drained", 5100)))
    reset = derive(s.recording([s.accepted(), s.deleted()], tcp("tcp-0001", "reset", 5100)))
    later = derive(s.recording([s.accepted(), s.deleted()], tcp("tcp-0001", "reset", 5105)))
    assert contradictions(drained, drained) == []
    assert contradictions(drained, reset)
    assert contradictions(reset, later)
