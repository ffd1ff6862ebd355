"""An aggregate as plain text: one table a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor

from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.core.repeats.alike import SIMULATED
from pytest_drainwatch.core.repeats.document import (
    Aggregate,
    BracketMs,
    MetricSummary,
    ScenarioSummary,
    TallySummary,
)
from pytest_drainwatch.core.repeats.metrics import Tally
from pytest_drainwatch.render.surroundings import cluster
from pytest_drainwatch.render.text import NOT_MEASURED, plain, table

TALLY_COLUMNS = ("COUNT", "MEASURED", "MIN", "MEDIAN", "MAX")
COLUMNS = (
    "METRIC (ms)",
    "MEASURED",
    "MIN",
    "MEDIAN",
    "MAX",
    "THE MEDIAN IS REALLY",
    "OF ALL SUCH TRIALS",
)


def show(found: Aggregate) -> str:
    """All scenarios for a terminal; a note that holds for all of them stands at the end."""
    notes = [dict.fromkeys(scenario.notes) for scenario in found.scenarios]
    common = [note for note in notes[0] if all(note in own for own in notes)] if notes else []
    lines = [line for scenario in found.scenarios for line in _scenario(scenario, common)]
    return "".join(plain(line) + "\n" for line in [*lines, *(f"note: {n}" for n in common)])


def _scenario(scenario: ScenarioSummary, said_once: Sequence[str]) -> Iterator[str]:
    asked = scenario.conditions
    count = len(scenario.repeats)
    simulated = asked.get(SIMULATED) is True
    versions = cluster(
        asked.get("environment.kubernetes_version"),
        asked.get("environment.kube_proxy_mode"),
        simulated=simulated,
    )
    yield f"SCENARIO {scenario.id}{' (SIMULATED)' if simulated else ''}"
    yield (
        f"  {asked.get('config.drain_behavior') or asked.get('config.workload')} x "
        f"{asked.get('config.trigger')}, "
        f"grace {asked.get('config.grace_period_seconds')} s, {versions}; {count} "
        f"repeat{'s' if count != 1 else ''}"
    )
    rows = [
        _row(name.removesuffix("_ms"), metric, count) for name, metric in scenario.metrics.items()
    ]
    yield from (f"  {group}: {ends}" for group, ends in fates(scenario))
    yield from table([COLUMNS, *rows], right=(1, 2, 3, 4))
    if scenario.tallies:
        counted = [
            (name, f"{found.observed}/{count}", *numbers(found))
            for name, found in tallies(scenario)
        ]
        yield from table([TALLY_COLUMNS, *counted], right=(1, 2, 3, 4))
    yield from (f"  repeats differ: {text}" for text in scenario.disagreements)
    yield from (f"  {text}" for text in _confidence(scenario))
    yield from (f"  note: {text}" for text in scenario.notes if text not in said_once)
    yield ""


def fates(scenario: ScenarioSummary) -> Iterator[tuple[str, str]]:
    """How the flows of each role and transport ended, over all repeats."""
    groups: dict[str, list[str]] = {}
    for fate in sorted(scenario.fates, key=lambda fate: -fate.total):
        said = f"{fate.total} {fate.outcome} by {fate.mechanism}"
        groups.setdefault(fate.group, []).append(said)
    yield from ((group, ", ".join(groups[group])) for group in sorted(groups))


def tallies(scenario: ScenarioSummary) -> Iterator[tuple[str, TallySummary]]:
    """Without that of bystanders where there were none: nothing could be lost then."""
    bystanders = any(fate.group.startswith(Role.BYSTANDER) for fate in scenario.fates)
    for name, found in scenario.tallies.items():
        if bystanders or name != Tally.BYSTANDER_FLOWS_LOST:
            yield name, found


def numbers(found: TallySummary) -> tuple[str, str, str]:
    """Least, median and greatest of a tally, each with its bounds where they differ."""
    return (between(found.min), between(found.median), between(found.max))


def between(at: Bounds | None) -> str:
    """A number of things, known within bounds; ``-``: not measured."""
    if at is None:
        return "-"
    return str(at[0]) if at[0] == at[1] else f"{at[0]}–{at[1]}"


def _row(name: str, metric: MetricSummary, count: int) -> tuple[str, ...]:
    measured = f"{metric.observed}/{count}"
    if metric.median_ms is None:
        return (name, measured, "-", "-", "-", NOT_MEASURED, "")
    shown = (str(metric.min_ms), str(metric.median_ms), str(metric.max_ms))
    really = "" if metric.bracket_ms is None else _really(metric.bracket_ms)
    return (name, measured, *shown, really, _of_all(metric))


def _of_all(metric: MetricSummary) -> str:
    """Where the median of all such trials lies: at the outer bounds of values, rounded outward."""
    at = metric.median_interval
    if at is None or metric.observed < 2:
        return ""
    return f"{floor(at.lo_ms)} to {ceil(at.hi_ms)}"


def _really(at: BracketMs) -> str:
    """A bracket, rounded outward, unless it is narrower than the last digit shown."""
    if at.hi - at.lo < 1:
        return "that, within 1 ms"
    return f"between {floor(at.lo)} and {ceil(at.hi)}"


def _confidence(scenario: ScenarioSummary) -> Iterator[str]:
    """What so few repeats say about the median; how surely is the same for every figure."""
    known = [m.median_interval for m in scenario.metrics.values() if m.median_interval]
    if not known:
        return
    bounds, count = known[0], len(scenario.repeats)
    if count == 1:
        yield "one repeat says nothing about the spread"
        return
    yield (
        f"the last column holds the median of all such trials in {bounds.coverage:.2%} "
        f"(exact, for {count} independent repeats)"
    )
