"""What became of HTTP requests, as text."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.http.document import (
    FailingRequests,
    KindRequests,
    NotServed,
    OldConnections,
    Requests,
)
from pytest_drainwatch.core.http.fate import FAILED, SERVED
from pytest_drainwatch.render.probing import percent
from pytest_drainwatch.render.text import NOT_MEASURED, duration, plain, table

NOT_SERVED_SHOWN = 12
FAILED_IN_SHORT = 3
_WHOSE = {Role.TARGET: "of target pods", Role.BYSTANDER: "of other pods", None: "whose is unknown"}


def cell(found: Requests) -> str:
    """HTTP requests in a few words, kind by kind: ``keepalive 3/1,210 failed``."""
    return "; ".join(_short(kind) for kind in found.kinds)


def met(found: Requests) -> Iterator[str]:
    """What requests met, a line for each kind, and the first few that failed."""
    for kind in found.kinds:
        failed = [f"{number:,} {fate}" for fate, number in kind.fates.items() if fate in FAILED]
        yield _short(kind) + (
            f", first at {duration(kind.failing.first_ns)}, last at "
            f"{duration(kind.failing.last_ns)}: {', '.join(failed)}"
            if kind.failing is not None
            else ""
        )
    first = [each for each in found.not_served if each.fate in FAILED][:FAILED_IN_SHORT]
    yield from (plain(_one(each)) for each in first)


def requests(found: Requests | None) -> list[str]:
    """The part HTTP REQUESTS, with its empty last line; nothing if none were made."""
    if found is None:
        return []
    rows = [("LANES", "REQUESTS", "FAILED", "RATE (95 %)", "FAILED ONES BEGUN", "FATES")]
    rows += [
        (
            f"{kind.lanes} {kind.kind}",
            f"{kind.attempts:,}",
            f"{kind.failed:,}",
            percent(kind.failure_rate),
            duration(kind.failing.begun_ns) if kind.failing else "-",
            _fates(kind) or "-",
        )
        for kind in found.kinds
    ]
    return [
        f"HTTP REQUESTS  ({found.method}, expected status {found.expect_status})",
        *table(rows, right=(1, 2)),
        *(f"  {kind.kind}: {plain(line)}" for kind in found.kinds for line in _about(kind)),
        *(f"  {plain(line)}" for line in connections(found)),
        *(f"  {plain(line)}" for line in _unserved(found)),
        *(f"  {plain(note)}" for note in found.notes),
        "",
    ]


def _short(kind: KindRequests) -> str:
    if not kind.attempts:
        return f"{kind.kind} {NOT_MEASURED}"
    counts = f"{kind.kind} {kind.failed:,}/{kind.attempts:,} failed"
    return counts if kind.failed else f"{counts} ({percent(kind.failure_rate)})"


def _fates(kind: KindRequests) -> str:
    return ", ".join(f"{number:,} {fate}" for fate, number in kind.fates.items())


def _about(kind: KindRequests) -> Iterator[str]:
    if kind.answered_by:
        who = ", ".join(
            f"{one.by} {one.requests:,}"
            + (f" (the last at {duration(one.last_ns)})" if one.role is Role.TARGET else "")
            for one in kind.answered_by
        )
        yield f"served by {who}"
    if kind.failing is not None:
        yield from _window(kind.failing)
        yield (
            f"{kind.retry_safe:,} of {kind.failed:,} failed ones may be retried unasked, "
            f"{kind.not_retry_safe:,} may not"
        )
    if kind.redialled:
        yield (
            f"{kind.redialled:,} found their pooled connection closed before a byte was written, "
            "and dialled again"
        )
    if len(kind.statuses) > 1 or (kind.statuses and not kind.served):
        yield f"statuses: {', '.join(f'{n:,} x {status}' for status, n in kind.statuses.items())}"
    yield from kind.notes


def _window(failing: FailingRequests) -> Iterator[str]:
    before = (
        f"the last served before was over at {duration(failing.served_before_ns)}"
        if failing.served_before_ns
        else "none was served before"
    )
    after = (
        f"the first served after at {duration(failing.recovered_ns)}"
        if failing.recovered_ns
        else "none was served after"
    )
    yield (
        f"first failure at {duration(failing.first_ns)}, last at {duration(failing.last_ns)}: "
        f"{failing.failures:,} of {failing.requests:,} failed; {before}, {after}"
    )


def connections(found: Requests) -> Iterator[str]:
    """What became of pooled connections that were open at the trigger, a line for each role."""
    for old in found.old_connections:
        ends = ", ".join(f"{number:,} {outcome}" for outcome, number in old.outcomes.items())
        yield (
            f"{old.connections:,} pooled connection(s) open at the trigger, {_WHOSE[old.role]}: "
            f"{ends}; {_after(old)}"
        )


def _after(old: OldConnections) -> str:
    gone = (
        "some were open to the end"
        if old.gone_ns is None
        else (f"the last was gone at {duration(old.gone_ns)}")
    )
    if not old.served_after:
        return f"no request was served on them after the trigger; {gone}"
    return (
        f"{old.served_after:,} request(s) served on them after the trigger, the last at "
        f"{duration(old.last_served_ns)}; {gone}"
    )


def _unserved(found: Requests) -> Iterator[str]:
    shown = [one for one in found.not_served if one.fate in FAILED or one.fate in SERVED]
    for one in shown[:NOT_SERVED_SHOWN]:
        yield _one(one)
    more = len(shown) - NOT_SERVED_SHOWN
    if more > 0 or found.not_served_left_out:
        rest = f" and {found.not_served_left_out:,} that the report leaves out"
        yield f"… {max(0, more):,} more{rest if found.not_served_left_out else ''}"


def _one(one: NotServed) -> str:
    count = f"{one.count:,} x " if one.count > 1 else ""
    who = "then served by" if one.fate in SERVED else "of"
    facts = [fact for fact in (one.errno, one.by and f"{who} {one.by}") if fact]
    if one.status is not None and one.fate not in SERVED:
        facts.append(f"status {one.status}")
    about = f" ({', '.join(facts)})" if facts else ""
    return f"{one.lane}: {count}{one.fate}{about} at {duration(one.at_ns)}"
