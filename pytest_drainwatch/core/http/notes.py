"""What a report has to say in words of HTTP requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_drainwatch.core.flow.classify import Outcome, Role
from pytest_drainwatch.core.http.document import ConnectionEnd, KindRequests, Requests
from pytest_drainwatch.core.http.ending import LaneKind, Over, Pool
from pytest_drainwatch.core.http.fate import GONE, OURS, SERVED, Fate
from pytest_drainwatch.core.http.pieces import Around, Piece
from pytest_drainwatch.core.http.recorded import Recorded, Run
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.probing.binomial import MISSED

IDLE_ENDS_TOLD = 2  # so many idle connections that end before the trigger are a server's habit


def degraded(found: Requests | None) -> Iterator[str]:
    """In what our own machine, or the path, fell short of what was asked of it."""
    for kind in found.kinds if found is not None else ():
        limited = sum(each.get(Fate.CLIENT_LIMIT, 0) for each in (kind.fates, kind.fates_before))
        if limited:
            yield (
                f"{kind.kind}: {limited:,} request(s) met a limit of our own machine, or were too "
                "many of one client under way at once (client-limit): they are in no rate and no "
                "window"
            )
        if kind.failed_before:
            yield (
                f"{kind.kind}: {kind.failed_before:,} request(s) failed before the trigger: what "
                "fails since may not be its doing"
            )


def about(found: KindRequests, since: Sequence[Piece]) -> Iterator[str]:
    """What must be known of one kind of lanes before its numbers are read."""
    if found.planned is not None and (found.missed_slots or found.fates.get(Fate.NOT_SENT)):
        yield (
            f"{found.planned:,} requests were planned and {found.requests:,} made: "
            f"{found.missed_slots or 0:,} slot(s) were missed by the client, "
            f"{found.fates.get(Fate.NOT_SENT, 0):,} were not due yet when it stopped"
        )
    if found.failed_before:
        yield f"{found.failed_before:,} request(s) failed before the trigger: it was not clean"
    if found.not_judged:
        yield (
            f"{found.not_judged:,} request(s) are not judged: the client could not look, or "
            "stopped before they had ended"
        )
    unframed = sum(p.count for p in since if p.run.by_fin and p.fate in SERVED)
    if unframed:
        yield (
            f"{unframed:,} response(s) had no length and ended with their connection: one that was "
            "cut by a FIN looks the same, and counts as served"
        )
    if not found.attempts:
        yield "no request since the trigger was served or failed: nothing was measured"
    elif not found.failed:
        yield (
            f"no request of {found.attempts:,} failed: that bounds the rate, and is no proof of "
            "none"
        )
    if found.kind is LaneKind.IN_FLIGHT:
        early = found.attempts_before
        if early:
            yield (
                f"{early} request(s) meant to be in flight at the trigger were over before it: "
                "is in_flight_ns how long their answer takes?"
            )
    pooled = any(_had_idle(piece.run) for piece in since)
    if found.kind is LaneKind.KEEPALIVE and found.attempts and not pooled:
        yield (
            "no request found a pooled connection: the server keeps none open, so each of them "
            "was a new one"
        )
    if found.kind is LaneKind.IDLE:
        bare = sum(p.count for p in since if not _had_idle(p.run) and p.fate not in OURS)
        if bare:
            yield (
                f"{bare} idle lane(s) had no pooled connection when their request was due: the "
                "server does not keep connections open, or closed them before the trigger"
            )


def _had_idle(run: Run) -> bool:
    return run.pool in GONE or run.pool is Pool.REUSED


def about_all(
    told: Recorded, every: Sequence[Piece], ends: Sequence[ConnectionEnd], around: Around
) -> Iterator[str]:
    """The same of all of them."""
    if told.lost is None:
        yield "the HTTP client's summary is missing: how many requests were made is not known"
    elif told.lost:
        yield f"{told.lost:,} request(s) are missing from the recording: they may have failed"
    if told.unreadable:
        yield f"{told.unreadable} line(s) about HTTP could not be read"
    if not any(piece.since for piece in every):
        yield "no HTTP request was under way at the trigger, or sent since"
    yield from _keep_alive_timeout(told, around)
    yield from _drained_for_new_only(every, ends, around.t0_ns)
    proxied = sum(one.responders > 1 for one in ends)
    if proxied:
        yield (
            f"{proxied} pooled connection(s) were answered under more than one identity: if "
            "those are pods a proxy is in the way, and whose they were at the trigger is not known"
        )
    elif ends and all(one.role is None for one in ends) and not around.control:
        yield (
            "whose the connections were is not known: no identity header named a pod, there were "
            "several endpoints and no conntrack to look into; roles are null"
        )


def _keep_alive_timeout(told: Recorded, around: Around) -> Iterator[str]:
    """A server that closes idle connections does so whether or not its pod is terminated."""
    anyway = [
        one
        for one in told.connections
        if (one.at.hi < around.t0_ns or around.role_of(one.responder) is Role.BYSTANDER)
        and one.over in (Over.FIN, Over.RST)
        and not one.outstanding
        and not one.said_close
        and one.answered
    ]
    if len(anyway) >= IDLE_ENDS_TOLD:
        longest_ns = max(one.at.hi - one.opened_ns for one in anyway)
        yield (
            f"{len(anyway)} idle connections were closed by the server before the trigger, or by "
            f"pods that were not terminated, {longest_ns / NS_PER_S:.1f} s after they were opened "
            "at most: others may be its keep-alive timeout, and not the trigger's doing"
        )


def _drained_for_new_only(
    every: Sequence[Piece], ends: Sequence[ConnectionEnd], t0_ns: int
) -> Iterator[str]:
    """New connections went elsewhere, and pooled ones stayed until they were severed (C16).

    That others answered new ones may be chance where there are several pods: so many requests must
    have gone elsewhere as do in one of twenty cases at most, by the shares of before the trigger.
    And one that failed may have been led to that pod.
    """
    new = [p for p in every if p.run.kind is LaneKind.NEW]
    early = [p for p in new if p.fate in SERVED and not p.since]
    severed = [one for one in ends if one.outcome is Outcome.SEVERED and one.responders < 2]
    for by in sorted({one.by for one in severed if one.by}):
        cuts = [at[0] for one in severed if one.by == by and (at := one.ended_ns) is not None]
        cut_ns = t0_ns + min(cuts)
        mine = [p for p in new if p.fate in SERVED and p.run.responder == by]
        left_ns = max([t0_ns, *(p.ended.hi for p in mine)])
        had = sum(p.count for p in early if p.run.responder == by)
        between = [(p, p.begun_between(left_ns, cut_ns)) for p in new]
        if not had or left_ns >= cut_ns or any(n for p, n in between if p.fate not in SERVED):
            continue
        elsewhere = sum(number for _, number in between)
        if not elsewhere or (1 - had / sum(p.count for p in early)) ** elsewhere > MISSED:
            continue
        yield (
            f"new connections left {by} {(left_ns - t0_ns) / NS_PER_S:.2f} s after the trigger, "
            f"{len(cuts)} pooled one(s) stayed and were severed from {min(cuts) / NS_PER_S:.2f} s "
            "on: it was drained for new connections, and not for pooled ones"
        )
