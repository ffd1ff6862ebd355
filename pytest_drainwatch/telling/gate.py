"""``--dw-baseline``: a run is compared with an earlier one, and fails if it got worse.

What cannot be compared is no pass: somebody asked for a gate.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch.session import COMMAND_LINE, INI, RUN, only_looks, shown
from pytest_drainwatch.showing.listening import PLAN

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the comparison says, and whether the run fails for it.

    ``verdict`` is None where nothing could be compared.
    """

    text: str
    verdict: str | None
    fails: bool


BASELINE = pytest.StashKey[Path]()
JUDGED = pytest.StashKey[Judged]()


def check(config: pytest.Config) -> None:
    """Before anything is measured: is there something to compare with?

    A baseline of an ini, or of the environment, is about those runs that measure. One of the
    command line is about this run, whatever it selects.
    """
    settings = config.stash[RUN].settings
    given, origin = settings.baseline, settings.origins.get("baseline")
    if given is None or hasattr(config, "workerinput") or BASELINE in config.stash:
        return
    if PLAN not in config.stash and origin != COMMAND_LINE:
        return
    if only_looks(config):
        return
    from pytest_drainwatch.core.repeats.compare import compare
    from pytest_drainwatch.repeats.comparison import ComparisonError, check_baseline, read_run

    named = f"--dw-baseline={shown(config, given)}" + (
        "" if origin == COMMAND_LINE else f" ({origin})"
    )
    try:
        config.stash[BASELINE] = check_baseline(given)
    except ComparisonError as error:
        without = "pytest -o dw_baseline=" if origin == INI else "pytest"
        raise pytest.UsageError(
            f"{named}: {error}. A baseline is the folder of an earlier run; one is made by: "
            f"{without} --dw-repeat=5 --dw-out=DIR, and is then what DIR/latest leads to"
        ) from None
    if settings.across:
        read = read_run(given)
        try:  # a run under the same conditions could be compared: are those named any?
            compare(read, read, across=settings.across)
        except ComparisonError as error:
            raise pytest.UsageError(f"{named}: {in_our_words(str(error))}") from None


def judge(session: pytest.Session) -> None:
    """Compare the run that is over; one that was broken off has failed already.

    Before others look at the run's exit status.
    """
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


def as_json(config: pytest.Config) -> dict[str, object] | None:
    """What was found, for pytest-json-report; None without a baseline."""
    judged = config.stash.get(JUDGED, None)
    if judged is None:
        return None
    return {
        "baseline": str(shown(config, config.stash[BASELINE])),
        "verdict": judged.verdict,
        "fails": judged.fails,
        "text": judged.text,
    }


def _compared(config: pytest.Config) -> Judged:
    from pytest_drainwatch.render import compare
    from pytest_drainwatch.repeats.comparison import ComparisonError, against, failing
    from pytest_drainwatch.results import has_report

    run = config.stash[RUN]
    settings = run.settings
    fail_on, verdict = settings.fail_on, None
    try:
        if not has_report(run.folder):
            raise ComparisonError("nothing was measured in this run")
        found = against(config.stash[BASELINE], run.folder, across=settings.across)
        text, fails = compare.show(found), failing(found, fail_on)
        verdict = str(found.verdict)
    except ComparisonError as error:
        fails, text = bool(fail_on), f"no comparison: {in_our_words(str(error))}"
    except KeyboardInterrupt:
        fails, text = bool(fail_on), "no comparison: interrupted"
    except Exception as error:  # a bug of ours is no pass either
        fails, text = bool(fail_on), f"no comparison: {error!r}"
    if fails:
        names = ",".join(sorted(fail_on))
        text = f"{text.rstrip()}\nthe run fails for it (--dw-fail-on={names})"
    return Judged(text=text, verdict=verdict, fails=fails)


def in_our_words(said: str) -> str:
    """``drainwatch compare`` takes ``--across`` once for each field, and we take them together."""

    def together(found: re.Match[str]) -> str:
        return "--dw-across=" + ",".join(re.findall(r"--across (\S+)", found[0]))

    return re.sub(r"--across \S+(?: --across \S+)*", together, said)
