"""What an aggregate says: values, with the field names of its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.core.repeats.fates import FateCount, FlowDisagreement

AGGREGATE_SCHEMA = 1


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
class CountInterval:
    """As :class:`MedianInterval`, of a number of things."""

    lo: int
    hi: int
    rank: int
    coverage: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TallySummary:
    """A number of things over all repeats; each statistic is ``(surely, at most)``."""

    observed: int
    not_measured: int
    min: Bounds | None
    median: Bounds | None
    max: Bounds | None
    values: tuple[Bounds | None, ...]
    median_interval: CountInterval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioSummary:
    """All repeats of one scenario.

    ``outcomes`` and ``mechanisms`` count the same flows, of all repeats, per role and
    transport, and ``fates`` both together and in each repeat. ``flow_disagreements``
    are the first of the ``flows_that_differ``; None where flows have no names.
    """

    id: str
    repeats: tuple[str, ...]
    conditions: Mapping[str, object]
    metrics: Mapping[str, MetricSummary]
    disagreements: tuple[str, ...]
    notes: tuple[str, ...]
    tallies: Mapping[str, TallySummary] = field(default_factory=dict)
    outcomes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    mechanisms: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    fates: tuple[FateCount, ...] = ()
    flows_that_differ: int | None = None
    flow_disagreements: tuple[FlowDisagreement, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """What ``drainwatch aggregate --json`` prints."""

    aggregate_schema: int
    scenarios: tuple[ScenarioSummary, ...]
