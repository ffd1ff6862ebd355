"""Effects must not precede their causes: the check of all clocks against each other.

Stamps of one clock, or of clocks whose offset is bounded, are put side by side. A
pair whose intervals overlap says nothing; an effect that was certainly over before
its cause began is impossible, so the clocks are not what they are taken for, and no
number of that recording can be trusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core import clock
from pytest_drainwatch.core.clock import Clock, ClockError
from pytest_drainwatch.core.interval import Interval, Order
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.recording import dump_observation
from pytest_drainwatch.core.start import Start


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Two observations of which the second cannot have happened before the first."""

    law: str
    cause: Observation
    effect: Observation
    cause_at: Interval
    effect_at: Interval


def check(seen: Sequence[Observation], start: Start, clocks: Mapping[str, Clock]) -> None:
    """Raise :class:`~.clock.ClockError` with both observations of an impossible pair."""
    for link in _links(seen, start, clocks):
        if link.effect_at.order(link.cause_at) is Order.BEFORE:
            early_ms = (link.cause_at.lo - link.effect_at.hi) / 1e6
            raise ClockError(
                f"{link.law}, but on the harness's clock the second lies at least "
                f"{early_ms:.3f} ms before the first:\n"
                f"  cause:  {_words(link.cause, link.cause_at, start.t0_ns)}\n"
                f"  effect: {_words(link.effect, link.effect_at, start.t0_ns)}\n"
                "Look at: was a clock stepped, or did somebody else signal the pod before?"
            )


def _links(
    seen: Sequence[Observation], start: Start, clocks: Mapping[str, Clock]
) -> Iterator[Link]:
    causes: dict[tuple[Event, str], tuple[Observation, Interval]] = {}
    for o in seen:
        if o.event in (Event.PROBE_STARTED, Event.DRAIN_DEADLINE_REACHED):
            at = clock.to_harness(o, clocks)
            if at is not None:
                causes.setdefault((o.event, _responder(o)), (o, at))
    served_by: dict[str, str] = {}
    for o in seen:
        cause: tuple[Observation, Interval] | None = None
        law, at = "", clock.to_harness(o, clocks)
        if o.event is Event.FLOW_RESPONDER:
            who = served_by[o.subject] = str(o.data.get("responder", ""))
            cause = causes.get((Event.PROBE_STARTED, who))
            law = "a probe answers after it has started"
        elif o.event is Event.FLOW_ANNOUNCED and o.data.get("reason") == "drain-deadline":
            who = served_by.get(o.subject, "")
            cause = causes.get((Event.DRAIN_DEADLINE_REACHED, who))
            law = "a probe says bye when its drain window has ended"
        elif o.event is Event.SIGTERM_RECEIVED and o.subject in start.targets:
            cause = (start.accepted, Interval.point(start.t0_ns))
            law = "a target pod gets SIGTERM after the trigger was sent"
        if cause is not None and at is not None:
            yield Link(law=law, cause=cause[0], effect=o, cause_at=cause[1], effect_at=at)


def _responder(seen: Observation) -> str:
    return f"{seen.subject}/{seen.data.get('nonce', '')}"


def _words(seen: Observation, at: Interval, t0_ns: int) -> str:
    since = at.since(t0_ns)
    return f"{since.lo / 1e6:+.3f}..{since.hi / 1e6:+.3f} ms  {dump_observation(seen)}"
