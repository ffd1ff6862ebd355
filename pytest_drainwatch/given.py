"""Results as a person names them, files and folders: their reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_drainwatch.core.document import Report


class GivenError(ValueError):
    """There is no report, or it cannot be read; says what was expected."""


def paths_of(given: Path) -> list[Path]:
    """The reports of a folder, or the file itself. Raises :class:`GivenError`."""
    from pytest_drainwatch.repeats.reading import AggregationError, reports_below

    if not given.is_dir():
        return [given]
    try:
        found = list(reports_below(given))
    except OSError as error:
        raise GivenError(f"{error.filename or given}: {error.strerror or error}") from error
    except AggregationError as error:
        raise GivenError(str(error)) from error
    if not found:
        raise GivenError(f"{given}: no report.json in this folder; was the trial void?")
    return found


def read(path: Path) -> Report:
    """One report. Raises :class:`GivenError`."""
    from pytest_drainwatch import report

    try:
        return report.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise GivenError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:  # no text, or no report
        raise GivenError(f"{path}: {error}") from error
