"""The end of a run: the table, what was run again, the sum of it, and what is cleared away.

Nothing here changes what was measured, and nothing that goes wrong here ends the run
otherwise than it would have ended: it becomes a line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch.planning import planned
from pytest_drainwatch.session import RUN, only_looks, shown, workers_of
from pytest_drainwatch.showing.listening import PLAN, REPORTS, measured
from pytest_drainwatch.telling import gate
from pytest_drainwatch.telling.attempts import NOT_JUDGED, Measured, Told, table
from pytest_drainwatch.telling.facts import anything
from pytest_drainwatch.telling.told import NO_TRACE

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from pytest_drainwatch.core.repeats.summary import Summary, TrialEntry

# What is said if it cannot be done, and the doing; it says what else went wrong.
Part = tuple[str, Callable[[], list[str]]]
# What a person has to know even with ``-q``, and the rest.
PROBLEMS = pytest.StashKey[list[str]]()
LINES = pytest.StashKey[list[str]]()
# What the run measured, for those that come after it was summed up.
SUMMARY: pytest.StashKey[Summary] = pytest.StashKey()
# Trials of which no test told, but whose reports are there.
SILENT = pytest.StashKey[list[Measured]]()


def finish(session: pytest.Session) -> None:
    """Sum up a run that set out to measure."""
    config = session.config
    if only_looks(config):
        return
    refused = session.testsfailed or session.exitstatus == pytest.ExitCode.USAGE_ERROR
    if refused and not config.stash[REPORTS]:
        return  # its tests could not be collected, or not be done, and none was begun
    guard(config, "the run is not summed up", lambda: _sum_up(config))


def _sum_up(config: pytest.Config) -> list[str]:
    from pytest_drainwatch.results import has_report

    plan = config.stash.get(PLAN, planned.Plan())
    told = Told.of(config.stash[REPORTS])
    folder = config.stash[RUN].folder
    if not anything(folder) and all(trial["test"] in told.skipped for trial in plan.trials):
        return []  # nothing was to be measured in the end
    parts: list[Part] = [("the run is not summed up", lambda: _summarise(config, plan, told))]
    measured_any = has_report(folder)
    if measured_any:
        parts.append(("no page is written", lambda: _page(config, told)))
    if config.stash[RUN].settings.markdown is not None:
        parts.append(("no job summary is written", lambda: _markdown(config, told)))
    if measured_any and config.stash[RUN].settings.keep_runs is not None:
        # Else nobody knows what it is worth, and older runs had better stay.
        parts.append(("no old run was removed", lambda: _prune(config)))
    return list(_in_turn(parts))


def show(terminal: TerminalReporter) -> None:
    """The last words of a run; silent if there were no trials. In ``-q`` only what is wrong."""
    config = terminal.config
    problems = config.stash.get(PROBLEMS, [])
    lines = problems
    if config.get_verbosity() >= 0:
        said = _guarded("the run's trials cannot be shown", lambda: _told(config))
        lines = [*said, *config.stash.get(LINES, []), *problems]
    if lines:
        terminal.section("drainwatch", sep="-")
    for line in lines:
        terminal.write_line(line)


def for_json(config: pytest.Config) -> dict[str, object]:
    """What pytest-json-report writes of the whole run."""
    from pytest_drainwatch.telling.attempts import as_json
    from pytest_drainwatch.telling.facts import of_run

    found: dict[str, object] = {
        "schema": 1,
        **({"run": of_run(config)} if measured(config) else {}),
        "trials": as_json(Told.of(config.stash[REPORTS]).trials),
    }
    judged = gate.as_json(config)
    return found if judged is None else {**found, "baseline": judged}


def _told(config: pytest.Config) -> list[str]:
    known = Told.of(config.stash[REPORTS])
    plan = config.stash.get(PLAN, planned.Plan())
    trials = [*known.trials, *config.stash.get(SILENT, [])]
    return [
        *table(trials),
        *known.run_again({str(trial["test"]) for trial in plan.trials}),
        *(
            f"no trace of {each.told('scenario')}: {each.told('trace')}"
            for each in trials
            if each.told("trace").startswith(NO_TRACE)
        ),
        *_guarded("stalls cannot be shown", lambda: _overload(config, trials)),
    ]


def guard(config: pytest.Config, what: str, part: Callable[[], list[str]]) -> None:
    """Do a part of the end of a run; ``what`` is said if it cannot be done."""
    config.stash.setdefault(PROBLEMS, []).extend(_in_turn([(what, part)]))


def _in_turn(parts: Sequence[Part]) -> Iterator[str]:
    """What went wrong in them. Ctrl-C ends them, and not the words about the run."""
    for number, (what, part) in enumerate(parts):
        try:
            yield from _guarded(what, part)
        except KeyboardInterrupt:
            yield f"interrupted: {', '.join(left for left, _ in parts[number:])}"
            return


def _guarded(what: str, part: Callable[[], list[str]]) -> list[str]:
    """The trials are measured and judged: an error here becomes a line."""
    try:
        return part()
    except Exception as error:
        return [f"{what}: {type(error).__name__}: {' '.join(str(error).split())}"]


def _overload(config: pytest.Config, trials: Sequence[Measured]) -> list[str]:
    if not trials:
        return []
    from pytest_drainwatch.render.overload import Stalled, advice

    found = [
        Stalled(stalls=each.number("stalls"), worst_ms=each.number("worst_stall_ms"))
        for each in trials
    ]
    return advice(found, workers=workers_of(config), cpus=os.cpu_count())


def _summarise(config: pytest.Config, plan: planned.Plan, told: Told) -> list[str]:
    """Write summary.json, and say what is missing in the run."""
    from pytest_drainwatch.core.repeats.summary import Planned, State
    from pytest_drainwatch.recorder import write_atomic
    from pytest_drainwatch.render.summary import lines
    from pytest_drainwatch.repeats.summary import FILE, dumps, summarise

    folder = config.stash[RUN].folder
    found = config.stash[SUMMARY] = summarise(
        folder,
        [
            Planned(
                scenario=None if trial["scenario"] is None else str(trial["scenario"]),
                repeat=int(str(trial["repeat"])),
                test=str(trial["test"]),
                why_not=told.skipped.get(str(trial["test"])),
                ended=str(trial["test"]) in told.ended,
            )
            for trial in plan.trials
        ],
    )
    # Whoever else shows it needs no file.

    def write() -> list[str]:
        write_atomic(folder / FILE, dumps(found))
        return []

    problems = _guarded("summary.json is not written", write)
    if config.get_verbosity() >= 0:
        config.stash[LINES] = lines(found)
        seek = _guarded("not all trials are in the table", lambda: _seek(config, found, told))
        return [*problems, *seek]
    if found.complete:
        return problems
    missing = sum(entry.state is not State.MEASURED for entry in found.trials)
    of = f"{missing} of {len(found.trials)} trials were not measured"
    why = of if missing else found.incomplete_because[0]
    return [*problems, f"incomplete: {why}: {shown(config, folder / FILE)}"]


def _page(config: pytest.Config, told: Told) -> list[str]:
    """Write report.html, and say where it is."""
    from pytest_drainwatch.pages.writing import write_run

    run, here = config.stash[RUN], config.invocation_params.dir
    page = write_run(
        run.folder,
        config.stash.get(SUMMARY, None),
        outcomes={(here / each.told("report")).resolve(): each.outcome for each in told.trials},
        baseline=config.stash.get(gate.BASELINE, None),
        across=run.settings.across,
    )
    config.stash.setdefault(LINES, []).append(f"page: {shown(config, page)}")
    return []


def _markdown(config: pytest.Config, told: Told) -> list[str]:
    """Write what ``--dw-markdown`` asks for, once the run is summed up."""
    from pytest_drainwatch.telling import job_summary

    if SUMMARY not in config.stash:
        return ["no job summary is written: the run is not summed up"]
    return job_summary.write(config, config.stash[SUMMARY], told)


def _seek(config: pytest.Config, found: Summary, told: Told) -> list[str]:
    """Find trials that were measured, and whose tests never told: their process was killed."""
    from pytest_drainwatch.core.repeats.summary import State

    folder, here = config.stash[RUN].folder, config.invocation_params.dir
    known = {here / each.told("report") for each in told.trials}
    silent = config.stash[SILENT] = []
    for entry in found.trials:
        if entry.state is not State.MEASURED or entry.folder is None:
            continue
        report = folder / entry.folder / "report.json"
        if report not in known:
            silent.append(_read(entry, report, str(shown(config, report))))
    return []


def _read(entry: TrialEntry, path: Path, as_typed: str) -> Measured:
    from pytest_drainwatch import report
    from pytest_drainwatch.planning.repeating import label
    from pytest_drainwatch.telling.told import headlines

    read = report.loads(path.read_text(encoding="utf-8"))
    return Measured(
        test=entry.test or "",
        attempt=entry.attempt or 1,
        outcome=NOT_JUDGED,
        values={
            "scenario": read.trial.scenario,
            **dict(headlines(read)),
            "report": as_typed,
            "repeat": label(entry.repeat or 0),
        },
    )


def _prune(config: pytest.Config) -> list[str]:
    run = config.stash[RUN]
    out, keep = run.settings.out, run.settings.keep_runs
    if keep is None:
        return []
    from pytest_drainwatch.repeats.pruning import prune
    from pytest_drainwatch.results import has_report, run_of

    # A run in which nothing could be measured takes no other's place.
    others = sorted((p for p in out.iterdir() if run_of(p.name) and p != run.folder), reverse=True)
    spare = set(list(filter(has_report, others))[: keep - 1])
    if gate.BASELINE in config.stash:
        spare.add(config.stash[gate.BASELINE])
    return prune(out, keep, run.run_id, spare=spare)
