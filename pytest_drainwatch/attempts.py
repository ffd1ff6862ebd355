"""The table of a run: made of its tests' reports alone, every attempt of a test included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

import pytest

from pytest_drainwatch.told import ours

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

    @classmethod
    def of(cls, reports: Iterable[pytest.TestReport]) -> Told:
        """What all of them told."""
        told = cls()
        for report in reports:
            told.note(report)
        return told

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


def _trials_of(report: pytest.TestReport) -> Iterator[dict[str, str]]:
    trials: dict[str, dict[str, str]] = {}
    for name, text in report.user_properties:
        if ours(str(name)):
            prefix, _, rest = str(name).partition(".")
            trials.setdefault(prefix, {})[rest] = str(text)
    yield from trials.values()


def _tells_all(report: pytest.TestReport) -> bool:
    """Whether a report is the one of its test that knows all its trials.

    That is the call's, or the setup's if it was the last: arms may be measured before one
    is void.
    """
    return report.when == "call" or (report.when == "setup" and not report.passed)
