"""Texts that a person reads when something did not hold (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING
from urllib.parse import quote

from pytest_drainwatch.core.document import Counts, FlowReport, TrialReport
from pytest_drainwatch.core.flow.classify import Outcome, Role
from pytest_drainwatch.render import network, probing, terminal
from pytest_drainwatch.render.advice import Finding, findings
from pytest_drainwatch.render.text import plain

if TYPE_CHECKING:
    from pytest_drainwatch.trial import Trial

SECTION_LINES = 25
# With fewer lines a section would say nothing.
LEAST_LINES = 5
MARKS_SHOWN = 3
# What happened around it gets so many at least, if there is anything to try.
TIMELINE_LINES, LEAST_EVENTS = 7, 3
WIDTH = 100
# What tells most of a termination, and what is left of it where there is no room for that.
KEY = frozenset(
    {
        *("trigger_issued", "pod_deletion_timestamp_set", "sigterm_received", "flow_terminal"),
        *("endpointslice_ready_false", "container_terminated", "pod_ready_true"),
        *("new_connections_last_failed", "http_requests_last_failed"),
    }
)
TELLING = KEY | {
    *("trigger_blocked", "prestop_called", "sigterm_ignored", "readyz_now_503", "exiting"),
    *("stopped_accepting", "endpointslice_endpoint_removed"),
    *("new_connections_fail", "http_requests_fail"),
}
# A void trial says what it has to in a few lines; what a server or a program wrote can be long.
VOID_ROWS = 20
CUT = " … "


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
            text = "\n".join([f"cannot be shown: {error!r}", *_where(trial)])
        yield trial.scenario.id, text


def failure_section(trial: Trial, lines: int = SECTION_LINES) -> str:
    """What broke, by how much, why, what to try, and what happened around it.

    In at most so many lines (LEAST_LINES or more).
    """
    judged = trial.report.trial
    marks = [mark.strip() for mark in probing.marks(judged)][:MARKS_SHOWN]
    head = [line for mark in marks for line in _wrapped(mark)][: lines - LEAST_LINES]
    where = _where(trial)
    left = lines - len(head) - len(where)
    told = _told(findings(trial.report), max(left - TIMELINE_LINES, min(left, LEAST_LINES)))
    stale = network.stale(judged.flows)
    if stale is not None and left > LEAST_LINES:
        told = [*told[: left - 1], f"net: {stale}"]
    left -= len(told)
    return "\n".join([*head, *told, *_around(judged, left), *where])


def _around(judged: TrialReport, most: int) -> list[str]:
    """What happened since the trigger, or the most telling of it."""
    if most < LEAST_EVENTS:
        return []
    since = [entry for entry in judged.timeline if entry.t_ms >= 0]
    for only in (None, TELLING, KEY):
        chosen = [entry for entry in since if only is None or entry.event in only]
        shown = terminal.timeline(chosen, limit=len(chosen) + 1)
        if len(shown) <= most:
            return shown
    return terminal.timeline(chosen, limit=most)


def _told(found: Sequence[Finding], most: int) -> list[str]:
    """How each part fared, and of the reasons as many as there is room for: one of each first."""
    heads = [_wrapped(f"{each.part}: {each.what}") for each in found]
    parts = [list(_reasons(each)) for each in found]
    chosen: list[set[int]] = [set() for _ in found]
    left = most - sum(map(len, heads))
    for n in range(max(map(len, parts), default=0)):
        for part, kept in zip(parts, chosen, strict=True):
            if n < len(part) and len(part[n]) <= left:
                kept.add(n)
                left -= len(part[n])
    told = [
        line
        for head, part, kept in zip(heads, parts, chosen, strict=True)
        for line in (*head, *(line for n in sorted(kept) for line in part[n]))
    ]
    return told if len(told) <= most else [*told[: most - 1], "…"]


def _reasons(found: Finding) -> Iterator[list[str]]:
    """In the order of their worth, each whole or not at all."""
    if found.broken is False:
        return
    for because in sorted(found.because, key=lambda each: not each.advice):
        yield [
            *_wrapped(f"why: {because.why}", "  "),
            *(line for text in because.advice for line in _wrapped(f"try: {text}", "  ")),
        ]
    if found.which:
        yield _wrapped(f"who: {found.which}", "  ")


def _wrapped(text: str, indent: str = "") -> list[str]:
    return wrap(plain(text), WIDTH, initial_indent=indent, subsequent_indent=indent + "     ")


def _where(trial: Trial) -> list[str]:
    """Where it can be looked at, once the run is over, and read now."""
    run = trial.folder.parent.parent
    named = quote(f"{trial.folder.parent.name}/{trial.folder.name}", safe="")
    return [
        f"page: {run / 'report.html'}#/trial/{named}",
        f"all of it: drainwatch show {trial.folder / 'report.json'}",
    ]


def void_text(said: str) -> str:
    """Why a trial could not be measured, in at most VOID_ROWS rows of a terminal.

    What a server or a program wrote is cut in its middle: what to type stands at the end.
    Nothing is wrapped, so that a command can be copied.
    """
    lines = [plain(line) for line in said.splitlines()]
    if len(lines) > VOID_ROWS:
        kept = VOID_ROWS // 2
        more = f"  … {len(lines) - 2 * kept + 1:,} more lines"
        lines = [*lines[: kept - 1], more, *lines[-kept:]]
    while sum(map(_rows, lines)) > VOID_ROWS:
        longest = max(range(len(lines)), key=lambda n: len(lines[n]))
        lines[longest] = _shorter(lines[longest])
    return "\n".join(lines)


def _rows(line: str) -> int:
    return max(1, -(-len(line) // WIDTH))


def _shorter(line: str) -> str:
    """A row less, from the middle."""
    half = (max(len(line) - WIDTH, WIDTH) - len(CUT)) // 2
    return f"{line[:half]}{CUT}{line[-half:]}"


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
