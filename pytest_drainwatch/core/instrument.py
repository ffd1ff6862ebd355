"""What the instrument says about itself: what it sent when, and when it did not run."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_drainwatch.core.document import Episode, Sending, SendingStretch
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.jsonvalue import integer, integer_or_none, number
from pytest_drainwatch.core.observation import Event, Observation, Source

_KEPT = ("sends", "missed_slots", "late_p50_ns", "late_p99_ns", "late_max_ns")


def sending(seen: Iterable[Observation], t0_ns: int) -> Sending:
    """How the flow agent kept its schedule, in all and per stretch."""
    whole: dict[str, int | None] = {}
    stretches = []
    for o in seen:
        if o.event is Event.AGENT_SUMMARY:
            whole = {name: integer_or_none(o.data.get(name)) for name in _KEPT}
        elif o.event is Event.AGENT_SENDING and o.data.get("proto") in tuple(Proto):
            stretches.append(_stretch(o, t0_ns))
    return Sending(**whole, stretches=tuple(sorted(stretches, key=lambda s: (s.proto, s.at_ns))))


def stalls(seen: Iterable[Observation], t0_ns: int) -> tuple[Episode, ...]:
    """When agent, watches or the whole machine did not run, and which of them it was."""
    return tuple(
        Episode(
            source=Source(o.source),
            subject=o.subject,
            at_ns=(o.at.lo - t0_ns, o.at.hi - t0_ns),
            kind=str(o.event),
            detail=words,
        )
        for o in seen
        if (words := _words(o)) is not None
    )


def _stretch(seen: Observation, t0_ns: int) -> SendingStretch:
    data = seen.data
    return SendingStretch(
        proto=Proto(str(data.get("proto"))),
        rate_hz=number(data.get("rate_hz")),
        at_ns=(seen.at.lo - t0_ns, seen.at.hi - t0_ns),
        flows=integer_or_none(data.get("flows")),
        **{name: integer_or_none(data.get(name)) for name in _KEPT},
    )


def _words(seen: Observation) -> str | None:
    """What did not run, for how long; None if this tells of no stall."""
    data = seen.data

    def took(name: str) -> str:
        return f"{integer(data.get(name), 0) / NS_PER_MS:.0f} ms"

    match seen.event:
        case Event.AGENT_STALLED:
            return f"the flow agent did not run for {took('late_ns')}"
        case Event.AGENT_THROTTLED:
            return (
                f"a CPU quota held the flow agent's cgroup for {took('throttled_ns')}, summed "
                f"over CPUs, in {integer(data.get('periods'), 0)} period(s)"
            )
        case Event.HOST_SUSPENDED:
            return f"the machine was suspended for {took('suspended_ns')}"
        case Event.WATCHER_STALLED:
            times = integer(data.get("count"), 1)
            return f"the watches' process did not run for {took('late_ns')}" + (
                f", the longest of {times} times" if times > 1 else ""
            )
        case _:
            return None
