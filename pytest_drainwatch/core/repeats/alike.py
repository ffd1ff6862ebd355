"""In what two runs may differ, if their difference is to mean anything.

What a user asks about is the application's own configuration; everything else must be
equal, or a difference would say nothing about it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

ASKED = frozenset(
    f"config.{name}"
    for name in (
        "accept_on_drain",
        "drain_behavior",
        "drain_max_seconds",
        "exit_now_reset",
        "grace_period_seconds",
        "pid1",
        "pre_stop",
        "readiness_on_drain",
        "ready_after_seconds",
        "response_delay_ms",
    )
)
# How long is observed at most follows from some of those, where nobody asked for a time.
FOLLOWS = frozenset({"config.observe_timeout_seconds"})
ABSENT = "absent"
# The condition that no two sides may differ in, whatever anybody says.
SIMULATED = "simulated"


class ComparisonError(ValueError):
    """These two runs cannot be compared; says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A condition that is not the same on both sides."""

    field: str
    baseline: object
    run: object

    def __str__(self) -> str:
        return f"{self.field} is {self.baseline!r} in the baseline and {self.run!r} in the run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlike:
    """Everything in which two scenarios differ, by what that means."""

    asked: tuple[Difference, ...] = ()
    across: tuple[Difference, ...] = ()  # compared nevertheless, because somebody said so
    refused: tuple[Difference, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """Everything that differs, by name."""
        return tuple(each.field for each in (*self.asked, *self.across, *self.refused))


def unlike(
    baseline: Mapping[str, object], run: Mapping[str, object], across: Collection[str] = ()
) -> Unlike:
    """How the conditions of two scenarios differ."""
    found = [
        Difference(field=name, baseline=here, run=there)
        for name in sorted(baseline.keys() | run.keys())
        if (here := baseline.get(name, ABSENT)) != (there := run.get(name, ABSENT))
    ]
    asked = [each for each in found if each.field in ASKED]
    if asked:
        asked += [each for each in found if each.field in FOLLOWS]
    rest = [each for each in found if each not in asked]
    return Unlike(
        asked=tuple(asked),
        across=tuple(each for each in rest if names(each.field) & set(across)),
        refused=tuple(each for each in rest if not names(each.field) & set(across)),
    )


def names(field: str) -> set[str]:
    """How a condition may be called: also without the part of the report that it stands in."""
    return {field, _short(field)}


def refuse(refused: Mapping[str, tuple[Difference, ...]]) -> None:
    """Raise :class:`ComparisonError` naming every field that must not differ, per scenario."""
    # Where scenarios differ in the same way, once.
    alike: dict[str, list[str]] = {}
    for scenario, differences in refused.items():
        for each in differences:
            alike.setdefault(str(each), []).append(scenario)
    if not alike:
        return
    fields = sorted(
        {_short(each.field) for differences in refused.values() for each in differences}
    )
    raise ComparisonError(
        "refusing to compare what was measured under other conditions: "
        + "; ".join(f"{said} ({', '.join(scenarios)})" for said, scenarios in alike.items())
        + ". Expected runs that differ in the application's own configuration only. "
        "Measure a baseline under these conditions, or compare nevertheless with: "
        + " ".join(f"--across {field}" for field in fields)
    )


def refuse_simulated(name: str, scenarios: Mapping[str, Iterable[Mapping[str, object]]]) -> None:
    """Raise :class:`ComparisonError` if a trial of the run called ``name`` is none that was
    measured. ``scenarios`` has the conditions of its trials.
    """
    found = [
        scenario
        for scenario, trials in scenarios.items()
        if any(conditions.get(SIMULATED) is True for conditions in trials)
    ]
    if found:
        raise ComparisonError(
            f"{name} holds simulated trials ({SIMULATED} is True in {', '.join(sorted(found))}): a "
            "model predicted them, so they are no baseline and no run. Expected trials that were "
            "measured. Predicted against measured is said by: drainwatch fidelity"
        )


def _short(field: str) -> str:
    return field.rpartition(".")[2]
