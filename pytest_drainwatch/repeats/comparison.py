"""Two folders of reports -> their comparison, as ``drainwatch compare`` and ``--dw-baseline``
need it.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from pytest_drainwatch.core.repeats.aggregate import PoolError, Repeat
from pytest_drainwatch.core.repeats.alike import ComparisonError
from pytest_drainwatch.core.repeats.compare import Run, compare
from pytest_drainwatch.core.repeats.compared import Comparison
from pytest_drainwatch.repeats.aggregation import grouped, pooled
from pytest_drainwatch.repeats.reading import AggregationError, read_all

__all__ = ["ComparisonError", "against", "check_baseline", "dumps", "failing", "read_run"]


def against(baseline: Path, run: Path, across: Collection[str] = ()) -> Comparison:
    """A run compared with a baseline. Raises :class:`ComparisonError`."""
    if baseline.resolve() == run.resolve():
        raise ComparisonError(
            f"{baseline} and {run} are one folder, and nothing differs from itself; expected two "
            "runs (a link such as results/latest leads to the newest one)"
        )
    return compare(read_run(baseline), read_run(run), across=across)


def failing(comparison: Comparison, fail_on: frozenset[str]) -> bool:
    """Whether it says one of the verdicts on which somebody wants to fail."""
    return comparison.verdict in fail_on or any(
        scenario.verdict in fail_on for scenario in comparison.scenarios
    )


def check_baseline(folder: Path) -> Path:
    """Where a baseline really lies: a link to it may lead to the new run by its end.

    Raises :class:`ComparisonError` if it can be none, for whoever would else measure for
    half an hour first.
    """
    if not read_run(folder).scenarios:
        raise ComparisonError(
            f"{folder}: no scenario's repeats can be taken together. What differs is said by: "
            f"drainwatch aggregate {folder}"
        )
    return folder.resolve()


def read_run(folder: Path) -> Run:
    """All repeats below ``folder``. Raises :class:`ComparisonError` if it holds none, or one
    that cannot be read.
    """
    scenarios: dict[str, tuple[Repeat, ...]] = {}
    notes, refused = {}, {}
    try:
        for name, found in grouped(folder, read_all(folder)).items():
            try:
                notes[name] = pooled(folder, name, found).notes
            except PoolError as error:
                refused[name] = str(error)
            else:
                scenarios[name] = tuple(one.repeat for one in found)
    except (OSError, AggregationError) as error:
        raise ComparisonError(str(error)) from error
    return Run(name=str(folder), scenarios=scenarios, notes=notes, refused=refused)


def dumps(comparison: Comparison) -> str:
    """What ``drainwatch compare --json`` prints."""
    from pydantic import TypeAdapter

    plain = TypeAdapter(Comparison).dump_python(comparison, mode="json")
    return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"
