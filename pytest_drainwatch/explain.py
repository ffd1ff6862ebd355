"""Texts that a person reads when something did not hold (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pytest_drainwatch.core.document import Counts, FlowReport
from pytest_drainwatch.core.flow.classify import Outcome, Role
from pytest_drainwatch.render import network, probing, terminal

if TYPE_CHECKING:
    from pytest_drainwatch.trial import Trial

SECTION_LINES = 25
MARKS_SHOWN = 3


def failure_section(trial: Trial) -> str:
    """What happened around a broken promise, in at most 25 lines."""
    judged = trial.report.trial
    head = [
        *[mark.strip() for mark in probing.marks(judged)][:MARKS_SHOWN],
        f"tcp: {terminal.counts(trial.tcp)}",
        f"udp: {terminal.counts(trial.udp)}",
        *(f"new: {line}" for line in probing.met(judged.new_connections)),
    ]
    stale = network.stale(judged.flows)
    if stale is not None:
        head.append(f"net: {stale}")
    since = [entry for entry in judged.timeline if entry.t_ms >= 0]
    return "\n".join(
        [
            *head,
            *terminal.timeline(since, limit=SECTION_LINES - len(head) - 1),
            f"all of it: drainwatch show {trial.folder / 'report.json'}",
        ]
    )


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
