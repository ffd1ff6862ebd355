"""Folders of results as a run leaves them, made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pytest_drainwatch import report
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.recording import Header, dump_header, dump_observation
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.recorder import write_atomic
from pytest_drainwatch.repeats.summary import FILE, Planned, Summary, dumps, summarise
from tests.core.trials import recording_of

WHOLE = derive(recording_of(Scenario()))


def measured(
    run: Path, scenario: str = "drain-delete", name: str = "r00", test: str | None = None
) -> Path:
    """A trial with a report."""
    trial = replace(WHOLE.trial, scenario=scenario, test=test)
    return write(run / scenario / name, replace(WHOLE, trial=trial))


def write(folder: Path, said: Report) -> Path:
    """A report into its folder."""
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(report.dumps(said))
    return folder


def recorded(
    run: Path,
    scenario: str = "drain-delete",
    name: str = "r00",
    *marks: Observation,
    test: str | None = None,
) -> Path:
    """A trial with a recording and no report."""
    folder = run / scenario / name
    folder.mkdir(parents=True)
    header = Header(
        drainwatch_version="0",
        git_commit="abc",
        trial_id="x",
        wall_clock_start="",
        clock="c",
        scenario={"id": scenario},
        test=test,
    )
    lines = [dump_header(header), *map(dump_observation, marks)]
    (folder / "recording.jsonl").write_text("".join(line + "\n" for line in lines))
    return folder


def mark(event: Event, **data: object) -> Observation:
    """Something the conductor noted."""
    return Observation(source=Source.ORCHESTRATOR, event=event, at=Interval.point(1), data=data)


def void(reason: str = "no flows") -> Observation:
    """The mark of a void trial."""
    return mark(Event.VOID, phase="deploy", reason=reason)


def write_summary(run: Path, planned: Sequence[Planned] = ()) -> Summary:
    """Summarised into its own folder, as a run does at its end."""
    found = summarise(run, planned)
    write_atomic(run / FILE, dumps(found))
    return found
