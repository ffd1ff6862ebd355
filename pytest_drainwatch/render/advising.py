"""The advisor's answer as text: the budget of each workload, then its findings, worst first."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from pytest_drainwatch.core.advisor.advice import Advice, Workload
from pytest_drainwatch.core.advisor.finding import Finding, Level
from pytest_drainwatch.core.advisor.measured import Measured
from pytest_drainwatch.core.advisor.shown import seconds
from pytest_drainwatch.core.advisor.tried import Tried
from pytest_drainwatch.render.measured import left_out, says
from pytest_drainwatch.render.text import plain

WIDTH = 100
_LABELS = ("says", "expected", "because", "fix", "breaks", "source")
# What stands before each of a finding's texts.
_TITLES = {"says": "found", "fix": "write", "breaks": "unless"}


def show(advice: Advice) -> str:
    """All of it."""
    parts = ["\n".join(_workload(workload)) for workload in advice.workloads]
    if advice.measured is not None:
        parts.insert(0, "\n".join(_measured(advice.measured)))
    if advice.findings:
        parts.append("\n".join(("Other objects", *_findings(advice.findings))))
    parts.append(_summary(advice))
    return "\n\n".join(parts) + "\n"


def _measured(measured: Measured) -> Iterator[str]:
    yield f"Measured in {measured.trials} trial(s)"
    for figure in measured.figures:
        yield _filled(f"  {figure.name:<14}", says(figure))
        for each in left_out(figure):
            yield _filled(" " * 16, each)


def _workload(workload: Workload) -> Iterator[str]:
    budget = workload.budget
    yield plain(f"{workload.kind}/{workload.name}  {workload.at}")
    yield plain(f"  Shutdown budget of {workload.container}: {seconds(budget.grace_ns)} grace")
    for part in budget.parts:
        shown = "not known" if part.ns is None else seconds(part.ns)
        yield _filled(f"    {part.name:<18} {shown:>9}  ", part.because)
    unknown = ", ".join(str(part.name) for part in budget.unknown)
    left = f"for {unknown}" if unknown else ""
    yield _filled(f"    {'left':<18} {seconds(budget.left_ns):>9}  ", left or "nothing else")
    if budget.sigterm_ns is not None and budget.kill_ns is not None:
        yield (
            f"  SIGTERM {seconds(budget.sigterm_ns)} after the deletion, SIGKILL at "
            f"{seconds(budget.kill_ns)}"
        )
    yield from _findings(workload.findings)
    yield ""
    yield from _recommendation(workload)


def _recommendation(workload: Workload) -> Iterator[str]:
    asked = workload.recommendation
    if asked.missing:
        known = "" if asked.pre_stop_s is None else f", preStop {asked.pre_stop_s} s"
        yield f"  Recommended: not known{known}; missing:"
        for each in asked.missing:
            yield _filled("    ", each)
        return
    yield f"  Recommended: preStop {asked.pre_stop_s} s, grace {asked.grace_s} s"
    lines = [*asked.routes, *asked.parts, *([asked.outlives] if asked.outlives else [])]
    for line in lines:
        yield _filled(f"    {line.name:<21} {seconds(line.ns):>8}  ", line.because)
        if line.breaks:
            yield _filled(" " * 36, f"more with {line.breaks}")
    for each in asked.uncovered:
        yield _filled("    Not covered: ", each)
    if workload.simulated is not None:
        now, then = workload.simulated.present, workload.simulated.recommended
        yield _filled(
            "  Simulated, not measured: ",
            f"{_tried(then)} with these values, {_tried(now)} with the present ones",
        )
    if asked.snippet is None:
        yield "  Your hook does more than wait: keep it, and make it last that long"
        return
    yield ""
    yield from (plain(f"    {line}".rstrip()) for line in asked.snippet.splitlines())


def _tried(one: Tried) -> str:
    if one.failed is None:
        return f"not known ({one.note})"
    return f"{one.failed} of {one.total} requests fail"


def _findings(findings: tuple[Finding, ...]) -> Iterator[str]:
    for finding in findings:
        yield ""
        yield plain(f"  {str(finding.level).upper()} {finding.code}  {finding.where}")
        for label in _LABELS:
            text = plain(getattr(finding, label))
            if text:
                yield _filled(f"    {_TITLES.get(label, label):<9}", text)


def _filled(before: str, text: str) -> str:
    """The text with something before it, on lines that begin below it."""
    return textwrap.fill(
        plain(text),
        WIDTH,
        initial_indent=before,
        subsequent_indent=" " * len(before),
        break_on_hyphens=False,
        break_long_words=False,
    )


def _summary(advice: Advice) -> str:
    counts = ", ".join(f"{advice.count(level)} {level}" for level in Level)
    verdict = (
        "the shutdown budget is broken"
        if advice.count(Level.BROKEN)
        else "nothing is broken as far as is known; what is not known is in the notes"
        if advice.count(Level.NOTE)
        else "nothing is broken"
    )
    return f"{counts}: {verdict}"
