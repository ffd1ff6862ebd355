"""Whether the pod still answers for as long as somebody is still sent to it."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_drainwatch.core.advisor.finding import Finding, Level
from pytest_drainwatch.core.advisor.hook import lasts
from pytest_drainwatch.core.advisor.roles import application, takes_traffic
from pytest_drainwatch.core.advisor.shown import seconds
from pytest_drainwatch.core.advisor.subject import Container, Subject
from pytest_drainwatch.core.advisor.told import Told
from pytest_drainwatch.core.interval import whole_seconds

_DNS_SOURCE = "grpc/grpc-go#4650"


def routes_change_later(subject: Subject, told: Told) -> Iterator[Finding]:
    """New connections that still come when the application no longer takes any."""
    if not takes_traffic(subject) or subject.kind == "Job":
        return
    container = application(subject)
    hook = lasts(container.pre_stop)
    if container.pre_stop is not None and hook.ns is None:
        return  # its length is not known, which another check says
    serves_ns = (hook.ns or 0) + (told.wait_ns or 0)
    if told.propagation_ns is None:
        if serves_ns == 0 and told.wait_ns is None:
            yield _nothing_waits(subject, container)
        return
    short_ns = told.propagation_ns - serves_ns
    if short_ns <= 0 or not hook.exact:
        return
    unsure = told.wait_ns is None
    yield Finding(
        level=Level.WARNING if unsure else Level.BROKEN,
        code="stops-before-routes",
        where=subject.where(container, container.pre_stop.at if container.pre_stop else None),
        says=f"routes need {seconds(told.propagation_ns)} to change, and "
        f"{'a hook of ' + seconds(hook.ns) if hook.ns else 'no hook'}"
        f"{'' if unsure else f' and a wait of {seconds(told.wait_ns or 0)}'} "
        f"keeps the listener open for {seconds(serves_ns)}: {seconds(short_ns)} too few",
        expected="hook + the application's own wait >= the time that routes need",
        because=f"new connections of the last {seconds(short_ns)} meet a closed port: refused or "
        "reset",
        fix=f"preStop: {{sleep: {{seconds: {_hook_for(told)}}}}}, and as much more grace",
        breaks="the application goes on accepting after SIGTERM (say so with --wait)"
        if unsure
        else "",
        source="kubernetes/kubernetes#86280, #43576",
    )


def _nothing_waits(subject: Subject, container: Container) -> Finding:
    return Finding(
        level=Level.WARNING,
        code="nothing-waits-for-routes",
        where=subject.where(container),
        says=("no preStop hook" if container.pre_stop is None else "a preStop hook of 0 s")
        + ", and no --wait told: SIGTERM comes with the deletion",
        expected="a wait before the listener closes, as long as your routes need to change",
        because="the endpoint is taken out beside the termination, not before it: an application "
        "that stops accepting at once refuses whoever is still sent to it",
        fix="preStop: {sleep: {seconds: …}} with your measured time (--from RESULTS, "
        "--propagation), or let the application wait after SIGTERM",
        breaks="the application goes on accepting after SIGTERM: say so with --wait",
        source="kubernetes/kubernetes#86280, #43576",
    )


def dns_answers_are_older(subject: Subject, told: Told) -> Iterator[Finding]:
    """Clients of a headless Service that use an address for longer than the pod answers."""
    headless = any(each.headless for each in subject.services)
    asked = [ns for ns in (told.resolve_period_ns, told.dns_ttl_ns) if ns is not None]
    if not headless and (subject.services or not asked):
        return
    container = application(subject)
    hook = lasts(container.pre_stop)
    where = subject.where(container, container.pre_stop.at if container.pre_stop else None)
    because = (
        "clients of a headless Service hold pods' addresses themselves: they learn of the end "
        "when they ask DNS again and no cache answers with the old list (grpc-go asks at most "
        "every 30 s)"
    )
    serves_ns = (hook.ns or 0) + (told.wait_ns or 0)
    stale_ns = sum(asked)
    if not asked or (len(asked) == 1 and stale_ns < serves_ns):
        missing = " and ".join(
            name
            for name, ns in (
                ("--resolve-period", told.resolve_period_ns),
                ("--dns-ttl", told.dns_ttl_ns),
            )
            if ns is None
        )
        yield Finding(
            level=Level.NOTE,
            code="dns-not-told",
            where=where,
            says="behind a headless Service, and how old its clients' addresses get is not known",
            expected=f"{missing}: how often clients ask, and for how long an answer is kept",
            because=because,
            source=_DNS_SOURCE,
        )
        return
    if (container.pre_stop is not None and not hook.exact) or stale_ns < serves_ns:
        return
    least = "" if len(asked) == 2 else "at least "
    late_ns = stale_ns - serves_ns
    yield Finding(
        level=Level.BROKEN if late_ns else Level.WARNING,
        code="dns-older-than-hook",
        where=where,
        says=f"addresses are up to {least}{seconds(stale_ns)} old ({_asked(told)}), and the pod "
        f"accepts for {seconds(serves_ns)} after its deletion: "
        + (f"connections fail for {least}{seconds(late_ns)}" if late_ns else "nothing to spare"),
        expected="resolve period + TTL + caches < preStop hook (+ the application's own wait)",
        because=because,
        fix=f"preStop: {{sleep: {{seconds: {whole_seconds(stale_ns) + 1}}}}} and as much more "
        "grace, a shorter TTL, or a Service with a ClusterIP",
        breaks="clients ask again as soon as a connection fails, and try another address",
        source=_DNS_SOURCE,
    )


def _asked(told: Told) -> str:
    period, ttl = told.resolve_period_ns, told.dns_ttl_ns
    return ", ".join(
        (
            "how often they ask again is not told"
            if period is None
            else f"asked again every {seconds(period)}",
            "the TTL is not told" if ttl is None else f"TTL {seconds(ttl)}",
        )
    )


def _hook_for(told: Told) -> int:
    return whole_seconds(max(0, (told.propagation_ns or 0) - (told.wait_ns or 0)))
