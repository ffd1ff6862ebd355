"""Repeats of one trial -> its figures; what differs is not pooled.

The input is neutral: :class:`Repeat` holds what a trial was asked and under which
conditions, and its figures. Each kind of report has its own way there
(:mod:`.repeat` for ours).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_drainwatch.core.document import whole_ms
from pytest_drainwatch.core.interval import NS_PER_MS, Bounds, Interval
from pytest_drainwatch.core.repeats.alike import SIMULATED
from pytest_drainwatch.core.repeats.document import (
    BracketMs,
    CountInterval,
    MedianInterval,
    MetricSummary,
    ScenarioSummary,
    TallySummary,
)
from pytest_drainwatch.core.repeats.fates import (
    LISTED,
    FlowFate,
    differing,
    fate_counts,
    told,
)
from pytest_drainwatch.core.repeats.metrics import Metric, OwnMetric, Reading, Tally
from pytest_drainwatch.core.repeats.stats import bounded_statistics, median_bounds, statistics

__all__ = ["MetricSummary", "PoolError", "Repeat", "ScenarioSummary", "pool", "refuse_unlike"]

# What an environment says when it could not read a fact.
UNKNOWN = (None, "unknown", "")
BUILD = ("drainwatch_version", "git_commit")


class PoolError(ValueError):
    """These repeats did not measure the same thing; names each field that differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """One trial, reduced to what pooling needs.

    ``conditions`` must be equal in all repeats. ``fates`` counts flows per transport
    and outcome, and may differ: that is a finding, and is reported as one. ``flows``
    names them; empty where the source's flows have no names that mean the same in all
    repeats.
    """

    label: str
    conditions: Mapping[str, object]
    metrics: Mapping[Metric, Reading | None]
    fates: Mapping[str, int]
    own_metrics: Mapping[OwnMetric, Reading | None] = field(default_factory=dict)
    tallies: Mapping[Tally, Interval | None] = field(default_factory=dict)
    flows: Sequence[FlowFate] = ()


def pool(scenario_id: str, repeats: Sequence[Repeat], notes: Sequence[str] = ()) -> ScenarioSummary:
    """Pool repeats. Raises :class:`PoolError` if they differ in any condition.

    ``notes`` say what a reader of these figures must know about their source.
    """
    if not repeats:
        raise PoolError(f"scenario {scenario_id} has no repeats; expected at least one report")
    refuse_unlike(scenario_id, repeats)
    conditions, labels = repeats[0].conditions, [repeat.label for repeat in repeats]
    flows = [repeat.flows for repeat in repeats]
    named = any(flows)
    differ = tuple(differing(labels, flows))
    fates = fate_counts(flows)
    return ScenarioSummary(
        id=scenario_id,
        repeats=tuple(labels),
        conditions=conditions,
        metrics=_metrics(repeats),
        disagreements=tuple(told(labels, [repeat.fates for repeat in repeats], differ)),
        notes=(*notes, *_doubts(conditions)),
        tallies={
            str(tally): _tally([repeat.tallies.get(tally) for repeat in repeats])
            for tally in Tally
            if any(tally in repeat.tallies for repeat in repeats)
        },
        outcomes=_by_group((fate.group, fate.outcome, fate.total) for fate in fates),
        mechanisms=_by_group((fate.group, fate.mechanism, fate.total) for fate in fates),
        fates=fates,
        flows_that_differ=len(differ) if named else None,
        flow_disagreements=differ[:LISTED] if named else None,
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


def _metrics(repeats: Sequence[Repeat]) -> Mapping[str, MetricSummary]:
    """The ancestor's figures always; ours where the reports are such that could hold them."""
    return {
        **{str(m): _summarise([r.metrics.get(m) for r in repeats]) for m in Metric},
        **{
            str(own): _summarise([repeat.own_metrics.get(own) for repeat in repeats])
            for own in OwnMetric
            if any(own in repeat.own_metrics for repeat in repeats)
        },
    }


def _tally(values: Sequence[Interval | None]) -> TallySummary:
    seen = [value for value in values if value is not None]
    bounded = bounded_statistics(seen) if seen else None
    all_seen = len(seen) == len(values)
    return TallySummary(
        observed=len(seen),
        not_measured=len(values) - len(seen),
        min=_pair(bounded.minimum) if bounded else None,
        median=_pair(bounded.median) if bounded else None,
        max=_pair(bounded.maximum) if bounded else None,
        values=tuple(None if value is None else _pair(value) for value in values),
        median_interval=_count_interval(seen) if all_seen else None,
    )


def _count_interval(values: Sequence[Interval]) -> CountInterval:
    found = median_bounds(values)
    return CountInterval(lo=found.lo, hi=found.hi, rank=found.rank, coverage=float(found.coverage))


def _by_group(counts: Iterable[tuple[str, str, int]]) -> Mapping[str, Mapping[str, int]]:
    found: dict[str, Counter[str]] = {}
    for group, name, number in counts:
        found.setdefault(group, Counter())[name] += number
    return found


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


def _doubts(conditions: Mapping[str, object]) -> Iterable[str]:
    """Conditions that look equal and may not be; and trials that are none."""
    if conditions.get(SIMULATED) is True:
        yield "SIMULATED: a model predicted these trials; nothing of them was measured"
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
