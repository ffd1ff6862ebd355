"""A folder of reports -> their aggregate: grouping them into scenarios."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_drainwatch.core.repeats.aggregate import Repeat, pool, refuse_unlike
from pytest_drainwatch.core.repeats.document import AGGREGATE_SCHEMA, Aggregate, ScenarioSummary
from pytest_drainwatch.repeats.reading import (
    AggregationError,
    Found,
    below,
    read_all,
    reports_below,
)
from pytest_drainwatch.results import attempt_of

__all__ = [
    "AggregationError",
    "aggregate",
    "dumps",
    "grouped",
    "noted",
    "pooled",
    "read_repeats",
    "reports_below",
]


def aggregate(folder: Path) -> Aggregate:
    """Every scenario below ``folder``.

    Raises :class:`AggregationError` if there is no report or one cannot be read, and
    :class:`~pytest_drainwatch.core.repeats.aggregate.PoolError` if repeats differ in their
    conditions.
    """
    return Aggregate(
        aggregate_schema=AGGREGATE_SCHEMA,
        scenarios=tuple(
            pooled(folder, name, found) for name, found in grouped(folder, read_all(folder)).items()
        ),
    )


def read_repeats(folder: Path) -> Mapping[str, Sequence[Repeat]]:
    """The repeats of every scenario below ``folder``, by its id. Raises as :func:`aggregate`."""
    scenarios = {
        name: tuple(one.repeat for one in found)
        for name, found in grouped(folder, read_all(folder)).items()
    }
    for name, repeats in scenarios.items():
        refuse_unlike(name, repeats)
    return scenarios


def grouped(folder: Path, reports: Iterable[Found]) -> Mapping[str, Sequence[Found]]:
    """Reports by the scenario whose repeats they are."""
    groups: dict[tuple[Path, str], list[Found]] = {}
    for found in reports:
        groups.setdefault((found.group, found.name), []).append(found)
    # Two runs of one scenario in one folder: only their paths tell them apart.
    apart = len({name for _, name in groups}) == len(groups)
    return {
        name if apart else below(folder, group): found for (group, name), found in groups.items()
    }


def pooled(folder: Path, name: str, found: Sequence[Found]) -> ScenarioSummary:
    """One scenario's repeats together. Raises
    :class:`~pytest_drainwatch.core.repeats.aggregate.PoolError`.
    """
    notes = [*noted(found), *_void(folder, found[0].group)]
    return pool(name, [one.repeat for one in found], notes)


def noted(found: Sequence[Found]) -> list[str]:
    """What must be known of these reports. What every repeat notes is noted once."""
    notes = [note for one in found for note in one.notes]
    return list(dict.fromkeys([*notes, *_attempts(found)]))


def dumps(found: Aggregate) -> str:
    """What ``drainwatch aggregate --json`` prints."""
    from pydantic import TypeAdapter

    plain = TypeAdapter(Aggregate).dump_python(found, mode="json")
    return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"


def _attempts(found: Sequence[Found]) -> Iterator[str]:
    """Further attempts count: leaving out the first ones would hide why there are several."""
    tests = {one.path.parent.name: one.report.trial.test for one in found if one.report}
    for name, test in tests.items():
        which = attempt_of(name)
        if which is None or which.attempt == 1:
            continue
        first = tests.get(which.first)
        if test is not None and first is not None and first != test:
            yield f"{name} was measured by another test than {which.first}: both count"
        else:
            yield f"{name} is attempt {which.attempt} at {which.first}: all attempts count"


def _void(folder: Path, group: Path) -> Iterator[str]:
    """Repeats that measured nothing: they are missing from the figures, and said to be."""
    for recording in sorted(group.glob("*/recording.jsonl") if group != folder.parent else ()):
        if not (recording.parent / "report.json").exists():
            name = recording.parent.name
            yield f"{name} has a recording and no report: void or unfinished, not counted"
