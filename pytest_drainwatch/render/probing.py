"""What new connections met, and a pod's windows, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from pytest_drainwatch.core.document import Integrity, TrialReport
from pytest_drainwatch.core.probing.document import (
    FAILED,
    AnsweredBy,
    AttemptRun,
    NewConnections,
    Rate,
)
from pytest_drainwatch.core.windows.document import PodWindows, Span
from pytest_drainwatch.render.text import NOT_MEASURED, duration, table

NOT_TRIED = "not tried"
RUNS_SHOWN = 8
IN_A_LINE = 2  # pods that answered


def cell(found: Sequence[NewConnections]) -> str:
    """New connections in a few words: ``0/2,912 failed (<0.11 %)``, or when those were begun."""
    return "; ".join(_named(prober) for prober in found) or NOT_TRIED


def percent(rate: Rate | None) -> str:
    """The bounds of a rate, rounded outward: ``below 0.19 %``, ``0.26-0.81 %`` with a dash."""
    if rate is None:
        return NOT_MEASURED
    low, high = _percent(rate.low, ROUND_FLOOR), _percent(rate.high, ROUND_CEILING)
    if rate.low == 0:
        return f"below {high} %"
    return f"above {low} %" if rate.high == 1 else f"{low}–{high} %"


def marks(trial: TrialReport) -> Iterator[str]:
    """What must be known before any number is read."""
    if trial.integrity is Integrity.FOREIGN_RESPONDER:
        yield "  ! foreign responder: somebody who is not of the workload answered"
    for reason in trial.degraded:
        yield f"  ! degraded: {reason}"


def new_connections(found: Sequence[NewConnections]) -> list[str]:
    """The part NEW CONNECTIONS, with its empty last line; nothing if none were tried."""
    if not found:
        return []
    rows = [("PROBER", "EVERY", "ATTEMPTS", "FAILED", "RATE (95 %)", "BEGUN AT", "BY")]
    rows += [
        (
            prober.prober,
            "-" if prober.interval_ns is None else duration((prober.interval_ns,) * 2),
            f"{prober.attempts:,}",
            f"{prober.failed:,}",
            percent(prober.failure_rate),
            _failing(prober) or "-",
            ", ".join(f"{n:,} {name}" for name, n in prober.results.items() if name in FAILED),
        )
        for prober in found
    ]
    return [
        "NEW CONNECTIONS",
        *table(rows, right=(2, 3)),
        *(f"  {line}" for prober in found for line in _about(prober)),
        "",
    ]


def windows(found: Sequence[PodWindows]) -> list[str]:
    """The part WINDOWS, with its empty last line; nothing for an older report."""
    if not found:
        return []
    rows = [("POD", "WINDOW", "OPENS", "CLOSES", "LASTS", "")]
    for pod in found:
        named = [("advertised", pod.advertised), ("ready-routable", pod.ready_routable)]
        named += [("fallback-routable", span) for span in _fallbacks(pod)]
        named.append(("dead-endpoint", pod.dead_endpoint))
        rows += [
            (
                (pod.pod or pod.pod_uid) if n == 0 else "",
                name,
                _at(span.opens_ns),
                _at(span.closes_ns),
                _at(span.lasts_ns),
                span.note or "",
            )
            for n, (name, span) in enumerate(named)
        ]
        families = [f"{name} {duration(at)}" for name, at in pod.removed_by_family_ns.items()]
        if len(families) > 1:
            rows.append(("", "removed", "", ", ".join(families), "", ""))
    notes = dict.fromkeys(note for pod in found for note in pod.notes)
    return ["WINDOWS", *table(rows, width=160), *(f"  {note}" for note in notes), ""]


def _named(prober: NewConnections) -> str:
    proto = "" if prober.proto == "tcp" else f"{prober.proto} "
    if not prober.attempts:
        return f"{proto}{NOT_MEASURED}"
    counts = f"{proto}{prober.failed:,}/{prober.attempts:,} failed"
    if not prober.failed:
        rate = prober.failure_rate
        bound = NOT_MEASURED if rate is None else f"<{_percent(rate.high, ROUND_CEILING)} %"
        return f"{counts} ({bound})"
    return f"{counts}, {_failing(prober)}"


def _failing(prober: NewConnections) -> str | None:
    """From when to when attempts were begun that failed."""
    failing = prober.observed_failing
    return None if failing is None else duration(failing.begun_ns)


def _percent(rate: float, rounding: str) -> str:
    """Two significant digits of it, in percent."""
    exact = Decimal(repr(rate)) * 100
    return f"{Context(prec=2, rounding=rounding).plus(exact):f}"


def _about(prober: NewConnections) -> Iterator[str]:
    name = prober.prober
    answers = [_answers(found) for found in prober.answered_by]
    for line in answers if len(answers) > IN_A_LINE else [", ".join(answers)] * bool(answers):
        yield f"{name}: answered by {line}"
    failing = prober.observed_failing
    if failing is not None:
        yield (
            f"{name}: {failing.failures:,} of {failing.attempts:,} attempts failed from the first "
            f"that did to the last, within {duration(failing.lasts_ns)}"
        )
    if len(prober.runs) > 1:
        yield f"{name}: {_runs(prober.runs, prober.runs_left_out)}"
    apart = [
        f"{number:,} {what}"
        for what, number in prober.results.items()
        if what not in FAILED and what != "answered"
    ]
    if prober.missed_slots:
        apart.append(f"{prober.missed_slots:,} slot(s) missed")
    if apart:
        yield f"{name}: not among the attempts: {', '.join(apart)}"
    for note in prober.notes:
        yield f"{name}: {note}"


def _answers(found: AnsweredBy) -> str:
    """``pod-1 340 (3 terminating, 0–2 after ready:false)``."""
    name = f"{found.pod or found.pod_uid} {found.attempts:,}"
    said = [
        f"{_range(count)} {what}"
        for count, what in (
            (found.by_terminating, "terminating"),
            (found.after_unready, "after ready:false"),
        )
        if count is not None
    ]
    return f"{name} ({', '.join(said)})" if said else name


def _range(count: tuple[int, int]) -> str:
    return f"{count[0]:,}" if count[0] == count[1] else f"{count[0]:,}–{count[1]:,}"


def _runs(runs: Sequence[AttemptRun], left_out: int) -> str:
    """The runs in order; of many the first and the last ones."""
    texts = [f"{run.count:,} {run.result}" for run in runs]
    hidden = left_out + max(0, len(texts) - RUNS_SHOWN)
    if hidden:
        half = RUNS_SHOWN // 2
        texts = [*texts[:half], f"… {hidden:,} more …", *texts[-half:]]
    return ", then ".join(texts)


def _fallbacks(pod: PodWindows) -> tuple[Span, ...]:
    if pod.fallback_routable is None:
        return (Span(opens_ns=None, note="not known"),)
    return pod.fallback_routable or (Span(opens_ns=None, note="never"),)


def _at(at: tuple[int, int] | None) -> str:
    return "-" if at is None else duration(at)
