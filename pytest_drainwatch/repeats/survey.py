"""What the trials of a folder left behind: a report, a void recording, or less.

Nothing here raises for what a trial left: a run that ended badly is what it is for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import Header, RecordingError, loads, parse_observation
from pytest_drainwatch.core.repeats.summary import State, TrialEntry
from pytest_drainwatch.repeats.reading import (
    AggregationError,
    Found,
    below,
    read,
    without_copies,
)
from pytest_drainwatch.results import attempt_of

_REPORT, _RECORDING = "report.json", "recording.jsonl"
_MARKS = {Event.VOID: "reason", Event.INTERRUPTED: "signal"}
_WORDS = tuple(f'"{mark}"' for mark in _MARKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Each trial, the reports that could be read, and what could not be."""

    trials: tuple[TrialEntry, ...]
    reports: tuple[Found, ...]
    unread: tuple[str, ...]


def survey(folder: Path) -> Survey:
    """Look at every trial below ``folder``; links to folders are not followed."""
    unread: list[str] = []

    def note(error: OSError) -> None:
        unread.append(f"{error.filename}: cannot look into this folder: {error.strerror}")

    trials, reports = [], []
    for place in _trials(folder, note):
        entry, found = _look(folder, place)
        trials.append(entry)
        if isinstance(found, Found):
            reports.append(found)
        elif found is not None:
            unread.append(found)
    return Survey(trials=tuple(trials), reports=tuple(reports), unread=tuple(unread))


def _trials(folder: Path, note: Callable[[OSError], None]) -> Iterator[Path]:
    """The folders of trials, whatever came of them."""
    places = []
    for place, inside, files in sorted(os.walk(folder, onerror=note)):
        # A claimed folder is a trial's; but a scenario may be called as a repeat is.
        claimed = attempt_of(Path(place).name) and not any(map(attempt_of, inside))
        if claimed or {_REPORT, _RECORDING} & set(files):
            places.append(Path(place))
    reports = [place / _REPORT for place in places if (place / _REPORT).is_file()]
    try:
        once = set(without_copies(reports))
    except AggregationError:  # said again where it is read
        once = set(reports)
    yield from (place for place in places if place / _REPORT not in set(reports) - once)


def _look(folder: Path, place: Path) -> tuple[TrialEntry, Found | str | None]:
    """A trial, and its report; or why that cannot be read."""
    name = attempt_of(place.name)
    entry = TrialEntry(
        scenario=place.parent.name,
        repeat=None if name is None else name.repeat,
        attempt=None if name is None else name.attempt,
        test=None,
        folder=below(folder, place),
        state=State.UNFINISHED,
        why="nothing was recorded",
    )
    try:
        found = read(place / _REPORT, folder) if (place / _REPORT).exists() else None
    except (AggregationError, OSError) as error:
        why = str(error)
        return replace(_recorded(entry, place), state=State.UNFINISHED, why=why), why
    if found is None:
        return _recorded(entry, place), None
    entry = replace(entry, state=State.MEASURED, why=None, scenario=found.name)
    if found.report is not None:
        trial = found.report.trial
        repeat = entry.repeat if trial.repeat is None else trial.repeat
        entry = replace(entry, test=trial.test, repeat=repeat)
    return entry, found


def _recorded(entry: TrialEntry, place: Path) -> TrialEntry:
    """What the recording of a trial without a report says."""
    try:
        with (place / _RECORDING).open(encoding="utf-8", errors="replace") as lines:
            header = _header(next(lines, ""))
            if header is not None:
                entry = replace(
                    entry,
                    scenario=str(header.scenario.get("id") or entry.scenario),
                    test=header.test,
                    repeat=entry.repeat if header.repeat is None else header.repeat,
                )
            mark = next(_marks(lines), None)
            if mark is not None:
                return replace(entry, state=mark[0], why=mark[1])
    except FileNotFoundError:
        return entry
    except OSError as error:
        return replace(entry, why=f"{place / _RECORDING}: cannot read it: {error.strerror}")
    return replace(
        entry,
        why="its recording has no end and no void mark: its process was killed, "
        "or it is still being measured",
    )


def _header(line: str) -> Header | None:
    try:
        return loads(line if line.endswith("\n") else line + "\n").header
    except RecordingError:
        return None


def _marks(lines: Iterator[str]) -> Iterator[tuple[State, str]]:
    """The marks of a recording that was given up. A recording is long: few lines are parsed."""
    for line in lines:
        if not any(word in line for word in _WORDS):
            continue
        try:
            seen = parse_observation(line)
        except RecordingError:
            continue
        if seen.event not in _MARKS:
            continue
        phase, said = seen.data.get("phase"), seen.data.get(_MARKS[seen.event])
        if seen.event is Event.VOID:
            yield State.VOID, str(said)
        else:
            yield State.UNFINISHED, f"interrupted in phase '{phase}' by {said}"
