"""New connections and HTTP requests: what attempts in a row met, and how many a second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_drainwatch.core.http.document import Requests
from pytest_drainwatch.core.probing.document import FAILED, NewConnections
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.render.page import failing
from pytest_drainwatch.render.page.data import At, Attempts
from pytest_drainwatch.render.page.moments import at
from pytest_drainwatch.render.trace.picture import COLOURS, Args, Count, Lane, Span, seen

US_PER_S = 1_000_000
ANSWERED, FAILS, UNKNOWN = "answered", "failed", "not known"


def lanes(found: Sequence[Attempts]) -> Iterator[Lane]:
    """Attempts of one fate in a row as a span."""
    for each in found:
        spans = []
        for lo, hi, result, number in each["runs"]:
            word, tone = each["results"][result]
            spans.append(
                Span(
                    name=f"{number:,} {word}",
                    kind=f"attempts.{each['lane']}",
                    at_us=seen((lo, hi)),
                    args={"result": word, "attempts": number},
                    colour=COLOURS.get(tone),
                )
            )
        yield Lane(name=f"Attempts: {each['name']}", spans=tuple(spans))


def rates(found: Sequence[NewConnections]) -> Iterator[Count]:
    """How many new connections a second were begun, by what they met.

    A run lasts until the next one begins. Where the report leaves runs out, what was planned
    there met nobody knows what.
    """
    for prober in found:
        name = f"{failing.named(prober, found)} a second"
        runs = [(*at(run.at_ns), run.result, run.count) for run in prober.runs]
        middle = len(runs) // 2 if prober.runs_left_out else None
        for number, (lo, hi, result, count) in enumerate(runs):
            cut = number + 1 == middle
            after = runs[number + 1 : number + 2]
            lasts_us = after[0][0] - lo if after and not cut else (hi - lo if count > 1 else 0)
            rate = round(count * US_PER_S / lasts_us, 3) if lasts_us > 0 else _planned(prober)
            yield Count(name=name, at_us=lo, values=_values(_kind(result), rate))
            if cut:
                yield Count(name=name, at_us=hi, values=_values(UNKNOWN, _planned(prober)))
        if runs:
            yield Count(name=name, at_us=max(run[1] for run in runs), values=_values(ANSWERED, 0))


def _kind(result: str) -> str:
    return ANSWERED if result == Result.ANSWERED else FAILS if result in FAILED else UNKNOWN


def _planned(prober: NewConnections) -> float:
    """Of one attempt alone: how many the plan had then, where it was dense."""
    interval_ns = prober.interval_ns
    return round(1e9 / interval_ns, 3) if interval_ns else 0.0


def _values(kind: str, rate: float) -> dict[str, float]:
    return {each: rate if each == kind else 0.0 for each in (FAILS, UNKNOWN, ANSWERED)}


def pooled(found: Requests | None) -> Iterator[Lane]:
    """Each lane of HTTP requests: the pooled connection that it had at t = 0, and what failed."""
    if found is None:
        return
    spans: dict[str, list[Span]] = {}
    for each in found.connections:
        opened = at((each.opened_ns, each.opened_ns))[0]
        args = {
            "how": str(each.how),
            "by": each.by,
            "pod_uid": each.pod_uid,
            "known_by": None if each.known_by is None else str(each.known_by),
            "served_after": each.served_after,
        }
        ended = None if each.ended_ns is None else seen(at(each.ended_ns))
        if ended is not None and opened < ended[0]:
            spans.setdefault(each.lane, []).append(
                _connection(f"connection {each.connection}", (opened, ended[0]), args)
            )
        if ended is not None:
            name = f"{each.outcome} by {each.how}"
            spans.setdefault(each.lane, []).append(_connection(name, ended, args))
    for unserved in found.not_served:
        spans.setdefault(unserved.lane, []).append(
            Span(
                name=f"{unserved.count:,} {unserved.fate}",
                kind="http.requests",
                at_us=seen(at(unserved.at_ns)),
                args={
                    "status": unserved.status,
                    "errno": unserved.errno,
                    "by": unserved.by,
                    "retry_safe": _word(unserved.retry_safe),
                },
            )
        )
    for lane in sorted(spans):
        yield Lane(name=f"HTTP lane {lane}", spans=tuple(spans[lane]))


def _connection(name: str, at_us: At, args: Args) -> Span:
    return Span(name=name, kind="http.connections", at_us=at_us, args=args)


def _word(known: bool | None) -> str | None:
    return None if known is None else "yes" if known else "no"
