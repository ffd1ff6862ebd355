"""Which figures are judged when two runs are compared, and which are only shown.

A figure is judged if more of it is worse for somebody who is connected, and if nobody
asked for more of it. Each further one costs evidence for all (see :mod:`.evidence`), so
none is judged twice under two names.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.repeats.aggregate import Repeat
from pytest_drainwatch.core.repeats.claim import Value
from pytest_drainwatch.core.repeats.metrics import Metric, OwnMetric, Reading, Tally
from pytest_drainwatch.core.scenario import Trigger

# A duration must differ by more than this to count: two runs of one thing on one machine
# differ by as much, because its load is not the same. It is what this project allows its
# own parallel runs. For so long new connections must fail longer as well. Of flows each one
# that was lost counts.
LEAST_EFFECT_NS = 20 * NS_PER_MS
# What a number without bounds is known to at best: its last digit.
LAST_DIGIT_NS = NS_PER_MS

# Longer is worse:
# - to SIGTERM: the application learns later that it must end;
# - from SIGTERM to "not ready": for so long new connections are sent to a pod that is ending
#   (a preStop hook makes it negative, which is what hooks are for);
# - from the last flow's end to the endpoint's removal: for so long a dead pod is advertised;
# - from SIGTERM to that removal: the same and the application's own time, so it is judged
#   only where the one before has no value (no TCP flows).
LONGER_IS_WORSE = (
    Metric.SIGTERM,
    Metric.SIGTERM_TO_READY_FALSE,
    Metric.DEAD_WINDOW,
    Metric.SIGTERM_TO_REMOVED,
)
# Why others are not: they are judged already.
_JUDGED_AS = {
    Metric.ENDPOINT_REMOVED: f"the sum of {Metric.SIGTERM} and {Metric.SIGTERM_TO_REMOVED}",
    OwnMetric.NEW_TCP_FAILING: f"goes with {OwnMetric.NEW_FAILED}",
    OwnMetric.NEW_UDP_FAILING: f"goes with {OwnMetric.NEW_FAILED}",
}
# After these nobody is left who could serve: new connections fail until nobody looks any more,
# and for how long that is follows from the configuration.
_NOBODY_LEFT = frozenset({str(Trigger.SCALE), str(Trigger.NAMESPACE_DELETE)})
# The configuration that sets a duration on purpose: if that differs, so must the duration.
_SET_BY = {
    Metric.SIGTERM: frozenset({"config.pre_stop", "config.grace_period_seconds", "config.pid1"}),
    Metric.SIGTERM_TO_REMOVED: frozenset(
        {
            "config.drain_behavior",
            "config.drain_max_seconds",
            "config.grace_period_seconds",
            "config.pid1",
            "config.pre_stop",
            "config.response_delay_ms",
        }
    ),
}


class Unit(StrEnum):
    """What a figure counts."""

    COUNT = "count"
    NS = "ns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of one scenario on both sides; ``shown_only`` says why it is not judged.

    ``together`` names the connections lost that it counts: of all scenarios they are one
    question (:mod:`.together`). None: of a figure that is asked of each scenario alone.
    """

    name: str
    unit: Unit
    baseline: tuple[Value, ...]
    run: tuple[Value, ...]
    shown_only: str | None = None
    together: Tally | None = None
    bounded: bool = True  # False: a source kept no bounds

    @property
    def least(self) -> int:
        """By more than this it must differ to count."""
        return LEAST_EFFECT_NS if self.unit is Unit.NS else 0

    @property
    def measured(self) -> bool:
        """Whether anybody measured it."""
        return any(value is not None for value in (*self.baseline, *self.run))


def figures(
    baseline: Sequence[Repeat], run: Sequence[Repeat], differing: Collection[str] = ()
) -> list[Figure]:
    """The figures of a scenario; ``differing`` are the fields in which the sides differ."""
    new_ones = _new_connections(baseline, run)
    dead_window = _duration(Metric.DEAD_WINDOW, baseline, run).measured
    durations = [
        _duration(name, baseline, run, _why_not(name, differing, dead_window))
        for name in (*Metric, OwnMetric.NEW_TCP_FAILING, OwnMetric.NEW_UDP_FAILING)
    ]
    flows = [
        _tally(tally, baseline, run)
        for tally in (Tally.TARGET_FLOWS_LOST, Tally.BYSTANDER_FLOWS_LOST)
    ]
    return [*flows, *new_ones, *_requests(baseline, run), *durations]


def _new_connections(baseline: Sequence[Repeat], run: Sequence[Repeat]) -> list[Figure]:
    """How many failed, and for how long: that is judged, for plans have dense parts, in which
    more fail in the same time. The number is, where no repeat knows the time.
    """
    number = _tally(Tally.NEW_CONNECTIONS_FAILED, baseline, run)
    time = replace(_duration(OwnMetric.NEW_FAILED, baseline, run), together=number.together)
    if why := _nobody_left(baseline, run):
        return [replace(each, shown_only=why, together=None) for each in (number, time)]
    if time.measured:
        why = f"{OwnMetric.NEW_FAILED} is judged instead"
        number = replace(number, shown_only=why, together=None)
    return [number, time]


def _requests(baseline: Sequence[Repeat], run: Sequence[Repeat]) -> list[Figure]:
    """How many HTTP requests failed, asked of each scenario alone; they come as often throughout.

    One that fails lasts no time, so for how long they failed says less, and is shown. Nothing of
    runs that asked nothing.
    """
    if not any(Tally.HTTP_REQUESTS_FAILED in each.tallies for each in (*baseline, *run)):
        return []
    number = replace(_tally(Tally.HTTP_REQUESTS_FAILED, baseline, run), together=None)
    why = _nobody_left(baseline, run)
    number = replace(number, shown_only=why) if why else number
    judged = f"{Tally.HTTP_REQUESTS_FAILED} is judged instead"
    return [number, _duration(OwnMetric.HTTP_FAILING, baseline, run, why or judged)]


def _nobody_left(baseline: Sequence[Repeat], run: Sequence[Repeat]) -> str | None:
    """Why it is no wonder that new connections and requests fail; None: it is one."""
    triggers = {str(each.conditions.get("config.trigger")) for each in (*baseline, *run)}
    left = sorted(triggers & _NOBODY_LEFT)
    if not left:
        return None
    return f"after {' or '.join(left)} nobody is left to serve, so they fail until the end"


def _tally(tally: Tally, baseline: Sequence[Repeat], run: Sequence[Repeat]) -> Figure:
    return Figure(
        name=str(tally),
        unit=Unit.COUNT,
        baseline=tuple(repeat.tallies.get(tally) for repeat in baseline),
        run=tuple(repeat.tallies.get(tally) for repeat in run),
        together=tally,
    )


def _why_not(name: Metric | OwnMetric, differing: Collection[str], dead_window: bool) -> str | None:
    if not isinstance(name, Metric) or name not in LONGER_IS_WORSE:
        return _JUDGED_AS.get(name, "later is neither better nor worse")
    if name is Metric.SIGTERM_TO_REMOVED and dead_window:
        return f"{Metric.DEAD_WINDOW} is judged instead"
    asked = sorted(_SET_BY.get(name, frozenset()).intersection(differing))
    return f"follows from {', '.join(asked)}, which differs" if asked else None


def _duration(
    name: Metric | OwnMetric,
    baseline: Sequence[Repeat],
    run: Sequence[Repeat],
    shown_only: str | None = None,
) -> Figure:
    here, there = ([_reading(repeat, name) for repeat in side] for side in (baseline, run))
    return Figure(
        name=str(name),
        unit=Unit.NS,
        baseline=tuple(map(_value, here)),
        run=tuple(map(_value, there)),
        shown_only=shown_only,
        bounded=all(r is None or r.within is not None for r in (*here, *there)),
    )


def _reading(repeat: Repeat, name: Metric | OwnMetric) -> Reading | None:
    return repeat.metrics.get(name) if isinstance(name, Metric) else repeat.own_metrics.get(name)


def _value(reading: Reading | None) -> Value:
    if reading is None:
        return None
    return reading.within or Interval(
        reading.shown_ns - LAST_DIGIT_NS, reading.shown_ns + LAST_DIGIT_NS
    )
