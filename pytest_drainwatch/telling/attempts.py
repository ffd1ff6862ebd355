"""What the reports of a run's tests tell of its trials, every attempt of a test included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from pytest_drainwatch.telling.told import trials_of

# What the table of a run shows of a trial, in the order of its columns, after its name.
COLUMNS = ("sigterm", "tcp", "tcp_ended", "udp", "udp_ended", "new", "exit", "report")
# The outcome of a failed attempt, in the words of the plugin that runs it again.
RUN_AGAIN: object = "rerun"
# Of a trial that is measured, and whose test told nothing of it any more.
NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A trial as its test's report tells of it; ``attempt`` counts from 1 on."""

    test: str
    attempt: int
    outcome: str
    values: Mapping[str, object]
    again: bool = False  # one of several attempts

    def told(self, name: str) -> str:
        """One value in words; empty if nothing was told."""
        return str(self.values.get(name, ""))

    def number(self, name: str) -> int:
        """One value that is a number; 0 if none was told."""
        value = self.values.get(name)
        return value if isinstance(value, int) else 0


@dataclass(slots=True)
class Told:
    """What the reports of a run told so far, in their order.

    Tests are counted by who ran them: with xdist's ``--dist=each`` every worker runs all.
    """

    trials: list[Measured] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    _attempts: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def of(cls, reports: list[pytest.TestReport]) -> Told:
        """What all of them told."""
        told = cls()
        for report in reports:
            if report.when == "setup":
                told._attempts[_run(report)] += 1
        several = {run for run, number in told._attempts.items() if number > 1}
        told._attempts.clear()
        for report in reports:
            told._note(report, again=_run(report) in several)
        return told

    def _note(self, report: pytest.TestReport, *, again: bool) -> None:
        """One more report, of whichever phase of whichever attempt."""
        test = report.nodeid
        if report.when == "setup":
            self._attempts[_run(report)] += 1
        if report.outcome == RUN_AGAIN:
            self.again.append(test)
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped[test] = str(
                report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            )
        if not _tells_all(report):
            return
        self.ended.add(test)
        self.trials += [
            Measured(
                test=test,
                attempt=self._attempts[_run(report)] or 1,
                outcome="failed" if report.outcome == RUN_AGAIN else str(report.outcome),
                values=values,
                again=again,
            )
            for values in trials_of(report)
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


def _rows(trials: Sequence[Measured]) -> list[tuple[str, ...]]:
    """A row for each trial."""
    repeated = {each.told("repeat") for each in trials} - {"", "r00"}
    return [
        (_name(each, repeated=bool(repeated)), *(each.told(column) for column in COLUMNS))
        for each in trials
    ]


def _name(each: Measured, *, repeated: bool) -> str:
    name = each.told("scenario")
    if repeated or each.again:
        name += f" {each.told('repeat')}"
    if each.again and each.attempt > 1:
        name += f" attempt {each.attempt}"
    return f"{name}: {each.outcome}" if each.again or each.outcome == NOT_JUDGED else name


def table(trials: Sequence[Measured]) -> list[str]:
    """The table of a run; empty if no trials were measured."""
    rows = _rows(trials)
    if not rows:
        return []
    from pytest_drainwatch.render.terminal import trial_rows

    try:
        return trial_rows(rows)
    except Exception as error:
        # The trials are measured and judged: what cannot be shown must not end the run.
        return [f"the table of trials cannot be shown: {error!r}", *(row[-1] for row in rows)]


def as_json(trials: Sequence[Measured]) -> list[dict[str, object]]:
    """pytest-json-report: every trial of the run with the test that made it."""
    return [
        {"nodeid": each.test, "attempt": each.attempt, "outcome": each.outcome, **each.values}
        for each in trials
    ]


def _run(report: pytest.TestReport) -> tuple[str, str]:
    """A test, and the worker that ran it."""
    gateway = getattr(getattr(report, "node", None), "gateway", None)
    return report.nodeid, str(getattr(gateway, "id", ""))


def _tells_all(report: pytest.TestReport) -> bool:
    """Whether a report is the one of its test that knows all its trials.

    That is the call's, or the setup's if it was the last: arms may be measured before one
    is void.
    """
    return report.when == "call" or (report.when == "setup" and not report.passed)
