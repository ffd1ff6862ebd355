"""What tests tell of their trials: by the properties of their reports.

Reports are what reaches everybody: junit, JSON, the controller of xdist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch.planning import repeating
from pytest_drainwatch.session import shown

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
    }
)
# Without these it is no trial that tells of itself.
ESSENTIAL = frozenset({"scenario", "report"})
_NAME = re.compile(r"(dw\d*)\.(\w+)")
TRIALS = pytest.StashKey["list[Trial]"]()
FAILED = pytest.StashKey[bool]()


def announce(request: pytest.FixtureRequest, measured: Trial) -> Trial:
    """A trial was measured: keep it with its test, its headlines on the test's reports."""
    item = request.node
    trials = item.stash.setdefault(TRIALS, [])
    trials.append(measured)
    prefix = PROPERTY if len(trials) == 1 else f"dw{len(trials)}."
    item.user_properties.extend((prefix + name, text) for name, text in _told(item, measured))
    item.config.hook.pytest_drainwatch_trial(trial=measured, request=request)
    return measured


def forget(item: pytest.Item) -> None:
    """A test starts, perhaps again: what an earlier attempt measured is not this one's."""
    item.stash[TRIALS] = []
    item.stash[FAILED] = False
    item.user_properties[:] = [p for p in item.user_properties if not ours(p[0])]


def enrich(item: pytest.Item, report: pytest.TestReport) -> None:
    """A test failed: note it, for ``--dw-keep=on-failure``, and show what happened around it."""
    item.stash[FAILED] = True
    trials = item.stash.get(TRIALS, [])
    if trials and report.when == "call":
        from pytest_drainwatch.explain import failure_sections

        as_typed = [replace(each, folder=shown(item.config, each.folder)) for each in trials]
        report.sections += [
            (f"drainwatch timeline: {name}", text) for name, text in failure_sections(as_typed)
        ]


def json_metadata(item: pytest.Item) -> dict[str, object]:
    """pytest-json-report: headline values of each of the item's trials."""
    found = [dict(_told(item, trial)) for trial in item.stash.get(TRIALS, [])]
    return {"drainwatch": found} if found else {}


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
    ]


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
