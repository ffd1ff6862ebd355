"""The end of a run: the table, what was run again, the sum of it, and what is cleared away.

Nothing here changes what was measured, and nothing that goes wrong here ends the run
otherwise than it would have ended: it becomes a line.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch import gate, planned
from pytest_drainwatch.attempts import Told, table
from pytest_drainwatch.listening import REPORTS
from pytest_drainwatch.session import PLAN, RUN, workers_of

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

LINES = pytest.StashKey[list[str]]()


def finish(session: pytest.Session) -> None:
    """Sum up a run that set out to measure."""
    config = session.config
    if config.getoption("collectonly", default=False):
        return
    plan = config.stash.get(PLAN, planned.Plan())
    reports = config.stash[REPORTS]
    skipped = Told.of(reports).skipped
    if not _anything(planned.folder_of(config)) and all(t["test"] in skipped for t in plan.trials):
        return  # nothing was to be measured in the end
    lines = config.stash.setdefault(LINES, [])
    lines += _summary(config, plan, skipped)
    gate.judge(session)
    lines += _prune(config)


def show(terminal: TerminalReporter) -> None:
    """The last words of a run; silent if there were no trials or in ``-q``."""
    config = terminal.config
    if config.get_verbosity() < 0:
        gate.show(terminal)
        return
    reports = config.stash[REPORTS]
    known = Told.of(reports)
    plan = config.stash.get(PLAN, planned.Plan())
    lines = [
        *table(known),
        *known.run_again({str(trial["test"]) for trial in plan.trials}),
        *_overload(config, known),
        *config.stash.get(LINES, []),
    ]
    if lines:
        terminal.section("drainwatch", sep="-")
    for line in lines:
        terminal.write_line(line)
    gate.show(terminal)


def _anything(folder: Path) -> bool:
    """Whether there is more in it than a plan."""
    try:
        return any(path.name != planned.FILE for path in folder.iterdir())
    except OSError:
        return False


def _overload(config: pytest.Config, known: Told) -> list[str]:
    if not known.trials:
        return []
    from pytest_drainwatch.overload import Stalled, advice

    found = [
        Stalled(
            stalls=int(each.values.get("stalls", 0)),
            worst_ms=int(each.values.get("worst_stall_ms", 0)),
        )
        for each in known.trials
    ]
    return advice(found, workers=workers_of(config), cpus=os.cpu_count())


def _summary(config: pytest.Config, plan: planned.Plan, skipped: Mapping[str, str]) -> list[str]:
    from pytest_drainwatch.repeats.summary import Planned, finish

    trials = [
        Planned(
            scenario=None if trial["scenario"] is None else str(trial["scenario"]),
            repeat=int(str(trial["repeat"])),
            test=str(trial["test"]),
            why_not=skipped.get(str(trial["test"])),
        )
        for trial in plan.trials
    ]
    return finish(planned.folder_of(config), trials, quiet=config.get_verbosity() < 0)


def _prune(config: pytest.Config) -> list[str]:
    run = config.stash[RUN]
    if run.settings.keep_runs is None:
        return []
    baseline = config.stash.get(gate.BASELINE, None)
    if baseline is not None and baseline.is_relative_to(run.settings.out.resolve()):
        return [f"no old run was removed: the baseline is one of them ({baseline})"]
    from pytest_drainwatch.repeats.pruning import prune

    return prune(run.settings.out, run.settings.keep_runs, run.run_id)
