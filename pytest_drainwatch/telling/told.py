"""What tests tell of their trials: by the properties of their reports.

Reports are what reaches everybody: junit, JSON, the controller of xdist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from pytest_drainwatch.planning import repeating
from pytest_drainwatch.session import RUN, shown

if TYPE_CHECKING:
    from pytest_drainwatch.core.document import Report
    from pytest_drainwatch.trial import Trial

# A test's first trial has properties "dw.NAME", its second "dw2.NAME"; of these names. What
# else a user calls "dw.something" is his.
PROPERTY = "dw."
NAMES = frozenset(
    {
        *("scenario", "sigterm", "tcp", "tcp_ended", "udp", "udp_ended", "new", "exit"),
        *("stalls", "worst_stall_ms", "report", "repeat"),
        *("hurt", "window", "try", "lasted_s", "kubernetes", "cluster", "build", "page", "trace"),
        "promise",  # of a test that failed, beside its first trial
    }
)
# Without these it is no trial that tells of itself.
ESSENTIAL = frozenset({"scenario", "report"})
PAGE = "report.html"
LONGEST_PROMISE = 300
# What is told of a trace that there should be.
NO_TRACE = "cannot be written"
_NAME = re.compile(r"(dw\d*)\.(\w+)")
TRIALS = pytest.StashKey["list[Trial]"]()
# What was told of each of them.
TOLD = pytest.StashKey["list[dict[str, object]]"]()
FAILED = pytest.StashKey[bool]()


def announce(request: pytest.FixtureRequest, measured: Trial) -> Trial:
    """A trial was measured: keep it with its test, its headlines on the test's reports."""
    item = request.node
    trials = item.stash.setdefault(TRIALS, [])
    trials.append(measured)
    prefix = PROPERTY if len(trials) == 1 else f"dw{len(trials)}."
    found = dict(_told(item, measured))
    item.stash.setdefault(TOLD, []).append(found)
    item.user_properties.extend((prefix + name, text) for name, text in found.items())
    item.config.hook.pytest_drainwatch_trial(trial=measured, request=request)
    return measured


def forget(item: pytest.Item) -> None:
    """A test starts, perhaps again: what an earlier attempt measured is not this one's."""
    item.stash[TRIALS], item.stash[TOLD] = [], []
    item.stash[FAILED] = False
    item.user_properties[:] = [p for p in item.user_properties if not ours(p[0])]


def enrich(
    item: pytest.Item,
    report: pytest.TestReport,
    excinfo: pytest.ExceptionInfo[BaseException] | None,
) -> None:
    """A test failed: note it, for ``--dw-keep=on-failure``, and show what happened around it."""
    item.stash[FAILED] = True
    if excinfo is not None:
        from pytest_drainwatch.telling import void

        void.shorten(item, report, excinfo)
    trials = item.stash.get(TRIALS, [])
    if trials and report.when == "call":
        _tell_promise(item, report, excinfo)
        from pytest_drainwatch.explain import failure_sections

        as_typed = [replace(each, folder=shown(item.config, each.folder)) for each in trials]
        for name, text in failure_sections(as_typed):
            title = f"drainwatch: {name}"
            # Part of the failure, as junit and JSON have it: --show-capture, which hides other
            # sections, is about what a test wrote.
            if (add := getattr(report.longrepr, "addsection", None)) is not None:
                add(title, text, "-")
            else:
                report.sections.append((title, text))


def json_metadata(item: pytest.Item) -> dict[str, object]:
    """pytest-json-report: headline values of each of the item's trials."""
    found = item.stash.get(TOLD, [])
    return {"drainwatch": found} if found else {}


def _tell_promise(
    item: pytest.Item,
    report: pytest.TestReport,
    excinfo: pytest.ExceptionInfo[BaseException] | None,
) -> None:
    """The statement that did not hold, as its author wrote it, in a line.

    A test that met another error than that has broken, and no promise of the trial's.
    """
    if excinfo is None or not isinstance(excinfo.value, AssertionError | pytest.fail.Exception):
        return
    line = _in_words(lambda: _statement(excinfo))
    if line:
        # Reports hold a copy of what was told before.
        for told in (item.user_properties, report.user_properties):
            told.append((f"{PROPERTY}promise", line))
        item.stash[TOLD][0]["promise"] = line


def _statement(excinfo: pytest.ExceptionInfo[BaseException]) -> str:
    """Where it was raised, as pytest shows it: not within what says that it is to be hidden."""
    shown_ones = [entry for entry in excinfo.traceback if not entry.ishidden(excinfo)]
    if not shown_ones:
        return ""
    said = " ".join(str(shown_ones[-1].statement).split())
    return said if len(said) <= LONGEST_PROMISE else said[: LONGEST_PROMISE - 1] + "…"


def _told(item: pytest.Item, trial: Trial) -> Sequence[tuple[str, object]]:
    """All that a trial's test tells of it."""
    from pytest_drainwatch.render.overload import stalls_while_measuring

    number, worst_ms = stalls_while_measuring(trial.report.trial, trial.scenario.settle_ns)
    return [
        ("scenario", trial.scenario.id),
        *headlines(trial.report),
        ("stalls", number),
        ("worst_stall_ms", worst_ms),
        ("report", str(shown(item.config, trial.folder / "report.json"))),
        ("repeat", repeating.label(repeating.repeat_of(item))),
        *circumstances(trial.report),
        *_beside(item, trial),
    ]


def circumstances(report: Report) -> Sequence[tuple[str, object]]:
    """Who was hurt, in which window most, and what to try; where and by what it was measured."""
    told = [entry.t_ns for entry in report.trial.timeline]
    lasted_ns = max((hi for _, hi in told), default=0) - min((lo for lo, _ in told), default=0)
    where = report.environment
    advised = _in_words(lambda: _advised(report))
    return [
        ("hurt", _in_words(lambda: _hurt(report))),
        ("window", _in_words(lambda: _window(report))),
        *([("try", advised)] if advised else []),
        ("lasted_s", round(lasted_ns / 1e9, 1)),
        ("kubernetes", where.kubernetes_version or "not known"),
        ("cluster", where.provider or "not known"),
        ("build", f"{report.drainwatch_version} ({report.git_commit})"),
    ]


def _hurt(report: Report) -> str:
    from pytest_drainwatch.render.advice import findings
    from pytest_drainwatch.render.page.hurt import looked

    # How a container exited hurts nobody by itself: it is told beside.
    found = [each for each in findings(report) if each.part != "exit"]
    broken = [f"{each.part}: {each.what}" for each in found if each.broken]
    unknown = [f"{each.part}: {each.what}" for each in found if each.broken is None]
    if not (broken or unknown or looked(report.trial)):
        unknown = ["nothing was measured"]
    return "; ".join(broken) or (f"not known: {'; '.join(unknown)}" if unknown else "nobody")


def _window(report: Report) -> str:
    from pytest_drainwatch.render.page.hurt import hurt

    found = hurt(report.trial)
    return "none" if found is None else found["text"]


def _advised(report: Report) -> str:
    """The first advice that the evidence carries; empty if it carries none."""
    from pytest_drainwatch.render.advice import findings

    because = [why for each in findings(report) if each.broken for why in each.because]
    return next((advice for why in because for advice in why.advice), "")


def _beside(item: pytest.Item, trial: Trial) -> Sequence[tuple[str, str]]:
    """Where there is more to see: the run's page, which is written at its end, and the trace."""
    from pytest_drainwatch import tracing

    run = item.config.stash[RUN]
    found: list[tuple[str, str]] = []
    if trial.folder.is_relative_to(run.folder):
        within = quote(trial.folder.relative_to(run.folder).as_posix(), safe="")
        found.append(("page", f"{shown(item.config, run.folder / PAGE)}#/trial/{within}"))
    if "trace" in run.given and run.settings.trace:
        try:
            found.append(("trace", str(shown(item.config, tracing.write_beside(trial)))))
        except Exception as error:  # the trial is measured and its report is written
            found.append(("trace", f"{NO_TRACE}: {' '.join(str(error).split())}"))
    return found


def headlines(report: Report) -> Sequence[tuple[str, str]]:
    """What is said of a trial in few words, by the columns of the run's table."""
    from pytest_drainwatch.core.flow.table import Proto
    from pytest_drainwatch.render.terminal import counts, duration, ends, new_connections

    trial = report.trial
    codes = [gone.exit_code for gone in trial.container_exits]
    cells: dict[str, Callable[[], str]] = {
        "sigterm": lambda: duration(trial.summary.trigger_to_sigterm_ns),
        "tcp": lambda: counts(trial.summary.tcp),
        "tcp_ended": lambda: ends(trial.flows, Proto.TCP),
        "udp": lambda: counts(trial.summary.udp),
        "udp_ended": lambda: ends(trial.flows, Proto.UDP),
        "new": lambda: new_connections(trial),
        "exit": lambda: ",".join(map(str, codes)) or "not measured",
    }
    return [(name, _in_words(cell)) for name, cell in cells.items()]


def _in_words(cell: Callable[[], str]) -> str:
    try:
        return cell()
    except Exception as error:  # the report is written, and the test has yet to judge it
        return f"cannot be shown: {error!r}"


def ours(name: str) -> bool:
    """Whether a property is one by which a trial tells of itself."""
    return _split(name) is not None


def trials_of(report: pytest.TestReport) -> list[Mapping[str, object]]:
    """The trials that a test's report tells of. What was told first holds."""
    trials: dict[str, dict[str, object]] = {}
    for name, value in report.user_properties:
        if (split := _split(str(name))) is not None:
            trials.setdefault(split[0], {}).setdefault(split[1], value)
    return [values for values in trials.values() if values.keys() >= ESSENTIAL]


def _split(name: str) -> tuple[str, str] | None:
    found = _NAME.fullmatch(name)
    return (found[1], found[2]) if found and found[2] in NAMES else None
