"""trials.csv and flows.csv: a row a trial, a row a flow (RFC 4180, UTF-8, one header)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_drainwatch.core.repeats.columns import Column, FlowRow, Row, TrialRow
from pytest_drainwatch.core.repeats.flow_columns import FLOW_COLUMNS
from pytest_drainwatch.core.repeats.trial_columns import TRIAL_COLUMNS, TRIAL_ID
from pytest_drainwatch.recorder import write_atomic
from pytest_drainwatch.repeats.reading import AggregationError, Found, read_all
from pytest_drainwatch.results import attempt_of

TRIALS, FLOWS = "trials.csv", "flows.csv"
# What every version's files begin with: so we know which of them are ours.
_OURS = ",".join(column.name for column in TRIAL_ID)


class TableError(ValueError):
    """The tables cannot be written there; says why, and what to do."""


def write_tables(folder: Path, out: Path) -> tuple[Path, ...]:
    """Write both tables of all trials below ``folder`` into ``out``; returns their paths.

    Nothing is pooled: each row carries its conditions. A file of that name which is not one
    of ours stays. Raises :class:`AggregationError`, :class:`TableError`, or OSError if
    they cannot be written.
    """
    rows = [_row(found) for found in read_all(folder)]
    flows = [FlowRow(trial=row, flow=flow) for row in rows for flow in row.report.trial.flows]
    paths = (out / TRIALS, out / FLOWS)
    for path in paths:
        _refuse_foreign(path)
    write_atomic(paths[0], _text(TRIAL_COLUMNS, rows))
    write_atomic(paths[1], _text(FLOW_COLUMNS, flows))
    return paths


def _row(found: Found) -> TrialRow:
    if found.report is None:
        raise AggregationError(
            f"{found.path}: this is a report of drainwatch v0.1, which has no bounds and no "
            "roles to fill the columns with; expected reports of pytest-drainwatch. Its "
            "figures are printed by: drainwatch aggregate DIR --json"
        )
    name, trial = attempt_of(found.path.parent.name), found.report.trial
    by_name = None if name is None else name.repeat
    return TrialRow(
        folder=found.repeat.label,
        repeat_number=by_name if trial.repeat is None else trial.repeat,
        attempt=None if name is None else name.attempt,
        report=found.report,
        repeat=found.repeat,
    )


def _text(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(column.name for column in columns)
    writer.writerows([_cell(column.value(row)) for column in columns] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    """A value as a cell: None is empty, what has parts is JSON, and so are true and false."""
    if value is None or (isinstance(value, (int, float, str)) and not isinstance(value, bool)):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _refuse_foreign(path: Path) -> None:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            first = file.readline(len(_OURS) + 1)
    except FileNotFoundError:
        return
    except OSError as error:
        raise TableError(f"{path}: cannot look at what is there: {error.strerror}") from error
    if not first.startswith(_OURS):
        raise TableError(
            f"{path}: this file is not one of ours (its header does not begin with {_OURS}), so "
            "it is not overwritten; move it away, or name another folder after --csv"
        )
