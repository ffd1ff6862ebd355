"""summary.json: what a run measured, pooled, and what it did not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pytest_drainwatch.core.repeats.aggregate import PoolError
from pytest_drainwatch.core.repeats.document import ScenarioSummary
from pytest_drainwatch.core.repeats.summary import Planned, Refused, Summary, summarised
from pytest_drainwatch.repeats.aggregation import grouped, pooled
from pytest_drainwatch.repeats.survey import Survey, survey
from pytest_drainwatch.results import folder_name

__all__ = [
    "Planned",
    "Summary",
    "SummaryError",
    "dumps",
    "summarise",
]

FILE = "summary.json"


class SummaryError(ValueError):
    """There is nothing to summarise; says what was expected."""


def summarise(folder: Path, planned: Sequence[Planned] = ()) -> Summary:
    """All that lies below ``folder``, however it ended.

    A scenario whose trials are no repeats of each other is refused, the others are pooled.
    Raises :class:`SummaryError` if there is no trial and none was ``planned``.
    """
    if folder.is_file():
        raise SummaryError(f"{folder}: this is a file; expected a run's folder")
    # A run that ended before its first trial has no folder yet.
    seen = survey(folder) if folder.exists() else Survey(trials=(), reports=(), unread=())
    if not (seen.trials or planned or seen.unread):
        raise SummaryError(
            f"{folder}: no trial in this folder or below it; expected a run's folder"
        )
    scenarios: list[ScenarioSummary] = []
    refused: list[Refused] = []
    for name, found in grouped(folder, seen.reports).items():
        try:
            scenarios.append(pooled(folder, name, found))
        except PoolError as error:
            refused.append(Refused(id=name, reason=str(error)))
    return summarised(
        folder.resolve().name,
        trials=seen.trials,
        planned=planned,
        scenarios=scenarios,
        refused=refused,
        unread=seen.unread,
        folder_of=folder_name,
    )


def dumps(found: Summary) -> str:
    """summary.json as text."""
    from pydantic import TypeAdapter

    plain = TypeAdapter(Summary).dump_python(found, mode="json")
    return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"
