"""Repeats of one trial -> its figures; what differs is not pooled.

The input is neutral: :class:`Repeat` holds what a trial was asked and under which
conditions, and its figures. Each kind of report has its own way there
(:mod:`.repeat` for ours).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_drainwatch.core.document import whole_ms
from pytest_drainwatch.core.interval import NS_PER_MS, Bounds, Interval
from pytest_drainwatch.core.repeats.metrics import Metric, Reading, Tally
from pytest_drainwatch.core.repeats.stats import bounded_statistics, median_bounds, statistics

AGGREGATE_SCHEMA = 1
# What an environment says when it could not read a fact.
UNKNOWN = (None, "unknown", "")
BUILD = ("drainwatch_version", "git_commit")


class PoolError(ValueError):
    """These repeats did not measure the same thing; names each field that differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """One trial, reduced to what pooling needs.

    ``conditions`` must be equal in all repeats. ``fates`` counts flows per transport
    and outcome, and may differ: that is a finding, and is reported as one.
    """

    label: str
    conditions: Mapping[str, object]
    metrics: Mapping[Metric, Reading | None]
    fates: Mapping[str, int]
    tallies: Mapping[Tally, Interval | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianInterval:
    """Where the median of all such trials lies, and how often such an interval is right.

    From the ``rank``-th value from below to the ``rank``-th from above, each at its outer bound.
    """

    lo_ms: float
    hi_ms: float
    rank: int
    coverage: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BracketMs:
    """Bounds in milliseconds."""

    lo: float
    hi: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSummary:
    """A figure over all repeats.

    The ``_ms`` fields are statistics of the numbers as shown, truncated toward zero.
    ``bracket_ms`` is where the median really lies, as ``median_ns`` says in full; they
    are None when a repeat kept no bounds. ``median_interval`` is about chance, not about
    bounds: None when a repeat did not measure the figure, because it may be missing
    for a reason that has to do with its size.
    """

    observed: int
    not_measured: int
    min_ms: int | None
    median_ms: int | None
    max_ms: int | None
    values_ms: tuple[int | None, ...]
    bracket_ms: BracketMs | None
    min_ns: Bounds | None
    median_ns: Bounds | None
    max_ns: Bounds | None
    median_interval: MedianInterval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioSummary:
    """All repeats of one scenario."""

    id: str
    repeats: tuple[str, ...]
    conditions: Mapping[str, object]
    metrics: Mapping[str, MetricSummary]
    disagreements: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """What ``drainwatch aggregate --json`` prints."""

    aggregate_schema: int
    scenarios: tuple[ScenarioSummary, ...]


def pool(scenario_id: str, repeats: Sequence[Repeat], notes: Sequence[str] = ()) -> ScenarioSummary:
    """Pool repeats. Raises :class:`PoolError` if they differ in any condition.

    ``notes`` say what a reader of these figures must know about their source.
    """
    if not repeats:
        raise PoolError(f"scenario {scenario_id} has no repeats; expected at least one report")
    refuse_unlike(scenario_id, repeats)
    conditions = repeats[0].conditions
    return ScenarioSummary(
        id=scenario_id,
        repeats=tuple(repeat.label for repeat in repeats),
        conditions=conditions,
        metrics={
            str(metric): _summarise([repeat.metrics.get(metric) for repeat in repeats])
            for metric in Metric
        },
        disagreements=tuple(_disagreements(repeats)),
        notes=(*notes, *_doubts(conditions)),
    )


def refuse_unlike(scenario_id: str, repeats: Sequence[Repeat]) -> None:
    """Raise :class:`PoolError` naming every field in which a repeat differs from the first."""
    first = repeats[0]
    for repeat in repeats[1:]:
        fields = sorted(first.conditions.keys() | repeat.conditions.keys())
        differing = [
            f"{field} is {here} in {first.label} and {there} in {repeat.label}"
            for field in fields
            if (here := _shown(first, field)) != (there := _shown(repeat, field))
        ]
        if differing:
            raise PoolError(
                f"scenario {scenario_id}: refusing to pool trials that differ: "
                f"{'; '.join(differing)}. Expected repeats of one trial on one build; "
                "aggregate them apart"
            )


def _shown(repeat: Repeat, field: str) -> str:
    if field not in repeat.conditions:
        return "absent"
    value = repeat.conditions[field]
    # 25 and 25.0 are one setting; True is no 1.
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value)


def _summarise(readings: Sequence[Reading | None]) -> MetricSummary:
    values = [None if r is None else whole_ms(r.shown_ns) for r in readings]
    seen = [r for r in readings if r is not None]
    plain = statistics(values)
    known = [r.within for r in seen if r.within is not None]
    bounded = bounded_statistics(known) if known and len(known) == len(seen) else None
    return MetricSummary(
        observed=plain.observed,
        not_measured=plain.not_measured,
        min_ms=plain.minimum,
        median_ms=plain.median,
        max_ms=plain.maximum,
        values_ms=tuple(values),
        bracket_ms=_bracket(bounded.median) if bounded else None,
        min_ns=_pair(bounded.minimum) if bounded else None,
        median_ns=_pair(bounded.median) if bounded else None,
        max_ns=_pair(bounded.maximum) if bounded else None,
        median_interval=None if plain.not_measured else _median_interval(seen),
    )


def _median_interval(readings: Sequence[Reading]) -> MedianInterval:
    found = median_bounds([r.within or r.shown_ns for r in readings])
    return MedianInterval(
        lo_ms=found.lo / NS_PER_MS,
        hi_ms=found.hi / NS_PER_MS,
        rank=found.rank,
        coverage=float(found.coverage),
    )


def _disagreements(repeats: Sequence[Repeat]) -> Iterable[str]:
    """Fates are counted, never averaged: where repeats differ, each one's count stands there."""
    for fate in sorted({fate for repeat in repeats for fate in repeat.fates}):
        numbers = [repeat.fates.get(fate, 0) for repeat in repeats]
        if len(set(numbers)) > 1:
            yield f"{fate}: {', '.join(map(str, numbers))} flows"


def _doubts(conditions: Mapping[str, object]) -> Iterable[str]:
    """Conditions that look equal and may not be."""
    if str(conditions.get("git_commit", "")).endswith("-dirty"):
        yield (
            f"git_commit is {conditions['git_commit']}: two builds with uncommitted changes "
            "carry the same name, so nobody can tell whether these are one build"
        )
    # Only of a place and a build None means "not known"; of a setting it means "none asked for".
    facts = {n: v for n, v in conditions.items() if n in BUILD or n.startswith("environment.")}
    unknown = sorted(name for name, value in facts.items() if value in UNKNOWN)
    if unknown:
        yield f"not known in any repeat, so not compared: {', '.join(unknown)}"


def _bracket(at: Interval) -> BracketMs:
    return BracketMs(lo=at.lo / NS_PER_MS, hi=at.hi / NS_PER_MS)


def _pair(at: Interval) -> Bounds:
    return (at.lo, at.hi)
