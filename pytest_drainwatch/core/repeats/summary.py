"""What a run measured, and what it did not: values, with the field names of summary.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pytest_drainwatch.core.repeats.document import ScenarioSummary

SUMMARY_SCHEMA = 1
_BROKEN_OFF = "its test did not come to its end, so it may have measured more"


class State(StrEnum):
    """What became of a trial."""

    MEASURED = "measured"  # a report that can be read
    VOID = "void"  # the harness could not measure, and said so
    UNFINISHED = "unfinished"  # it ended without a word: interrupted, or its process was killed
    NOT_RUN = "not-run"  # planned, and never begun


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A trial that a test is to measure.

    ``scenario`` is None where only the test itself knows. ``why_not`` says why it will not
    be measured, if that is known (a skipped test's reason). ``ended`` is False of a test
    whose process was killed while it ran, or that never began.
    """

    scenario: str | None
    repeat: int
    test: str
    why_not: str | None = None
    ended: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEntry:
    """One trial of a run. ``folder`` is relative to the run's; None: it has none.

    ``repeat`` and ``attempt`` (from 1 on) are None where its folder's name does not say.
    """

    scenario: str | None
    repeat: int | None
    attempt: int | None
    test: str | None
    folder: str | None
    state: State
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A scenario whose trials are not repeats of each other, and why."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """summary.json. ``scenarios`` as ``drainwatch aggregate --json`` has them.

    ``unread`` names folders and reports that could not be read: what they hold is missing
    from the figures.
    """

    summary_schema: int
    run_id: str
    complete: bool
    incomplete_because: tuple[str, ...]
    trials: tuple[TrialEntry, ...]
    scenarios: tuple[ScenarioSummary, ...]
    refused: tuple[Refused, ...]
    unread: tuple[str, ...] = ()


def summarised(
    run_id: str,
    *,
    trials: Sequence[TrialEntry],
    planned: Sequence[Planned] = (),
    scenarios: Sequence[ScenarioSummary] = (),
    refused: Sequence[Refused] = (),
    unread: Sequence[str] = (),
    folder_of: Callable[[str], str] = str,
) -> Summary:
    """The whole: ``trials`` that left something, and those ``planned`` that did not."""
    listed = (*trials, *never_run(trials, planned, folder_of))
    lacking = [entry for entry in listed if entry.state is not State.MEASURED]
    told = {entry.why for entry in lacking}
    why = (*(said for said in unread if said not in told), *map(missing, lacking))
    return Summary(
        summary_schema=SUMMARY_SCHEMA,
        run_id=run_id,
        complete=not why,
        incomplete_because=why,
        trials=listed,
        scenarios=tuple(scenarios),
        refused=tuple(refused),
        unread=tuple(unread),
    )


def never_run(
    trials: Iterable[TrialEntry], planned: Iterable[Planned], folder_of: Callable[[str], str] = str
) -> Iterator[TrialEntry]:
    """Planned trials of which nothing is there.

    A test is known by its name. Trials that name no test stand for those planned of
    their scenario and repeat, as many as there are. Only their folders say which: the
    scenario's as ``folder_of`` names it, and of its second test that of a second attempt.
    """
    seen = {(t.test, t.scenario) for t in trials if t.test is not None}
    tests = {test for test, _ in seen}
    nameless = Counter((folder_of(t.scenario or ""), t.repeat) for t in trials if t.test is None)
    for plan in planned:
        begun = plan.test in tests
        if begun and plan.ended if plan.scenario is None else (plan.test, plan.scenario) in seen:
            continue
        place = (folder_of(plan.scenario or ""), plan.repeat)
        if nameless[place]:
            nameless[place] -= 1
            continue
        yield TrialEntry(
            scenario=plan.scenario,
            repeat=plan.repeat,
            attempt=None,
            test=plan.test,
            folder=None,
            state=State.NOT_RUN,
            why=plan.why_not or (_BROKEN_OFF if begun else "planned, and never begun"),
        )


def name_of(entry: TrialEntry) -> str:
    """A trial in words, for a person who looks for it."""
    if entry.folder is not None:
        return entry.folder
    which = "" if entry.repeat is None else f" r{entry.repeat:02d}"
    return f"{entry.scenario or 'a trial'}{which} of {entry.test}"


def missing(entry: TrialEntry) -> str:
    """Which trial has no report, and why."""
    said = {State.VOID: "is void", State.UNFINISHED: "is unfinished", State.NOT_RUN: "did not run"}
    why = " ".join((entry.why or "it is not known why").split())
    return f"{name_of(entry)} {said[entry.state]}: {why}"
