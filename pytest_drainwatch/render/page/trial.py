"""A report -> one trial of the page."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_drainwatch.core.document import Report, TrialReport
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Bounds
from pytest_drainwatch.render import http, probing, terminal
from pytest_drainwatch.render.instrument import lines
from pytest_drainwatch.render.overload import stalls_while_measuring
from pytest_drainwatch.render.page.data import At, Lane, Trial
from pytest_drainwatch.render.page.done import asked
from pytest_drainwatch.render.page.failing import attempts, named, stretches_left_out
from pytest_drainwatch.render.page.flows import flow
from pytest_drainwatch.render.page.hurt import hurt
from pytest_drainwatch.render.page.lanes import MOST_STALLS, lanes, stalls_left_out
from pytest_drainwatch.render.page.moments import at, recorded
from pytest_drainwatch.render.page.pods import Pods, pods_of
from pytest_drainwatch.render.page.says import says

# With more flows than this, in a trial or on a page, it carries no single steps of theirs: it
# would be too big to mail.
MANY_FLOWS, MANY_ON_A_PAGE = 500, 1_500
BEFORE_NS = 300 * NS_PER_MS  # of the time before the trigger is shown at first, at least


def trial(
    report: Report,
    *,
    id: str | None = None,
    outcome: str | None = None,
    path: str | None = None,
    steps: bool = True,
) -> Trial:
    """One trial; ``path`` leads from the page to its report.json. ``steps``: those of flows
    too, unless there are many.
    """
    told, pods = report.trial, pods_of(report.trial)
    many = len(told.flows) > MANY_FLOWS or not steps
    rows = lanes(told, pods)
    whole = recorded(told)
    return Trial(
        id=told.id if id is None else id,
        scenario=told.scenario,
        repeat=told.repeat,
        test=told.test,
        outcome=outcome,
        asked=asked(told),
        says=says(told, pods),
        hurt=hurt(told),
        facts=list(_facts(report, pods)),
        figures=terminal.figures(told),
        marks=[*terminal.simulated(report), *_marks(told)],
        simulated=report.simulated,
        notes=[pods.in_words(note) for note in _notes(report)],
        span=_span(whole),
        recorded=_all(whole, rows),
        lanes=rows,
        attempts=attempts(told.new_connections, told.requests, whole[1]),
        responders=list(pods.responders),
        flows=[
            flow(each, pods, rows=not many)
            for proto in Proto
            for each in told.flows
            if each.proto is proto
        ],
        left_out=list(_left_out(told, many=many)),
        report=path,
    )


def _facts(report: Report, pods: Pods) -> Iterator[tuple[str, str]]:
    """What was measured where, by which build."""
    where, told = report.environment, report.trial
    for uid, label in pods.labels.items():
        role = pods.roles[uid]
        what = f" ({role})" if role else ""
        yield label, f"{pods.names.get(uid, 'name not known')}{what}, uid {uid}"
    for name, value in (
        ("Kubernetes", where.kubernetes_version),
        ("cluster", where.provider),
        ("nodes", where.node_count),
        ("kube-proxy", where.kube_proxy_mode),
        ("kube-proxy minSyncPeriod", _ms(where.min_sync_period_ms)),
        ("network", where.cni),
        ("measured at", where.wall_clock_start),
        ("machine", ", ".join(str(each) for each in (where.os, where.arch) if each)),
        ("CPUs", where.cpus),
        ("probe image", where.probe_image),
        ("drainwatch", f"{report.drainwatch_version} ({report.git_commit})"),
        ("trigger", told.trigger.verb),
        ("changed in the cluster", "; ".join(told.deviations)),
    ):
        if value not in (None, ""):
            yield name, str(value)


def _ms(value: int | None) -> str | None:
    return None if value is None else f"{value:,} ms"


def _marks(told: TrialReport) -> Iterator[str]:
    """What must be known before any number is believed."""
    yield from told.flags
    yield from (mark.strip().removeprefix("! ") for mark in probing.marks(told))
    settle = told.config.get("settle_seconds")
    settle_ns = round(settle * NS_PER_S) if isinstance(settle, int | float) else 0
    number, worst_ms = stalls_while_measuring(told, settle_ns)
    if number:
        yield (
            f"our own machine stalled {'once' if number == 1 else f'{number:,} times'} while it "
            f"measured, for {worst_ms:,} ms at most: what falls into that is known less precisely"
        )
    for gap in told.gaps:
        yield f"the watch of {gap.subject} had a gap: what changed in it is known less precisely"


def _notes(report: Report) -> Iterator[str]:
    yield from report.trial.notes
    yield from report.environment.warnings
    yield report.trial.clock_note
    yield from lines(report.trial.sending, report.trial.stalls)
    if report.trial.requests is not None:
        yield from http.connections(report.trial.requests)
        yield from report.trial.requests.notes


def _left_out(told: TrialReport, *, many: bool) -> Iterator[str]:
    if many and told.flows:
        yield (
            f"the single steps of {len(told.flows):,} flows (of up to {MANY_FLOWS:,} in a trial "
            f"and {MANY_ON_A_PAGE:,} on a page they would be here): they stand in report.json"
        )
    for prober in told.new_connections:
        if prober.runs_left_out:
            yield f"{named(prober, told.new_connections)}: {stretches_left_out(prober)}"
    stalls = stalls_left_out(told)
    if stalls:
        yield f"{stalls:,} short stalls of our own machine beside the {MOST_STALLS} longest"


def _span(whole: Bounds) -> At:
    """The trigger to the end, with a little before."""
    before_ns = max(BEFORE_NS, whole[1] // 20)
    return at((max(whole[0], -before_ns), whole[1]))


def _all(whole: Bounds, rows: list[Lane]) -> At:
    """The same with every lane's own: a grace period can reach beyond the recording."""
    lo, hi = at(whole)
    for lane in rows:
        for band in lane["bands"]:
            for edge in (band["opens"], band["closes"]):
                if edge is not None:
                    lo, hi = min(lo, edge[0]), max(hi, edge[1])
    return lo, hi
