"""Results on disk -> what a page shows of them."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from pydantic import TypeAdapter

from pytest_drainwatch import __version__
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.repeats.summary import Planned, State, Summary
from pytest_drainwatch.given import GivenError, paths_of, read
from pytest_drainwatch.render.page.data import FORMAT, Page, Run, Trial
from pytest_drainwatch.render.page.run import not_compared, run
from pytest_drainwatch.render.page.trial import MANY_ON_A_PAGE, trial
from pytest_drainwatch.repeats import summary as summaries
from pytest_drainwatch.repeats.aggregation import grouped
from pytest_drainwatch.repeats.comparison import ComparisonError, against
from pytest_drainwatch.repeats.reading import AggregationError, below
from pytest_drainwatch.repeats.survey import survey

REPORT = "report.json"
_SUMMARY = TypeAdapter(Summary)


class PageError(ValueError):
    """There is nothing to show, or it cannot be read; says what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What else is known of results, and what they are held against.

    ``page`` is where the page will lie: links to reports lead from there; None: nowhere.
    ``outcomes`` of tests by the real paths of their reports. ``summary`` is the run's, if it
    was made already; it names trials that were planned and never begun. ``strict``: what cannot
    be read or compared is an error; else the page says so.
    """

    page: Path | None = None
    outcomes: Mapping[Path, str] = field(default_factory=dict)
    summary: Summary | None = None
    baseline: Path | None = None
    across: Collection[str] = ()
    strict: bool = True


def page_of(results: Sequence[Path], asked: Asked) -> Page:
    """The page of a run's folder, or of single trials. Raises :class:`PageError`."""
    try:
        if len(results) == 1 and _is_run(results[0]):
            return _run_page(results[0], asked)
        if asked.baseline is not None:
            raise PageError(
                "a baseline is compared with a run: expected one folder that holds a run, got "
                + ", ".join(map(str, results))
            )
        return _trials_page(results, asked)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise PageError(f"{where}{error.strerror or error}") from error
    except (AggregationError, ComparisonError, GivenError, summaries.SummaryError) as error:
        raise PageError(str(error)) from error


def _is_run(folder: Path) -> bool:
    """Whether it is a folder of trials, and not a trial's own."""
    return folder.is_dir() and not (folder / REPORT).is_file()


def _run_page(folder: Path, asked: Asked) -> Page:
    seen = survey(folder)
    if seen.unread and asked.strict:
        raise PageError("; ".join(seen.unread))
    ours = [found for found in seen.reports if found.report is not None]
    if not ours:
        raise PageError(
            f"{folder}: no report.json of this tool in this folder or below it; were all trials "
            "void?"
        )
    summary = asked.summary or summaries.summarise(folder, _never_begun(folder))
    groups = grouped(folder, ours)
    compared, why = None, None
    if asked.baseline is not None:
        try:
            compared = against(asked.baseline, folder, across=asked.across)
        except ComparisonError as error:
            if asked.strict:
                raise
            why = not_compared(str(asked.baseline), str(error))
    repeats = {name: [one.repeat for one in found] for name, found in groups.items()}
    whole = run(summary, repeats, compared)
    if why is not None:
        whole["comparison"] = why
    if theirs := len(seen.reports) - len(ours):
        whole["incomplete_because"].append(
            f"{theirs} report(s) of drainwatch v0.1 are not shown; drainwatch aggregate reads them"
        )
    found = [one for group in groups.values() for one in group]
    return _page(
        f"Run {summary.run_id}",
        whole,
        _trials(
            [(one.repeat.label, one.path, one.report) for one in found if one.report is not None],
            asked,
        ),
    )


def _never_begun(folder: Path) -> list[Planned]:
    """Trials that the run's own summary names, and of which nothing is there."""
    path = folder / summaries.FILE
    try:
        known: Summary = _SUMMARY.validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise PageError(
            f"{path}: cannot be read: {error}. It is made again by: drainwatch aggregate {folder} "
            f"-o {path}"
        ) from error
    return [
        Planned(
            scenario=entry.scenario,
            repeat=entry.repeat or 0,
            test=entry.test or "",
            why_not=entry.why,
        )
        for entry in known.trials
        if entry.state is State.NOT_RUN
    ]


def _trials_page(results: Sequence[Path], asked: Asked) -> Page:
    paths = [path for given in results for path in paths_of(given)]
    root = Path(os.path.commonpath([path.parent.absolute() for path in paths]))
    if len(paths) == 1:
        root = paths[0].absolute().parent.parent.parent
    trials = _trials(
        [(below(root, path.absolute().parent), path, read(path)) for path in dict.fromkeys(paths)],
        asked,
    )
    title = trials[0]["id"] if len(trials) == 1 else f"{len(trials)} trials"
    return _page(title, None, trials)


def _trials(found: Sequence[tuple[str, Path, Report]], asked: Asked) -> list[Trial]:
    """Each trial by its name on the page."""
    steps = sum(len(told.trial.flows) for _, _, told in found) <= MANY_ON_A_PAGE
    return [
        trial(
            told,
            id=name,
            outcome=asked.outcomes.get(path.resolve()),
            path=_leads(path, asked.page),
            steps=steps,
        )
        for name, path, told in found
    ]


def _leads(path: Path, page: Path | None) -> str | None:
    """The way from the page to a report, as a link: a folder's name is no scheme and no query."""
    if page is None:
        return None
    return quote(Path(os.path.relpath(path.resolve(), page.resolve().parent)).as_posix())


def _page(title: str, whole: Run | None, trials: list[Trial]) -> Page:
    return Page(
        format=FORMAT,
        title=_marked(title, trials),
        made_by=f"pytest-drainwatch {__version__}",
        run=whole,
        trials=trials,
    )


def _marked(title: str, trials: Sequence[Trial]) -> str:
    """A title that says what was not measured."""
    simulated = sum(each["simulated"] for each in trials)
    if not simulated:
        return title
    if simulated == len(trials):
        return f"SIMULATED: {title}"
    return f"{title} ({simulated} of {len(trials)} trials SIMULATED)"
