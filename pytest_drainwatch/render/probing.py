"""What new connections met, and a pod's windows, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from itertools import groupby

from pytest_drainwatch.core.document import Integrity, TrialReport
from pytest_drainwatch.core.probing.document import (
    FAILED,
    UNKNOWN,
    AnsweredBy,
    AttemptRun,
    NewConnections,
    Rate,
)
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.windows.document import BalancerWindow, Met, PodWindows, Span
from pytest_drainwatch.render.text import NOT_MEASURED, duration, table

NOT_TRIED = "not tried"
# Of these no note tells how many there were of each.
_NO_RESULT = frozenset({Result.CLIENT_LIMIT, *UNKNOWN})
STRETCHES_SHOWN = 6
IN_A_LINE = 2  # pods that answered
PODS_IN_SHORT = 4
BREAKS_SHOWN = 2


def cell(found: Sequence[NewConnections]) -> str:
    """New connections in a few words: ``0/2,912 failed (<0.11 %)``, or when those were begun."""
    return "; ".join(_at_node(prober, found) + _named(prober) for prober in found) or NOT_TRIED


def met(found: Sequence[NewConnections]) -> Iterator[str]:
    """What new connections met, in a line or two for each prober."""
    for prober in found:
        named, how = _at_node(prober, found) + _named(prober), _how(prober)
        yield f"{named}: {how}" if how else named
        answers = [f"{one.pod or one.pod_uid} {one.attempts:,}" for one in prober.answered_by]
        if answers:
            more = len(answers) - PODS_IN_SHORT
            rest = [f"{more} more pod(s)"] if more > 0 else []
            yield f"answered by {', '.join([*answers[:PODS_IN_SHORT], *rest])}"
    if not found:
        yield NOT_TRIED


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
    rows = [("PROBER", "EVERY", "ATTEMPTS", "FAILED", "RATE (95 %)", "FAILED ONES BEGUN", "HOW")]
    rows += [
        (
            f"{prober.prober} {_at_node(prober, found)}".rstrip(": "),
            _every(prober) or "-",
            f"{prober.attempts:,}",
            f"{prober.failed:,}",
            percent(prober.failure_rate),
            _failing(prober) or "-",
            _how(prober) or "-",
        )
        for prober in found
    ]
    return [
        "NEW CONNECTIONS",
        *table(rows, right=(2, 3)),
        *(
            f"  {prober.prober}: {line}" if len(found) > 1 else f"  {line}"
            for prober in found
            for line in _about(prober)
        ),
        "",
    ]


def windows(found: Sequence[PodWindows]) -> list[str]:
    """The part WINDOWS, with its empty last line; nothing for an older report.

    What new connections met is a column where any were tried.
    """
    if not found:
        return []
    named = {pod.pod_uid: _spans(pod) for pod in found}
    tried = any(span.met for spans in named.values() for _, span in spans)
    rows = [("POD", "WINDOW", "OPENS", "CLOSES", "LASTS", *["NEW CONNECTIONS"] * tried, "")]
    for pod in found:
        rows += [
            (
                (pod.pod or pod.pod_uid) if n == 0 else "",
                name,
                _at(span.opens_ns),
                _at(span.closes_ns),
                _at(span.lasts_ns),
                *[_met(span.met)] * tried,
                _remark(span),
            )
            for n, (name, span) in enumerate(named[pod.pod_uid])
        ]
        rows += [
            ("", what, "", when, "", *[""] * tried, remark)
            for what, when, remark in _of_the_balancer(pod.load_balancer)
        ]
        families = [f"{name} {duration(at)}" for name, at in pod.removed_by_family_ns.items()]
        if len(families) > 1:
            rows.append(("", "removed", "", ", ".join(families), "", *[""] * tried, ""))
    notes = dict.fromkeys(note for pod in found for note in pod.notes)
    return ["WINDOWS", *table(rows, width=160), *(f"  {note}" for note in notes), ""]


def _at_node(prober: NewConnections, found: Sequence[NewConnections]) -> str:
    """Where it came in, if its protocol was tried at several nodes."""
    several = sum(other.proto == prober.proto for other in found) > 1
    return f"at {prober.node}: " if several and prober.node else ""


def _named(prober: NewConnections) -> str:
    proto = "" if prober.proto == "tcp" else f"{prober.proto} "
    if not prober.attempts:
        return f"{proto}{NOT_MEASURED}"
    counts = f"{proto}{prober.failed:,}/{prober.attempts:,} failed"
    if not prober.failed:
        return f"{counts} ({_bound(prober.failure_rate)})"
    return f"{counts}, {_failing(prober)}"


def _every(prober: NewConnections) -> str:
    """How far apart attempts were: ``5 ms``, or ``5 ms, 50 ms`` where the plan has both."""
    apart = [part.interval_ns for part in prober.by_interval] or [prober.interval_ns]
    return ", ".join(duration((ns, ns)) for ns in apart if ns is not None)


def _failing(prober: NewConnections) -> str | None:
    """From when to when attempts were begun that failed."""
    failing = prober.observed_failing
    return None if failing is None else duration(failing.begun_ns)


def _bound(rate: Rate | None) -> str:
    """How large a rate can be of which no failure was seen."""
    return NOT_MEASURED if rate is None else f"<{_percent(rate.high, ROUND_CEILING)} %"


def _percent(rate: float, rounding: str) -> str:
    """Two significant digits of it, in percent."""
    exact = Decimal(repr(rate)) * 100
    return f"{Context(prec=2, rounding=rounding).plus(exact):f}"


def _how(prober: NewConnections) -> str:
    """In which ways attempts failed: ``34 refused, 1,037 timeout``."""
    return ", ".join(f"{n:,} {name}" for name, n in prober.results.items() if name in FAILED)


def _about(prober: NewConnections) -> Iterator[str]:
    answers = [_answers(found) for found in prober.answered_by]
    for line in answers if len(answers) > IN_A_LINE else [", ".join(answers)] * bool(answers):
        yield f"answered by {line}"
    failing = prober.observed_failing
    if failing is not None and failing.attempts > 1:
        whole = failing.failures == failing.attempts
        those = "all" if whole else f"{failing.failures:,} of"
        yield (
            f"from the first that failed to the last, for {duration(failing.lasts_ns)}: "
            f"{those} {failing.attempts:,} failed"
        )
    stretches = _stretches(prober)
    if len(stretches) > 1:
        yield f"in order: {'; '.join(stretches)}"
    apart = [f"{number:,} {what}" for what, number in prober.results.items() if what in _NO_RESULT]
    if prober.missed_slots:
        apart.append(f"{prober.missed_slots:,} slot(s) missed{_missed_where(prober)}")
    if apart:
        yield f"not among the attempts: {', '.join(apart)}"
    yield from prober.notes


def _missed_where(prober: NewConnections) -> str:
    """`` (120 of those every 5 ms)``; nothing where the recording does not tell."""
    parts = [
        f"{part.missed_slots:,} of those every {duration((part.interval_ns, part.interval_ns))}"
        for part in prober.by_interval
        if part.missed_slots and part.interval_ns is not None
    ]
    return f" ({', '.join(parts)})" if parts and len(prober.by_interval) > 1 else ""


def _answers(found: AnsweredBy) -> str:
    """``pod-1 340 (3 terminating, 0–2 after ready:false)``."""
    name = f"{found.pod or found.pod_uid} {found.attempts:,}"
    said = [
        f"{_range(count)} {what}"
        for count, what in (
            (found.by_terminating, "while terminating"),
            (found.after_unready, "after ready:false"),
        )
        if count is not None
    ]
    return f"{name} ({', '.join(said)})" if said else name


def _range(count: tuple[int, int]) -> str:
    return f"{count[0]:,}" if count[0] == count[1] else f"{count[0]:,}–{count[1]:,}"


def _stretches(prober: NewConnections) -> list[str]:
    """Attempts in order, those that failed in whatever way as one; of many both ends."""
    runs, left_out = prober.runs, prober.runs_left_out
    middle = len(runs) // 2  # where the report leaves runs out
    parts = [runs[:middle], runs[middle:]] if left_out else [runs]
    texts = [list(_merged(part)) for part in parts]
    shown = [text for part in texts for text in part]
    if len(shown) <= STRETCHES_SHOWN and not left_out:
        return shown
    half = STRETCHES_SHOWN // 2
    head, tail = texts[0][:half], texts[-1][-half:]
    between = f"{len(shown) - len(head) - len(tail):,} more"
    return [*head, f"… {'more than the report keeps' if left_out else between} …", *tail]


def _merged(runs: Sequence[AttemptRun]) -> Iterator[str]:
    """``1,627 answered (-8.13 to 5.11 s)``; what neither failed nor was answered is apart."""
    judged = (run for run in runs if run.result in FAILED or run.result == Result.ANSWERED)
    for failed, same in groupby(judged, key=lambda run: run.result in FAILED):
        found = list(same)
        kinds = list(dict.fromkeys(run.result for run in found))
        within = (min(run.at_ns[0] for run in found), max(run.at_ns[1] for run in found))
        what = f"failed: {', '.join(kinds)}" if failed and len(kinds) > 1 else kinds[0]
        yield f"{sum(run.count for run in found):,} {what} ({duration(within)})"


def _spans(pod: PodWindows) -> list[tuple[str, Span]]:
    """Its windows with their names."""
    if pod.fallback_routable is None:
        fallbacks: tuple[Span, ...] = (Span(opens_ns=None, note="not known"),)
    else:
        fallbacks = pod.fallback_routable or (Span(opens_ns=None, note="never"),)
    return [
        ("advertised", pod.advertised),
        ("ready-routable", pod.ready_routable),
        *(("fallback-routable", span) for span in fallbacks),
        ("dead-endpoint", pod.dead_endpoint),
        *([("load-balancer", pod.load_balancer.sends)] if pod.load_balancer else []),
    ]


def _met(found: Met | None) -> str:
    """Those surely begun in a window: ``0/44 failed (<6.6 %)``, ``12/44 failed``.

    Where none surely was, how many there may have been: ``0–11 tried, 0 failed``.
    """
    if found is None:
        return "-"
    if not found.attempts:
        attempts, failed = found.at_most
        return f"{_range((0, attempts))} tried, {_range((0, failed))} failed"
    counts = f"{found.failed:,}/{found.attempts:,} failed"
    return counts if found.failed else f"{counts} ({_bound(found.rate)})"


def _of_the_balancer(found: BalancerWindow | None) -> Iterator[tuple[str, str, str]]:
    """What else is known of the load balancer and the pod: what, when, and a remark."""
    if found is None:
        return
    if found.last_answered_ns is not None:
        yield "last answered", duration(found.last_answered_ns), "the last new one, by this pod"
    if found.let_go_ns is not None:
        yield "let go", duration(found.let_go_ns), f"{found.closed} connection(s) closed"
    if found.again_ns is not None:
        yield "up again", duration(found.again_ns), ""


def _remark(span: Span) -> str:
    """What a window's times do not say; a break is seen when a frame shows it."""
    seen = [
        f"not from {duration((one.opens_ns[1],) * 2)} to {duration((one.closes_ns[1],) * 2)} (seen)"
        for one in span.breaks
    ]
    more = len(seen) - BREAKS_SHOWN
    parts = [*seen[:BREAKS_SHOWN], *([f"{more} more break(s)"] if more > 0 else [])]
    return "; ".join([*parts, *([span.note] if span.note else [])])


def _at(at: tuple[int, int] | None) -> str:
    return "-" if at is None else duration(at)
