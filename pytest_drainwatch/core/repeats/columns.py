"""What the columns of trials.csv and flows.csv are made of.

Each is declared once: the header, the cells and docs/csv.md are made from that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pytest_drainwatch.core.document import FlowReport, Report
from pytest_drainwatch.core.repeats.aggregate import Repeat

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Generic[Row]):
    """One column; ``value`` gives None where it was not measured: an empty cell."""

    name: str
    meaning: str
    value: Callable[[Row], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """A measured trial: its folder below the one that was given, and what it says."""

    folder: str
    repeat_number: int | None
    attempt: int | None
    report: Report
    repeat: Repeat


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRow:
    """One flow of a trial."""

    trial: TrialRow
    flow: FlowReport
