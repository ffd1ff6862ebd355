"""``--dw-baseline``: a run is compared with an earlier one, and fails if it got worse.

What cannot be compared is no pass: somebody asked for a gate.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch.session import RUN

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the comparison says, and whether the run fails for it."""

    text: str
    fails: bool


BASELINE = pytest.StashKey[Path]()
JUDGED = pytest.StashKey[Judged]()


def check(config: pytest.Config) -> None:
    """Before anything is measured: is there something to compare with?"""
    given = config.stash[RUN].settings.baseline
    if given is None or hasattr(config, "workerinput"):
        return
    from pytest_drainwatch.repeats.comparison import ComparisonError, check_baseline

    try:
        config.stash[BASELINE] = check_baseline(given)
    except ComparisonError as error:
        raise pytest.UsageError(f"--dw-baseline={given}: {error}") from None


def judge(session: pytest.Session) -> None:
    """Compare the run that is over; one that was broken off has failed already."""
    config = session.config
    over = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    if BASELINE not in config.stash or session.exitstatus not in over:
        return
    judged = config.stash[JUDGED] = _compared(config)
    if judged.fails:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def show(terminal: TerminalReporter) -> None:
    """What was found; with ``-q`` only if the run fails for it."""
    judged = terminal.config.stash.get(JUDGED, None)
    if judged is None or (terminal.config.get_verbosity() < 0 and not judged.fails):
        return
    terminal.section("drainwatch: baseline", sep="-")
    for line in judged.text.splitlines():
        terminal.write_line(line)


def _compared(config: pytest.Config) -> Judged:
    from pytest_drainwatch.render import compare
    from pytest_drainwatch.repeats.comparison import ComparisonError, against, failing

    run = config.stash[RUN]
    fail_on = run.settings.fail_on
    try:
        found = against(config.stash[BASELINE], run.settings.out / run.run_id)
        fails = failing(found, fail_on)
        text = compare.show(found)
    except ComparisonError as error:
        fails, text = bool(fail_on), f"no comparison: {error}"
    if fails:
        names = ",".join(sorted(fail_on))
        text = f"{text.rstrip()}\nthe run fails for it (--dw-fail-on={names})"
    return Judged(text=text, fails=fails)
