"""What tests tell of their trials, by the properties of their reports, and what a run shows.

Reports are what reaches everybody: junit, JSON, the controller of xdist. So the table of a
run is made of them alone, every attempt of a test that was run again included.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from pytest_drainwatch import repeating

if TYPE_CHECKING:
    from pytest_drainwatch.trial import Trial

PROPERTY = "dw."
TRIALS = pytest.StashKey["list[Trial]"]()
FAILED = pytest.StashKey[bool]()
# What the table of a run shows of a trial, in the order of its columns, after its name.
COLUMNS = ("sigterm", "tcp", "tcp_ended", "udp", "udp_ended", "new", "exit", "report")
# The outcome of a failed attempt, in the words of the plugin that runs it again.
RUN_AGAIN: object = "rerun"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A trial as its test's report tells of it; ``attempt`` counts from 1 on."""

    test: str
    attempt: int
    outcome: str
    values: dict[str, str]


@dataclass(slots=True)
class Told:
    """What the reports of a run told so far, in their order."""

    trials: list[Measured] = field(default_factory=list)
    attempts: Counter[str] = field(default_factory=Counter)
    again: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    def note(self, report: pytest.TestReport) -> None:
        """One more report, of whichever phase of whichever attempt."""
        test = report.nodeid
        if report.when == "setup":
            self.attempts[test] += 1
        if report.outcome == RUN_AGAIN:
            self.again.append(test)
        if report.skipped:
            self.skipped[test] = str(
                report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            )
        if _tells_all(report):
            self.trials += [
                Measured(
                    test=test,
                    attempt=self.attempts[test] or 1,
                    outcome="failed" if report.outcome == RUN_AGAIN else str(report.outcome),
                    values=values,
                )
                for values in _trials_of(report)
            ]

    def rows(self) -> list[tuple[str, ...]]:
        """A row for each trial."""
        repeated = {each.values.get("repeat") for each in self.trials} - {None, "", "r00"}
        return [
            (
                self._name(each, repeated=bool(repeated)),
                *(each.values.get(column, "") for column in COLUMNS),
            )
            for each in self.trials
        ]

    def run_again(self, planned: Collection[str]) -> list[str]:
        """One line about trials that failed and were run again, whatever came of it.

        ``planned`` are the tests that measure: a void trial has told nothing of itself.
        """
        measuring = {*planned, *(each.test for each in self.trials)}
        found = [test for test in self.again if test in measuring]
        if not found:
            return []
        names = ", ".join(dict.fromkeys(test.rpartition("::")[2] for test in found))
        return [f"{len(found)} trial(s) failed and were run again: {names}"]

    def _name(self, each: Measured, *, repeated: bool) -> str:
        name = each.values.get("scenario", "")
        again = self.attempts[each.test] > 1
        if repeated or again:
            name += f" {each.values.get('repeat', '')}"
        if again:
            attempt = f" attempt {each.attempt}" if each.attempt > 1 else ""
            name += f"{attempt}: {each.outcome}"
        return name


TOLD = pytest.StashKey[Told]()


def announce(request: pytest.FixtureRequest, measured: Trial) -> Trial:
    """A trial was measured: keep it with its test, its headlines on the test's reports."""
    item = request.node
    trials = item.stash.setdefault(TRIALS, [])
    trials.append(measured)
    prefix = PROPERTY if len(trials) == 1 else f"dw{len(trials)}."
    told = [*_properties(measured), ("repeat", repeating.label(repeating.repeat_of(item)))]
    item.user_properties.extend((prefix + name, text) for name, text in told)
    item.config.hook.pytest_drainwatch_trial(trial=measured, request=request)
    return measured


def forget(item: pytest.Item) -> None:
    """A test starts, perhaps again: what an earlier attempt measured is not this one's."""
    item.stash[TRIALS] = []
    item.stash[FAILED] = False
    item.user_properties[:] = [p for p in item.user_properties if not _ours(p[0])]


def enrich(item: pytest.Item, report: pytest.TestReport) -> None:
    """Note a failure, for ``--dw-keep=on-failure``, and show what happened around it."""
    if not report.failed:
        return
    item.stash[FAILED] = True
    trials = item.stash.get(TRIALS, [])
    if trials and report.when == "call":
        from pytest_drainwatch.explain import failure_sections

        report.sections += [
            (f"drainwatch timeline: {name}", text) for name, text in failure_sections(trials)
        ]


def table(told: Told) -> list[str]:
    """The table of a run; empty if no trials were measured."""
    rows = told.rows()
    if not rows:
        return []
    from pytest_drainwatch.render.terminal import trial_rows

    try:
        return trial_rows(rows)
    except Exception as error:
        # The trials are measured and judged: what cannot be shown must not end the run.
        return [f"the table of trials cannot be shown: {error!r}", *(row[-1] for row in rows)]


def json_metadata(item: pytest.Item) -> dict[str, object]:
    """pytest-json-report: headline values of each of the item's trials."""
    trials = item.stash.get(TRIALS, [])
    repeat = ("repeat", repeating.label(repeating.repeat_of(item)))
    found = [dict([*_properties(trial), repeat]) for trial in trials]
    return {"drainwatch": found} if found else {}


def json_trials(json_report: dict[str, Any]) -> list[dict[str, object]]:
    """pytest-json-report: every trial of the run with the test that made it."""
    tests = json_report.get("tests") or []
    return [
        {"nodeid": test["nodeid"], **trial}
        for test in tests
        for trial in (test.get("metadata") or {}).get("drainwatch", ())
    ]


def _properties(trial: Trial) -> Sequence[tuple[str, object]]:
    from pytest_drainwatch.core.flow.table import Proto
    from pytest_drainwatch.overload import stalls_while_measuring
    from pytest_drainwatch.render.terminal import counts, duration, ends, new_connections

    cells: dict[str, Callable[[], str]] = {
        "sigterm": lambda: duration(trial.summary.trigger_to_sigterm_ns),
        "tcp": lambda: counts(trial.tcp),
        "tcp_ended": lambda: ends(trial.flows, Proto.TCP),
        "udp": lambda: counts(trial.udp),
        "udp_ended": lambda: ends(trial.flows, Proto.UDP),
        "new": lambda: new_connections(trial.report.trial),
        "exit": lambda: ",".join(str(code) for code in trial.exit_codes) or "not measured",
    }
    number, worst_ms = stalls_while_measuring(trial.report.trial, trial.scenario.settle_ns)
    return [
        ("scenario", trial.scenario.id),
        *((name, _shown(cell)) for name, cell in cells.items()),
        ("stalls", number),
        ("worst_stall_ms", worst_ms),
        ("report", str(trial.folder / "report.json")),
    ]


def _shown(cell: Callable[[], str]) -> str:
    try:
        return cell()
    except Exception as error:  # the report is written, and the test has yet to judge it
        return f"cannot be shown: {error!r}"


def _trials_of(report: pytest.TestReport) -> Iterator[dict[str, str]]:
    trials: dict[str, dict[str, str]] = {}
    for name, text in report.user_properties:
        if _ours(str(name)):
            prefix, _, rest = str(name).partition(".")
            trials.setdefault(prefix, {})[rest] = str(text)
    yield from trials.values()


def _tells_all(report: pytest.TestReport) -> bool:
    """Whether a report is the one of its test that knows all its trials.

    That is the call's, or the setup's if it was the last: arms may be measured before one
    is void.
    """
    return report.when == "call" or (report.when == "setup" and not report.passed)


def _ours(name: str) -> bool:
    return re.match(r"dw\d*\.", name) is not None
