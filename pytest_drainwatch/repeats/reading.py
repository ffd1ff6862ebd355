"""A folder of reports -> each of them as a repeat.

Repeats are siblings: the reports whose folders share a parent. In our own results
that is ``<run>/<scenario>/r00/report.json``, in the ancestor's ``arm-X/trial-001/report.json``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_drainwatch import report as own
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.repeats.aggregate import Repeat
from pytest_drainwatch.core.repeats.repeat import repeat as own_repeat
from pytest_drainwatch.upstream import repeat as upstream
from pytest_drainwatch.upstream.convert import ConversionError, rejudge
from pytest_drainwatch.upstream.document import UpstreamReport
from pytest_drainwatch.upstream.reader import UpstreamError, read_report

# The ancestor's other files, which may lie beside single reports.
_DIGESTS = frozenset({"summary.json", "aggregate.json"})


class AggregationError(ValueError):
    """A folder that cannot be aggregated; says which file, and what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A report that was read: where its repeats live, their name, and what it says.

    ``report`` is None of one of the ancestor's.
    """

    path: Path
    group: Path
    name: str
    repeat: Repeat
    report: Report | None
    notes: tuple[str, ...]


def reports_below(folder: Path) -> list[Path]:
    """Every report.json in ``folder`` and below it; links to folders are not followed.

    Raises :class:`AggregationError` for a folder that cannot be looked into: what lies
    in it would be left out of the figures, and nobody would know.
    """

    def refuse(error: OSError) -> None:
        if isinstance(error, FileNotFoundError):
            raise AggregationError(
                f"{error.filename}: no such folder; expected one that holds reports"
            ) from error
        raise AggregationError(
            f"{error.filename}: cannot look into this folder: {error.strerror}; expected to read "
            "all of it, for without it the figures would be those of a selection"
        ) from error

    return sorted(
        Path(place, "report.json")
        for place, _, files in os.walk(folder, onerror=refuse)
        if "report.json" in files
    )


def read_all(folder: Path) -> Iterator[Found]:
    """Every report below ``folder``. Raises :class:`AggregationError`."""
    if folder.is_file():
        raise AggregationError(
            f"{folder}: this is a file; expected a folder that holds reports. "
            f"One report is read by: drainwatch show {folder}"
        )
    paths = reports_below(folder)
    if not paths:
        singles = sorted(path for path in folder.glob("*.json") if path.name not in _DIGESTS)
        if not singles:
            raise AggregationError(
                f"{folder}: no report.json in this folder or below it; were all trials void?"
            )
        # The ancestor's single trials: each file is a scenario of its own.
        yield from (read(path, folder, path.parent, path.stem) for path in singles)
        return
    for path in without_copies(paths):
        yield read(path, folder)


def read(path: Path, folder: Path, group: Path | None = None, name: str | None = None) -> Found:
    """One report below ``folder``. Raises :class:`AggregationError`."""
    group = group or path.parent.parent
    label = below(folder, path.parent if path.name == "report.json" else path)
    try:
        text = path.read_text(encoding="utf-8")
        if not _is_ours(text):
            document = read_report(path)
            return Found(
                path=path,
                group=group,
                name=name or group.resolve().name.removeprefix("arm-"),
                repeat=upstream.repeat(document, label),
                report=None,
                notes=(*upstream.NOTES, *_second_thoughts(document, label)),
            )
        report = own.loads(text)
        return Found(
            path=path,
            group=group,
            name=name or report.trial.scenario,
            repeat=own_repeat(report, label),
            report=report,
            notes=(),
        )
    except UpstreamError as error:
        raise AggregationError(str(error)) from error
    except OSError as error:
        raise AggregationError(f"{path}: cannot read it: {error.strerror}") from error
    except ValueError as error:  # no text, no report, or one that contradicts itself
        raise AggregationError(f"{path}: {error}") from error


def below(folder: Path, path: Path) -> str:
    """A path as seen from the folder that was given."""
    relative = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name
    return relative if relative != "." else path.resolve().name


def without_copies(paths: Sequence[Path]) -> Iterator[Path]:
    """Without the copy that the ancestor writes beside the trial folder of a single trial."""
    inside: dict[Path, list[Path]] = {}
    for path in paths:
        inside.setdefault(path.parent.parent, []).append(path)
    for path in paths:
        trials = inside.get(path.parent, ())
        if not any(_bytes(trial) == _bytes(path) for trial in trials):
            yield path


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise AggregationError(f"{path}: cannot read it: {error.strerror}") from error


def _is_ours(text: str) -> bool:
    """Only our reports name their schema. Raises :class:`ReportError` where there is no JSON."""
    document = own.parse(text)
    return isinstance(document, dict) and "schema_version" in document


def _second_thoughts(report: UpstreamReport, label: str) -> Iterator[str]:
    """Flows whose own facts say something else than the report concluded."""
    try:
        judged = rejudge(report.trial)
    except ConversionError as error:
        yield f"{label}: not judged anew: {error}"
        return
    for flow in judged:
        if not flow.agrees:
            yield (
                f"{label}: {flow.flow_id} is called {flow.theirs} ({flow.their_detail}); "
                f"by its facts it is {flow.outcome} by {flow.mechanism}"
            )
