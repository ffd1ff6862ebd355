"""What tests tell of their trials: by the properties of their reports.

Reports are what reaches everybody: junit, JSON, the controller of xdist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_drainwatch import repeating

if TYPE_CHECKING:
    from pytest_drainwatch.trial import Trial

PROPERTY = "dw."
TRIALS = pytest.StashKey["list[Trial]"]()
FAILED = pytest.StashKey[bool]()


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
    item.user_properties[:] = [p for p in item.user_properties if not ours(p[0])]


def enrich(item: pytest.Item, report: pytest.TestReport) -> None:
    """A test failed: note it, for ``--dw-keep=on-failure``, and show what happened around it."""
    item.stash[FAILED] = True
    trials = item.stash.get(TRIALS, [])
    if trials and report.when == "call":
        from pytest_drainwatch.explain import failure_sections

        report.sections += [
            (f"drainwatch timeline: {name}", text) for name, text in failure_sections(trials)
        ]


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


def ours(name: str) -> bool:
    return re.match(r"dw\d*\.", name) is not None
