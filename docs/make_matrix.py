"""Writes docs/matrix.md from the runs in results/sample/: ``make docs``.

The published figures are in results/sample/published.json: what ``drainwatch aggregate
--json`` says of the ancestor's own reports (its results/2026-09-01-repeat5-kind-v1.34.0).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_drainwatch.core.repeats.aggregate import MetricSummary, ScenarioSummary
from pytest_drainwatch.repeats.aggregation import aggregate

TARGET = Path(__file__).with_name("matrix.md")
SAMPLE = Path(__file__).resolve().parents[1] / "results" / "sample"
PUBLISHED = SAMPLE / "published.json"
RUNS = {"1.34": SAMPLE / "kubernetes-1.34", "1.37": SAMPLE / "kubernetes-1.37"}
# The page's rows: name of the metric, and what it is called here.
ROWS = {
    "trigger_to_sigterm_ms": "SIGTERM",
    "sigterm_to_ready_false_ms": "SIGTERM → `ready: false`",
    "trigger_to_first_tcp_terminal_ms": "first TCP end",
    "trigger_to_last_tcp_terminal_ms": "last TCP end",
    "trigger_to_first_udp_terminal_ms": "first UDP end",
    "trigger_to_last_udp_terminal_ms": "last UDP end",
    "trigger_to_container_terminated_ms": "container end",
    "trigger_to_endpoint_removed_ms": "endpoint removed",
    "tcp_dead_before_endpoint_removed_ms": "dead window (endpoint removed minus last TCP end)",
    "udp_first_terminal_minus_container_exit_ms": "first UDP end minus container end",
}
WORDS = Path(__file__).with_name("matrix_words.md")


def page() -> str:
    """The whole page."""
    theirs = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    published = {scenario["id"]: scenario for scenario in theirs["scenarios"]}
    ours = {version: _by_letter(folder) for version, folder in RUNS.items()}
    head, _, tail = WORDS.read_text(encoding="utf-8").partition("<!-- tables -->\n")
    lines = [line for letter in "ABCDE" for line in _arm(letter, published, ours)]
    return head + "\n".join(lines) + "\n" + tail


def _by_letter(folder: Path) -> dict[str, ScenarioSummary]:
    """Each arm's repeats; its id begins with the ancestor's letter."""
    return {scenario.id[0]: scenario for scenario in aggregate(folder).scenarios}


def _arm(
    letter: str, published: Mapping[str, Any], ours: Mapping[str, Mapping[str, ScenarioSummary]]
) -> Iterator[str]:
    theirs = published[letter]
    found = {version: arms[letter] for version, arms in ours.items()}
    name = next(iter(found.values())).id.partition("-")[2]
    yield f"### {letter}: {name}"
    yield ""
    version = theirs["conditions"]["environment.kubernetes_version"]
    columns = [f"published, {version}, n={len(theirs['repeats'])}"]
    for scenario in found.values():
        version = scenario.conditions["environment.kubernetes_version"]
        columns.append(f"here, {version}, n={len(scenario.repeats)}")
    yield f"| median (least–greatest), ms | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * len(columns)}"
    for metric, words in ROWS.items():
        cells = [_theirs(theirs["metrics"][metric])]
        cells += [_ours(scenario.metrics[metric]) for scenario in found.values()]
        yield f"| {words} | {' | '.join(cells)} |"
    yield ""


def _theirs(metric: Mapping[str, Any]) -> str:
    return _cell(
        metric["observed"],
        metric["not_measured"],
        metric["min_ms"],
        metric["median_ms"],
        metric["max_ms"],
    )


def _ours(metric: MetricSummary) -> str:
    return _cell(
        metric.observed, metric.not_measured, metric.min_ms, metric.median_ms, metric.max_ms
    )


def _cell(
    observed: int, missing: int, least: int | None, median: int | None, greatest: int | None
) -> str:
    if not observed:
        return "not measured"
    some = f", {observed} of {observed + missing}" if missing else ""
    return f"{_number(median)} ({_number(least)}–{_number(greatest)}{some})"


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
