"""A folder of reports -> their aggregate: finding, reading and grouping them.

Repeats are siblings: the reports whose folders share a parent. In our own results
that is ``<run>/<scenario>/r00/report.json``, in the ancestor's ``arm-X/trial-001/report.json``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_drainwatch import report as own
from pytest_drainwatch.core.repeats.aggregate import AGGREGATE_SCHEMA, Aggregate, Repeat, pool
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
class _Found:
    """A report that was read: where its repeats live, their name, and what it says."""

    group: Path
    name: str
    repeat: Repeat
    notes: tuple[str, ...]


def aggregate(folder: Path) -> Aggregate:
    """Every scenario below ``folder``.

    Raises :class:`AggregationError` if there is no report or one cannot be read, and
    :class:`~pytest_drainwatch.core.repeats.aggregate.PoolError` if repeats differ in their
    conditions.
    """
    groups: dict[tuple[Path, str], list[_Found]] = {}
    for found in _read_all(folder):
        groups.setdefault((found.group, found.name), []).append(found)
    # Two runs of one scenario in one folder: only their paths tell them apart.
    apart = len({name for _, name in groups}) == len(groups)
    return Aggregate(
        aggregate_schema=AGGREGATE_SCHEMA,
        scenarios=tuple(
            pool(
                name if apart else _below(folder, group),
                [one.repeat for one in found],
                # What every repeat notes is noted once.
                tuple(
                    dict.fromkeys([*(n for one in found for n in one.notes), *_void(folder, group)])
                ),
            )
            for (group, name), found in groups.items()
        ),
    )


def dumps(found: Aggregate) -> str:
    """What ``drainwatch aggregate --json`` prints."""
    from pydantic import TypeAdapter

    plain = TypeAdapter(Aggregate).dump_python(found, mode="json")
    return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"


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


def _read_all(folder: Path) -> Iterator[_Found]:
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
        yield from (_read(path, folder, path.parent, path.stem) for path in singles)
        return
    for path in _without_copies(paths):
        yield _read(path, folder, path.parent.parent, None)


def _without_copies(paths: Sequence[Path]) -> Iterator[Path]:
    """Without the copy that the ancestor writes beside the trial folder of a single trial."""
    below: dict[Path, list[Path]] = {}
    for path in paths:
        below.setdefault(path.parent.parent, []).append(path)
    for path in paths:
        trials = below.get(path.parent, ())
        if not any(_bytes(trial) == _bytes(path) for trial in trials):
            yield path


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise AggregationError(f"{path}: cannot read it: {error.strerror}") from error


def _void(folder: Path, group: Path) -> Iterator[str]:
    """Repeats that measured nothing: they are missing from the figures, and said to be."""
    for recording in sorted(group.glob("*/recording.jsonl") if group != folder.parent else ()):
        if not (recording.parent / "report.json").exists():
            yield f"{recording.parent.name} has a recording and no report: void, and not counted"


def _read(path: Path, folder: Path, group: Path, name: str | None) -> _Found:
    label = _below(folder, path.parent if path.name == "report.json" else path)
    try:
        text = path.read_text(encoding="utf-8")
        theirs = not _is_ours(text)
        if theirs:
            document = read_report(path)
            return _Found(
                group=group,
                name=name or group.resolve().name.removeprefix("arm-"),
                repeat=upstream.repeat(document, label),
                notes=(*upstream.NOTES, *_second_thoughts(document, label)),
            )
        report = own.loads(text)
        return _Found(
            group=group,
            name=name or report.trial.scenario,
            repeat=own_repeat(report, label),
            notes=(),
        )
    except UpstreamError as error:
        raise AggregationError(str(error)) from error
    except OSError as error:
        raise AggregationError(f"{path}: cannot read it: {error.strerror}") from error
    except ValueError as error:  # no text, no report, or one that contradicts itself
        raise AggregationError(f"{path}: {error}") from error


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


def _below(folder: Path, path: Path) -> str:
    """A path as seen from the folder that was given."""
    relative = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name
    return relative if relative != "." else path.resolve().name
