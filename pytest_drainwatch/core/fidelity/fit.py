"""Measured trials -> the simulator's latencies, each with its spread and where it was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from pytest_drainwatch.core.fidelity.readings import READINGS
from pytest_drainwatch.core.fidelity.trial import Trial
from pytest_drainwatch.core.repeats.stats import median
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.core.simulation.latencies import Latencies

ALL = "all"
NOT_SHOWN = "no trial shows it: the simulator's default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """One latency as some trials show it, in ns.

    ``value_ns`` is their median, or, where none shows it (``observed`` is 0), the simulator's
    default, which ``note`` then says. ``trials`` are whose: an arm, or a trigger, or all. A trial
    may show a negative one: two sources tell of one instant in either order. The simulator knows
    none, so a negative median is 0 there.
    """

    name: str
    value_ns: int
    least_ns: int | None
    greatest_ns: int | None
    observed: int
    trials: str
    source: str
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """All latencies of one arm."""

    parameters: tuple[Fitted, ...]

    @property
    def latencies(self) -> Latencies:
        """What the simulator is told."""
        return replace(Latencies(), **{each.name: each.value_ns for each in self.parameters})


def fit(trials: Sequence[Trial], scenario: Scenario) -> Fit:
    """The latencies that ``scenario`` would meet where these trials were measured.

    Each is the median over the trials of that very scenario, if one shows it: how long a
    container's end takes depends on what else its node has to do then, such as to start another
    one. Else it is that of all trials; of what depends on the trigger, of those with the same.
    """
    wider = [
        (f"trigger {scenario.trigger}", [t for t in trials if _same_trigger(t, scenario)]),
        (ALL, trials),
    ]
    mine = [trial for trial in trials if trial.scenario.id == scenario.id]
    names = [each.name for each in fields(Latencies)]
    return Fit(parameters=tuple(_fitted(name, [(scenario.id, mine), *wider]) for name in names))


def own(trial: Trial, otherwise: Fit) -> Latencies:
    """The latencies that one trial itself shows; those that it does not, from a fit."""
    shown = {
        name: max(0, value_ns)
        for name in (each.name for each in otherwise.parameters)
        if name in READINGS and (value_ns := READINGS[name].read(trial)) is not None
    }
    return replace(otherwise.latencies, **shown)


def _same_trigger(trial: Trial, scenario: Scenario) -> bool:
    return trial.scenario.trigger is scenario.trigger


def _fitted(name: str, whose: Sequence[tuple[str, Sequence[Trial]]]) -> Fitted:
    """From the first of these, the nearest ones first, that show it at all."""
    reading = READINGS.get(name)
    for said, trials in whose if reading else ():
        assert reading is not None
        if said.startswith("trigger ") and not reading.by_trigger:
            continue
        seen = [ns for trial in trials if (ns := reading.read(trial)) is not None]
        if seen:
            return Fitted(
                name=name,
                value_ns=max(0, median(seen)),
                least_ns=min(seen),
                greatest_ns=max(seen),
                observed=len(seen),
                trials=said,
                source=reading.source,
            )
    return Fitted(
        name=name,
        value_ns=getattr(Latencies(), name),
        least_ns=None,
        greatest_ns=None,
        observed=0,
        trials="none",
        source=reading.source if reading else "a report does not tell",
        note=NOT_SHOWN,
    )
