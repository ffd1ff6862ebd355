"""A run's summary for a terminal: a line a scenario, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_drainwatch.core.repeats.document import MetricSummary, ScenarioSummary, TallySummary
from pytest_drainwatch.core.repeats.metrics import Metric, Tally
from pytest_drainwatch.core.repeats.summary import State, Summary
from pytest_drainwatch.render.aggregate import between
from pytest_drainwatch.render.text import plain, table

_COUNTED = {
    Tally.TARGET_FLOWS_LOST: "FLOWS LOST",
    Tally.NEW_CONNECTIONS_FAILED: "NEW CONNECTIONS FAILED",
    Tally.HTTP_REQUESTS_FAILED: "HTTP REQUESTS FAILED",
}
_SHOWN = {
    Metric.SIGTERM: "SIGTERM (ms)",
    Metric.LAST_TCP: "TCP ENDED (ms)",
    Metric.ENDPOINT_REMOVED: "ENDPOINT REMOVED (ms)",
}
# So many of each kind of line; summary.json has all.
MOST = 10
WIDTH = 240


def lines(found: Summary) -> list[str]:
    """Nothing if nothing was repeated and nothing is missing."""
    repeated = [one for one in found.scenarios if len(one.repeats) > 1]
    told = list(_table(repeated)) if repeated else []
    told += _bounded([f"{one.id}: {said}" for one in repeated for said in one.disagreements])
    told += _bounded([f"not pooled: {one.reason}" for one in found.refused])
    if not found.complete:
        missing = sum(entry.state is not State.MEASURED for entry in found.trials)
        told.append(f"incomplete: {missing} of {len(found.trials)} trials were not measured")
        told += _bounded([f"  {why}" for why in found.incomplete_because])
    return told


def _table(repeated: Sequence[ScenarioSummary]) -> Iterator[str]:
    yield "medians of the repeats (least to greatest):"
    asked = any(Tally.HTTP_REQUESTS_FAILED in one.tallies for one in repeated)
    counted = [tally for tally in _COUNTED if asked or tally != Tally.HTTP_REQUESTS_FAILED]
    columns = ("SCENARIO", "N", *(_COUNTED[tally] for tally in counted), *_SHOWN.values())
    yield from table([columns, *(_row(one, counted) for one in repeated)], right=(1,))


def _row(one: ScenarioSummary, counted: Sequence[Tally]) -> tuple[str, ...]:
    return (
        one.id,
        str(len(one.repeats)),
        *(_tally(one.tallies.get(tally)) for tally in counted),
        *(_metric(one.metrics.get(name), len(one.repeats)) for name in _SHOWN),
    )


def _tally(found: TallySummary | None) -> str:
    if found is None or found.median is None or found.min is None or found.max is None:
        return "-"
    spread = between((found.min[0], found.max[1]))
    return _of(between(found.median), spread, found.observed, found.not_measured)


def _metric(found: MetricSummary | None, count: int) -> str:
    if found is None or found.median_ms is None:
        return "-"
    spread = f"{found.min_ms} to {found.max_ms}" if found.min_ms != found.max_ms else ""
    return _of(str(found.median_ms), spread, found.observed, count - found.observed)


def _of(median: str, spread: str, seen: int, missing: int) -> str:
    text = f"{median} ({spread})" if spread and spread != median else median
    return f"{text} in {seen} of {seen + missing}" if missing else text


def _bounded(said: Sequence[str]) -> list[str]:
    lines = [plain(text) for text in said[:MOST]]
    shown = [text if len(text) <= WIDTH else text[: WIDTH - 1] + "…" for text in lines]
    if len(said) > MOST:
        shown.append(f"… and {len(said) - MOST} more, in summary.json")
    return shown
