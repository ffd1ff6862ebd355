"""Texts that a person reads when something did not hold (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_drainwatch.core.document import Counts, FlowReport
from pytest_drainwatch.core.flow.classify import Outcome, Role
from pytest_drainwatch.render import http, network, probing, terminal

if TYPE_CHECKING:
    from pytest_drainwatch.trial import Trial

SECTION_LINES = 25
# With fewer lines a section would say nothing.
LEAST_LINES = 5
MARKS_SHOWN = 3


def failure_sections(trials: Sequence[Trial]) -> Iterator[tuple[str, str]]:
    """Of a failed test's trials each with its scenario's id, in at most 25 lines together.

    Of more trials than there is room for, the last ones: an earlier one has its row in the
    run's table.
    """
    shown = trials[-(SECTION_LINES // LEAST_LINES) :]
    for trial in shown:
        try:
            text = failure_section(trial, SECTION_LINES // len(shown))
        except Exception as error:  # the test's own failure must be seen all the same
            text = f"cannot be shown: {error!r}\n{_all_of_it(trial)}"
        yield trial.scenario.id, text


def failure_section(trial: Trial, lines: int = SECTION_LINES) -> str:
    """What happened around a broken promise, in at most so many lines (2 or more)."""
    judged = trial.report.trial
    head = [mark.strip() for mark in probing.marks(judged)][:MARKS_SHOWN]
    if judged.requests is not None:
        head += [f"http: {line}" for line in http.met(judged.requests)]
    if judged.requests is None or judged.flows:
        head += [
            f"tcp: {terminal.counts(trial.tcp)}",
            f"udp: {terminal.counts(trial.udp)}",
            *(f"new: {line}" for line in probing.met(judged.new_connections)),
        ]
    stale = network.stale(judged.flows)
    if stale is not None:
        head.append(f"net: {stale}")
    head = head[: lines - 1]
    left = lines - 1 - len(head)
    since = [entry for entry in judged.timeline if entry.t_ms >= 0]
    shown = terminal.timeline(since, limit=left) if left > 1 else []
    return "\n".join([*head, *shown, _all_of_it(trial)])


def _all_of_it(trial: Trial) -> str:
    return f"all of it: drainwatch show {trial.folder / 'report.json'}"


def compare_counts(op: str, left: Counts, right: Counts) -> list[str]:
    """``assert trial.tcp == Counts(...)`` explained field by field."""
    lines = [f"flow counts: {terminal.counts(left)} {op} {terminal.counts(right)}"]
    for name in Counts.__slots__:
        mine, theirs = getattr(left, name), getattr(right, name)
        if mine != theirs:
            lines.append(f"  {name}: {mine} != {theirs}")
    return lines


def worst(flows: Iterable[FlowReport], expected: Outcome, limit: int = 5) -> str:
    """The target flows that did not end as promised, each with when and why."""
    broken = [f for f in flows if f.role is Role.TARGET and f.outcome is not expected]
    if not broken:
        return f"every target flow: {expected}"
    lines = [f"{len(broken)} target flow(s) did not end as {expected}:"]
    lines += [
        f"  {flow.id}: {flow.outcome} by {flow.mechanism}, end "
        f"{terminal.duration(flow.terminal_ns)} {flow.detail or ''}".rstrip()
        for flow in broken[:limit]
    ]
    if len(broken) > limit:
        lines.append(f"  … and {len(broken) - limit} more")
    return "\n".join(lines)
