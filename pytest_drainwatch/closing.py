"""The end of a run: the table, what was run again, the sum of it, and what is cleared away.

Nothing here changes what was measured, and nothing that goes wrong here ends the run
otherwise than it would have ended: it becomes a line.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch import gate, planned, told
from pytest_drainwatch.session import RUN, workers_of

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

LINES = pytest.StashKey[list[str]]()


def finish(session: pytest.Session) -> None:
    """Sum up a run that set out to measure. Not for workers: their controller does it."""
    config = session.config
    if hasattr(config, "workerinput") or config.getoption("collectonly", default=False):
        return
    plan = config.stash.get(planned.PLAN, None) or planned.published(config)
    planned.clear_up(config)
    if not plan.trials:
        return
    config.stash[planned.PLAN] = plan
    skipped = config.stash[told.TOLD].skipped
    if not planned.folder_of(config).exists() and all(t["test"] in skipped for t in plan.trials):
        return  # nothing was to be measured in the end
    lines = config.stash.setdefault(LINES, [])
    lines += _summary(config, plan)
    gate.judge(session)
    lines += _prune(config)


def show(terminal: TerminalReporter) -> None:
    """The last words of a run; silent if there were no trials or in ``-q``."""
    config = terminal.config
    if config.get_verbosity() < 0:
        gate.show(terminal)
        return
    known = config.stash[told.TOLD]
    plan = config.stash.get(planned.PLAN, planned.Plan())
    lines = [
        *told.table(known),
        *known.run_again({str(trial["test"]) for trial in plan.trials}),
        *_overload(config, known),
        *config.stash.get(LINES, []),
    ]
    if lines:
        terminal.section("drainwatch", sep="-")
    for line in lines:
        terminal.write_line(line)
    gate.show(terminal)


def _overload(config: pytest.Config, known: told.Told) -> list[str]:
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


def _summary(config: pytest.Config, plan: planned.Plan) -> list[str]:
    from pytest_drainwatch.repeats.summary import Planned, finish

    skipped = config.stash[told.TOLD].skipped
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
    from pytest_drainwatch.repeats.pruning import prune

    return prune(run.settings.out, run.settings.keep_runs, run.run_id)
