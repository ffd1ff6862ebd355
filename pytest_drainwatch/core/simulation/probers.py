"""New connections of a simulated trial: what each attempt would have met, in runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.simulation.cluster import Pod
from pytest_drainwatch.core.simulation.dataplane import DataPlane, told
from pytest_drainwatch.core.simulation.latencies import Latencies
from pytest_drainwatch.core.simulation.record import ADDRESS, NODE, T0_NS, at, source
from pytest_drainwatch.core.simulation.sends import Stretch

PATIENCE_NS = 1 * NS_PER_S  # an attempt is given up after it


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Prober ``number`` (from 1 on); since the trigger slot ``n`` lies at ``epoch_ns + n *
    period_ns``.
    """

    proto: Proto
    number: int
    epoch_ns: int
    period_ns: int
    sparse_every: int
    over: Sequence[Stretch]

    @property
    def name(self) -> str:
        """The prober's subject."""
        return f"{self.proto}-new"

    def every(self, one: Stretch) -> int:
        """Each so many-th slot of a stretch is tried."""
        return 1 if one.dense else self.sparse_every

    def slots(self, one: Stretch, end_ns: int) -> range:
        """Those that are tried in a stretch, up to the end of the trial."""
        step = self.every(one)
        first, last = (
            -(-(ns - self.epoch_ns) // (self.period_ns * step)) * step
            for ns in (one.lo_ns, min(one.hi_ns, end_ns))
        )
        return range(max(0, first), max(0, last), step)

    def slot_ns(self, slot: int) -> int:
        """When a slot is due, and tried."""
        return self.epoch_ns + slot * self.period_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt and how it went. ``led_to``: the pod, if it was led to any."""

    slot: int
    every: int
    at_ns: int
    result: Result
    took_ns: int
    led_to: Pod | None = None

    @property
    def over_ns(self) -> int:
        """When it was known how it went."""
        return self.at_ns + self.took_ns

    @property
    def alike(self) -> tuple[object, ...]:
        """Attempts in a row that have the same of this make one run."""
        answered = self.result is Result.ANSWERED
        return self.result, self.led_to.uid if answered and self.led_to else None, self.every


def led(plan: Plan, pods: Mapping[str, Pod], plane: DataPlane, end_ns: int) -> list[Attempt]:
    """Every attempt, with the pod that it is led to, taken for a timeout where nobody answers."""
    return [
        Attempt(
            slot=slot,
            every=plan.every(one),
            at_ns=plan.slot_ns(slot),
            result=Result.TIMEOUT,
            took_ns=PATIENCE_NS,
            led_to=None if (uid := plane.chosen(plan.slot_ns(slot), slot)) is None else pods[uid],
        )
        for one in plan.over
        for slot in plan.slots(one, end_ns)
    ]


def dying(attempts: Sequence[Attempt]) -> dict[str, list[int]]:
    """UDP attempts at pods whose process is gone and whose network is not, by the pod's uid."""
    found: dict[str, list[int]] = {}
    for each in attempts:
        end = each.led_to.end if each.led_to else None
        if each.led_to and end and end.exit_ns <= each.at_ns < end.network_ns:
            found.setdefault(each.led_to.uid, []).append(each.at_ns)
    return found


def met(
    proto: Proto,
    attempts: Sequence[Attempt],
    heard: Mapping[str, set[int]],
    took: Latencies,
    answer_ns: int,
) -> list[Attempt]:
    """How each went. ``heard``: UDP attempts that a dead process's kernel refused, by pod."""
    rejected = [each for each in attempts if each.led_to is None]
    told_of = dict(zip((e.slot for e in rejected), told(e.at_ns for e in rejected), strict=True))
    found = []
    for each in attempts:
        result, took_ns = Result.TIMEOUT, PATIENCE_NS
        pod = each.led_to
        end = pod.end if pod else None
        if pod is None:
            refused = told_of[each.slot]
        elif end is None or each.at_ns + answer_ns < _serves_until(proto, pod):
            result, took_ns, refused = Result.ANSWERED, answer_ns, False
        elif proto is Proto.TCP:  # an RST is not limited
            refused = each.at_ns < end.network_ns
        else:
            refused = each.at_ns in heard.get(pod.uid, ())
        if refused:
            result, took_ns = Result.REFUSED, took.refusal_ns
        found.append(
            Attempt(
                slot=each.slot,
                every=each.every,
                at_ns=each.at_ns,
                result=result,
                took_ns=took_ns,
                led_to=pod,
            )
        )
    return found


def _serves_until(proto: Proto, pod: Pod) -> int:
    assert pod.end is not None
    return pod.end.accepts_until_ns if proto is Proto.TCP else pod.end.exit_ns


def recorded(plan: Plan, attempts: Sequence[Attempt], end_ns: int) -> Iterator[Observation]:
    """The runs, and the prober's summary."""
    run: list[Attempt] = []
    for each in attempts:
        in_order = run and each.slot - run[-1].slot == each.every
        if run and not (in_order and each.alike == run[-1].alike):
            yield _run(plan, run)
            run = []
        run.append(each)
    if run:
        yield _run(plan, run)
    first_ns = attempts[0].at_ns if attempts else plan.epoch_ns
    yield Observation(
        source=Source.CLIENT,
        event=Event.PROBER_SUMMARY,
        at=at(first_ns, max([end_ns, *(each.over_ns for each in attempts)])),
        subject=plan.name,
        data={
            "proto": str(plan.proto),
            "period_ns": plan.period_ns,
            "epoch_ns": T0_NS + plan.epoch_ns,
            "patience_ns": PATIENCE_NS,
            "source": source(plan.number),
            "address": ADDRESS,
            "node": NODE,
            "attempts": len(attempts),
            "unfinished": 0,
            "missed_slots": 0,
            "late_p50_ns": 0,
            "late_p99_ns": 0,
            "late_max_ns": 0,
            "stretches": list(_stretches(plan, end_ns)),
        },
    )


def _stretches(plan: Plan, end_ns: int) -> Iterator[dict[str, object]]:
    for one in plan.over:
        hi_ns = min(one.hi_ns, end_ns)
        if one.lo_ns < hi_ns:
            yield {
                "at": [T0_NS + one.lo_ns, T0_NS + hi_ns],
                "every": plan.every(one),
                "attempts": len(plan.slots(one, end_ns)),
                "missed_slots": 0,
            }


def _run(plan: Plan, run: Sequence[Attempt]) -> Observation:
    first, last = run[0], run[-1]
    data: dict[str, object] = {"result": str(first.result), "first_slot": first.slot}
    if first.result is Result.ANSWERED and first.led_to is not None:
        data["responder"] = first.led_to.responder
    if first.result is Result.REFUSED:
        data["errno"] = "ECONNREFUSED"
    if first.every > 1:
        data["every"] = first.every
    if len(run) > 1:
        took = [each.took_ns for each in run]
        data |= {
            "last_slot": last.slot,
            "count": len(run),
            "first_ns": T0_NS + first.at_ns,
            "last_ns": T0_NS + last.at_ns,
            "first_took_ns": first.took_ns,
            "last_took_ns": last.took_ns,
            "took_min_ns": min(took),
            "took_max_ns": max(took),
        }
    return Observation(
        source=Source.CLIENT,
        event=Event.NEW_CONNECTIONS,
        at=at(first.at_ns, max(each.over_ns for each in run)),
        subject=plan.name,
        data=data,
    )
