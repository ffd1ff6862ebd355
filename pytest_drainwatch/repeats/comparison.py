"""Two folders of reports -> their comparison, as ``drainwatch compare`` and ``--dw-baseline``
need it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_drainwatch.core.repeats.aggregate import PoolError, Repeat, pool
from pytest_drainwatch.core.repeats.alike import ComparisonError
from pytest_drainwatch.core.repeats.compare import Run, compare, measured
from pytest_drainwatch.core.repeats.compared import Comparison, Verdict
from pytest_drainwatch.core.repeats.summary import State, TrialEntry, missing
from pytest_drainwatch.repeats.aggregation import grouped, noted
from pytest_drainwatch.repeats.reading import AggregationError, Found, below, read_all
from pytest_drainwatch.repeats.survey import survey

__all__ = ["ComparisonError", "against", "check_baseline", "dumps", "failing", "read_run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What lies below a folder: a run, and where its reports really are."""

    run: Run
    reports: frozenset[Path]


def against(baseline: Path, run: Path, across: Collection[str] = ()) -> Comparison:
    """A run compared with a baseline. Raises :class:`ComparisonError`."""
    here, there = _read(baseline), _read(run)
    if both := sorted(here.reports & there.reports):
        raise ComparisonError(
            f"{baseline} and {run} hold the same reports ({len(both)} of them, such as {both[0]}), "
            "and nothing differs from itself; expected two runs "
            "(a link such as results/latest leads to the newest one)"
        )
    return compare(here.run, there.run, across=across)


def failing(comparison: Comparison, fail_on: frozenset[str]) -> bool:
    """Whether it says one of the verdicts on which somebody wants to fail.

    Whoever fails on what is not known fails on what is known to be worse.
    """
    wanted = set(fail_on)
    if Verdict.INSUFFICIENT_EVIDENCE in wanted:
        wanted.add(Verdict.REGRESSION)
    return comparison.verdict in wanted


def check_baseline(folder: Path) -> Path:
    """Where a baseline really lies: a link to it may lead to the new run by its end.

    Raises :class:`ComparisonError` if it can be none, for whoever would else measure for
    half an hour first.
    """
    found = read_run(folder)
    measured(found)
    if not found.scenarios:
        raise ComparisonError(
            f"{folder}: no scenario's repeats can be taken together. What differs is said by: "
            f"drainwatch aggregate {folder}"
        )
    return folder.resolve()


def read_run(folder: Path) -> Run:
    """All repeats below ``folder``; a trial that was void or did not end is one without figures.

    Raises :class:`ComparisonError` if it holds no report, or one that cannot be read.
    """
    return _read(folder).run


def _read(folder: Path) -> _Read:
    try:
        reports, trials = _look(folder)
    except (OSError, AggregationError) as error:
        raise ComparisonError(str(error)) from error
    groups = grouped(folder, reports)
    nothing = _without(folder, groups, trials)
    scenarios: dict[str, tuple[Repeat, ...]] = {}
    notes: dict[str, Sequence[str]] = {}
    refused: dict[str, str] = {}
    for name, found in groups.items():
        repeats, lacking = [one.repeat for one in found], nothing.pop(name, [])
        try:
            notes[name] = pool(name, repeats, [*noted(found), *map(missing, lacking)]).notes
        except PoolError as error:
            refused[name] = str(error)
        else:
            scenarios[name] = (*repeats, *(_unmeasured(repeats[0], trial) for trial in lacking))
    for name, lacking in nothing.items():
        refused[name] = (
            f"scenario {name}: not one trial in {folder} measured it ({len(lacking)} tried): "
            + missing(lacking[0])
        )
    return _Read(
        run=Run(name=str(folder), scenarios=scenarios, notes=notes, refused=refused),
        reports=frozenset(found.path.resolve() for found in reports),
    )


def _look(folder: Path) -> tuple[Sequence[Found], Sequence[TrialEntry]]:
    """Every report, and the trials that have none. Raises :class:`AggregationError`."""
    seen = survey(folder) if folder.is_dir() else None
    if seen is not None and seen.unread:
        raise AggregationError("; ".join(seen.unread))
    lacking = [] if seen is None else [t for t in seen.trials if t.state is not State.MEASURED]
    if seen is None or not seen.reports:
        return list(read_all(folder)), lacking  # says what is wrong with it
    return seen.reports, lacking


def _without(
    folder: Path, groups: Mapping[str, Sequence[Found]], trials: Sequence[TrialEntry]
) -> dict[str, list[TrialEntry]]:
    """Trials without a report, by the scenario whose repeats they are."""
    beside = {(one.group, one.name): name for name, found in groups.items() for one in found}
    here = {one.group: name for name, found in groups.items() for one in found}
    nothing: dict[str, list[TrialEntry]] = {}
    for trial in trials:
        group = (folder / (trial.folder or "")).parent
        own = trial.scenario or group.name
        name = beside.get((group, own))
        if name is None and own == group.name:  # killed before it could say whose it is
            name = here.get(group)
        if name is None:
            name = below(folder, group) if own in groups else own
        nothing.setdefault(name, []).append(trial)
    return nothing


def _unmeasured(first: Repeat, trial: TrialEntry) -> Repeat:
    """A repeat of which nothing is known, but that it was one."""
    return Repeat(
        label=trial.folder or first.label, conditions=first.conditions, metrics={}, fates={}
    )


def dumps(comparison: Comparison) -> str:
    """What ``drainwatch compare --json`` prints."""
    from pydantic import TypeAdapter

    plain = TypeAdapter(Comparison).dump_python(comparison, mode="json")
    return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"
