"""The application's own times against what the kubelet leaves it."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_drainwatch.core.advisor.budget import Name, budget
from pytest_drainwatch.core.advisor.checks.hooks import KUBELET
from pytest_drainwatch.core.advisor.finding import Finding, Level
from pytest_drainwatch.core.advisor.hook import lasts
from pytest_drainwatch.core.advisor.roles import application, takes_traffic
from pytest_drainwatch.core.advisor.shown import seconds
from pytest_drainwatch.core.advisor.subject import Container, Subject
from pytest_drainwatch.core.advisor.told import Told
from pytest_drainwatch.core.interval import NS_PER_S, whole_seconds

_WORK = (Name.WAIT, Name.DRAIN, Name.CLOSE, Name.FLUSH)
# Below that the end of the drain and SIGKILL may come in either order: the kubelet counts the
# hook in whole seconds, and both clocks begin late.
CLOSE_CALL_NS = NS_PER_S


def work_does_not_fit(subject: Subject, told: Told) -> Iterator[Finding]:
    """Wait, drain, close and flush against the time between SIGTERM and SIGKILL."""
    container = application(subject)
    spent = budget(subject, container, told)
    parts = [part for part in spent.parts if part.name in _WORK and part.ns is not None]
    if not parts or subject.grace_s <= 0:
        return
    work_ns = sum(part.ns or 0 for part in parts)
    remaining = spent.remaining_ns
    summed = " + ".join(f"{part.name} {seconds(part.ns or 0)}" for part in parts)
    if len(parts) > 1:
        summed += f" = {seconds(work_ns)}"
    hook = spent.part(Name.HOOK)
    left = (
        f"a grace period of {subject.grace_s} s leaves {seconds(remaining)} after "
        f"{_hook_shown(hook.ns, hook.at_least)}"
    )
    reserve_ns = told.reserve_ns or 0
    wanted_s = whole_seconds(spent.known_ns + (0 if reserve_ns else 5 * NS_PER_S))
    fix = f"terminationGracePeriodSeconds: {wanted_s}, or a shorter hook or drain"
    over_ns = work_ns - remaining
    # Equal is too long as well: the work begins when SIGTERM has been handled, after it was sent.
    if over_ns >= 0:
        yield Finding(
            level=Level.BROKEN,
            code="drain-over-grace",
            where=subject.where(container, subject.grace_at),
            says=f"{summed}, and {left}: "
            + (f"{seconds(over_ns)} too long" if over_ns else "nothing is left for its end"),
            expected="hook, wait, drain, close, flush and reserve in one grace period",
            because="all of them share one deadline, which began with the deletion; SIGKILL cuts "
            "what still runs",
            fix=fix,
            breaks="the drain always ends early, because requests are short",
            source=KUBELET,
        )
    elif work_ns + max(reserve_ns, CLOSE_CALL_NS) > remaining:
        # A reserve that somebody asked for is one of the parts: without it the budget is broken.
        asked = work_ns + reserve_ns > remaining
        yield Finding(
            level=Level.BROKEN if asked else Level.WARNING,
            code="no-reserve",
            where=subject.where(container, subject.grace_at),
            says=f"{summed}, and {left}: {seconds(remaining - work_ns)} over"
            + (f", {seconds(reserve_ns)} reserve asked for" if reserve_ns else ""),
            expected="a reserve: the application's deadline before Kubernetes'",
            because="if both end together, SIGKILL may come before the clean-up; the kubelet "
            "counts the hook in whole seconds, and SIGTERM is handled late on a busy node",
            fix=fix,
            source=KUBELET,
        )


def waits_twice(subject: Subject, told: Told) -> Iterator[Finding]:
    """The hook and the application's own wait are for the same routes."""
    container = application(subject)
    hook_ns, wait_ns = lasts(container.pre_stop).ns, told.wait_ns
    if not hook_ns or not wait_ns:
        return
    enough = told.propagation_ns is not None and max(hook_ns, wait_ns) >= told.propagation_ns
    yield Finding(
        level=Level.WARNING if enough else Level.NOTE,
        code="propagation-counted-twice",
        where=subject.where(container, container.pre_stop.at if container.pre_stop else None),
        says=f"the hook waits {seconds(hook_ns)} and the application another {seconds(wait_ns)} "
        f"before it drains: {seconds(hook_ns + wait_ns)} of {subject.grace_s} s"
        + (f", where routes need {seconds(told.propagation_ns or 0)}" if enough else ""),
        expected="one wait for the routes, in the hook or in the application",
        because="both wait for the same change of routes, which begins with the deletion; the "
        "second wait comes off the drain",
        fix="let one of them go, or make the hook as long as the routes need and --wait 0s",
        breaks="the two cover different things: the hook the endpoints, the wait a health check "
        "that only fails once the application knows that it ends",
    )


def request_is_cut(subject: Subject, told: Told) -> Iterator[Finding]:
    """A request that takes longer than anybody waits for it."""
    longest = told.longest_request_ns
    if longest is None:
        return
    container = application(subject)
    remaining = budget(subject, container, told).remaining_ns
    limits = [(remaining, f"{seconds(remaining)} between SIGTERM and SIGKILL")]
    if told.drain_ns is not None:
        limits.append((told.drain_ns, f"the drain of {seconds(told.drain_ns)}"))
    limit, shown = min(limits)
    if longest <= limit:
        return
    yield Finding(
        level=Level.BROKEN,
        code="request-over-drain",
        where=subject.where(container, subject.grace_at),
        says=f"a request takes up to {seconds(longest)}, longer than {shown}",
        expected="a drain as long as the longest request that comes in before it",
        because="requests that began just before the application stopped accepting are cut in "
        f"their last {seconds(longest - limit)}",
        fix=f"--drain {seconds(longest)} in the application, and "
        f"terminationGracePeriodSeconds: {_grace_with(told, container, longest)}",
        breaks="such requests may be cut: they are idempotent and retried",
    )


def idle_connections_stay(subject: Subject, told: Told) -> Iterator[Finding]:
    """Idle keep-alive connections that are open when the process ends."""
    keep = told.keep_alive_ns
    if keep is None:
        return
    container = application(subject)
    open_ns = _until_exit(subject, container, told)
    if keep <= open_ns:
        return
    yield Finding(
        level=Level.WARNING,
        code="keep-alive-over-drain",
        where=subject.where(container),
        says=f"idle connections are kept {seconds(keep)}, and the process ends "
        f"{seconds(open_ns)} after SIGTERM at the latest",
        expected="on SIGTERM the server closes idle connections and answers the others with "
        "Connection: close",
        because="a connection that is still open at the end is cut: the client's next request on "
        "it meets a reset, which only an idempotent one may be retried after",
        fix="close idle connections when the drain begins, or a keep-alive timeout under "
        f"{seconds(open_ns)}",
        breaks="the server closes them (Go's Shutdown does; measure yours: drainwatch attach)",
        source="reactor/reactor-netty#1247, gajus/http-terminator#48",
    )


def connections_live_longer(subject: Subject, told: Told) -> Iterator[Finding]:
    """Connections that a maximum age ends too late to matter."""
    age = told.max_connection_age_ns
    if age is None:
        return
    container = application(subject)
    total = age + (told.max_connection_age_grace_ns or 0)
    open_ns = (lasts(container.pre_stop).ns or 0) + _until_exit(subject, container, told)
    if total <= open_ns:
        return
    yield Finding(
        level=Level.WARNING,
        code="connection-age-over-grace",
        where=subject.where(container),
        says=f"connections live up to {seconds(total)}, and the pod ends {seconds(open_ns)} after "
        "its deletion at the latest",
        expected="connections that learn of the end: GOAWAY or Connection: close on SIGTERM",
        because="the age alone ends a young connection only after the pod is gone, so its streams "
        "are cut",
        fix=f"a maximum age, with its grace, under {seconds(open_ns)}, or GOAWAY on SIGTERM",
        breaks="the server sends GOAWAY when it is told to stop (grpc's GracefulStop does)",
        source="grpc/grpc-go#4650, envoyproxy/envoy#22825",
    )


def nothing_told(subject: Subject, told: Told) -> Iterator[Finding]:
    """The drain is not told, so whether the budget fits is not known."""
    container = application(subject)
    if told.drained_ns is not None or subject.kind == "Job" or not takes_traffic(subject):
        return
    spent = budget(subject, container, told)
    hook = spent.part(Name.HOOK)
    yield Finding(
        level=Level.NOTE,
        code="drain-not-told",
        where=subject.where(container),
        says=f"of {subject.grace_s} s grace {_hook_shown(hook.ns, hook.at_least)} leaves "
        f"{seconds(spent.remaining_ns)}; whether the drain fits is not known",
        expected="--drain, the application's shutdown timeout (and --wait, --close, --flush)",
        because="no manifest says how long the application drains",
        fix="give --drain 25s, or measure it: drainwatch attach",
    )


def _hook_shown(hook_ns: int | None, at_least: bool) -> str:
    if hook_ns is None:
        return "a hook of unknown length (taken as 0 s)"
    return (
        f"a hook of {'at least ' if at_least else ''}{seconds(hook_ns)}" if hook_ns else "no hook"
    )


def _until_exit(subject: Subject, container: Container, told: Told) -> int:
    """From SIGTERM to the end of the process at the latest."""
    remaining = budget(subject, container, told).remaining_ns
    if told.drained_ns is None:
        return remaining
    work = (told.wait_ns, told.drained_ns, told.close_ns, told.flush_ns)
    return min(remaining, sum(ns or 0 for ns in work))


def _grace_with(told: Told, container: Container, drain_ns: int) -> int:
    others = (lasts(container.pre_stop).ns, told.wait_ns, told.close_ns, told.flush_ns)
    reserve_ns = 5 * NS_PER_S if told.reserve_ns is None else told.reserve_ns
    return whole_seconds(drain_ns + reserve_ns + sum(ns or 0 for ns in others))
