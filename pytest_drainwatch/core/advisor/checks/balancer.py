"""The load balancer outside: whether the pod serves until nobody is sent to it any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_drainwatch.core.advisor.annotations import balancer_of, not_used
from pytest_drainwatch.core.advisor.balancers import CHECKS_FAIL_EARLY, Balancer, Kind, Number
from pytest_drainwatch.core.advisor.finding import Finding, Level
from pytest_drainwatch.core.advisor.hook import lasts
from pytest_drainwatch.core.advisor.roles import application, takes_traffic
from pytest_drainwatch.core.advisor.shown import seconds
from pytest_drainwatch.core.advisor.subject import Subject
from pytest_drainwatch.core.advisor.told import Told
from pytest_drainwatch.core.interval import whole_seconds


def balancer_sends_longer(subject: Subject, told: Told) -> Iterator[Finding]:
    """New connections from the balancer when the application takes none any more."""
    balancer = balancer_of(subject, told)
    if balancer is None or subject.kind == "Job" or not takes_traffic(subject):
        return
    container = application(subject)
    hook = lasts(container.pre_stop)
    where = subject.where(container, container.pre_stop.at if container.pre_stop else None)
    known = balancer.sends_for
    if known is None:
        yield Finding(
            level=Level.NOTE,
            code="balancer-not-known",
            where=where,
            says=f"how long {balancer.kind} still sends to a pod that ends is not known",
            expected="--lb-lag and --lb-spread, or --lb-health-interval and --lb-health-threshold",
            because="the preStop hook must cover it, and nothing is assumed for this one",
            fix="measure it: a trial through the balancer's address",
        )
        return
    needed, summands = known
    by_checks = balancer.by_health_checks
    serves_ns = (hook.ns or 0) + (told.wait_ns or 0)
    if needed <= serves_ns or not hook.exact:
        return
    yield Finding(
        level=Level.BROKEN,
        code="balancer-sends-longer",
        where=where,
        says=f"{balancer.kind} sends new connections for {seconds(needed)} after the deletion "
        f"({_sum(summands)}), and the pod accepts for {seconds(serves_ns)}: they fail for "
        f"{seconds(needed - serves_ns)}",
        expected="hook + the application's own wait >= the balancer's lag + its spread",
        because="the balancer answers its clients with 502 or 504 for what it sends to a port "
        "that is closed",
        fix=f"preStop: {{sleep: {{seconds: {whole_seconds(needed - (told.wait_ns or 0))}}}}}, "
        f"terminationGracePeriodSeconds: {_grace(needed, told)}"
        + (f"; enough only if {CHECKS_FAIL_EARLY}" if by_checks else ""),
        breaks="the balancer is faster or slower than assumed: measure it"
        if any(each.assumed for each in summands)
        else "the application goes on accepting after SIGTERM: say so with --wait"
        if told.wait_ns is None
        else "",
        source=_sources(summands),
    )


def settings_without_effect(subject: Subject, told: Told) -> Iterator[Finding]:
    """Annotations that mean nothing: they are not used here, and nobody else knows what they do."""
    for said in not_used(subject):
        yield Finding(
            level=Level.WARNING,
            code="balancer-setting-not-used",
            where=f"{said.at} {said.kind}/{said.name}",
            says=f"{said.setting} is {said.shown}, which was not used",
            expected=said.expected,
            because="the controller refuses it or takes its default; what is said of the load "
            "balancer here leaves it out",
            fix=f"{said.expected}, or the option that goes before it (--lb with --lb-delay, "
            "--lb-health-interval, …)",
            source="AWS Elastic Load Balancing's and Google Cloud's limits",
        )


def delay_is_below_the_floor(subject: Subject, told: Told) -> Iterator[Finding]:
    """A setting that is not what happens."""
    balancer = balancer_of(subject, told)
    if balancer is None or balancer.delay is None or balancer.floor is None:
        return
    delay, floor = balancer.delay, balancer.floor
    if delay.value >= floor.value:
        return
    yield Finding(
        level=Level.WARNING,
        code="balancer-delay-below-floor",
        where=f"{subject.where()}",
        says=f"a deregistration delay of {seconds(delay.value)} ({delay.origin}) with "
        f"{balancer.kind}: your {seconds(delay.value)} setting is not what happens, "
        f"{seconds(floor.value)} is",
        expected=f"a budget with max(delay, floor) = {seconds(max(delay.value, floor.value))}",
        because="this balancer takes that long to deregister, whatever delay is configured",
        fix=f"plan with {seconds(floor.value)}",
        breaks="the balancer has become faster: give --lb-floor" if floor.assumed else "",
        source=floor.origin,
    )


def pod_ends_before_the_balancer(subject: Subject, told: Told) -> Iterator[Finding]:
    """Connections that the balancer still drains when the pod is killed."""
    balancer = balancer_of(subject, told)
    drained = balancer.drained_ns if balancer is not None else None
    if balancer is None or drained is None or balancer.delay is None:
        return
    mean, worst = drained
    if worst <= subject.grace_ns:
        return
    lines = f"in the mean {seconds(mean)}, at worst {seconds(worst)}"
    yield Finding(
        level=Level.WARNING,
        code="balancer-outlives-pod",
        where=subject.where(at=subject.grace_at),
        says=f"{balancer.kind} is done with its draining {lines} after the deletion "
        f"({_parts(balancer)}), and the pod is killed after {subject.grace_s} s",
        expected="a grace period over the upper bound, if the pod must outlive the balancer",
        because="connections that the balancer still drains are cut when the pod ends",
        fix=f"terminationGracePeriodSeconds: {whole_seconds(worst) + 1}, or a shorter delay",
        breaks="every connection ends earlier by itself: the application closes them as it drains",
        source=_sources(
            each for each in (balancer.lag, balancer.floor, balancer.jitter) if each is not None
        ),
    )


def health_checks_notice_late(subject: Subject, told: Told) -> Iterator[Finding]:
    """How long failed health checks take, as arithmetic."""
    balancer = balancer_of(subject, told)
    noticed = balancer.unhealthy_ns if balancer is not None else None
    if balancer is None or noticed is None:
        return
    mean, worst = noticed
    if balancer.kind is Kind.CUSTOM:
        known = balancer.sends_for
        if balancer.by_health_checks and known is not None and (told.wait_ns or 0) < known[0]:
            yield _hook_for_checks(subject, known[0])
        return
    yield Finding(
        level=Level.NOTE,
        code="balancer-health-checks",
        where=subject.where(),
        says=f"{balancer.kind} notices a failing pod after {seconds(mean)} in the mean, "
        f"{seconds(worst)} at worst",
        expected="deregistration, which does not wait for health checks",
        because="interval x threshold + timeout, with the failure anywhere in an interval; a pod "
        "that dies without a deletion gets connections for that long",
    )


def _hook_for_checks(subject: Subject, needed_ns: int) -> Finding:
    """Whether a hook is a wait for health checks, no manifest says."""
    return Finding(
        level=Level.NOTE,
        code="balancer-health-checks",
        where=subject.where(),
        says=f"only its health checks tell {Kind.CUSTOM} that a pod ends, {seconds(needed_ns)} "
        "after they begin to fail; whether that is at the deletion is not known",
        expected="checks that fail from the deletion on, or an application that goes on accepting "
        f"for {seconds(needed_ns)} after SIGTERM (--wait)",
        because=f"a preStop hook is a wait for them only if {CHECKS_FAIL_EARLY}",
        source="kubernetes/kubernetes pkg/proxy/healthcheck",
    )


def _sum(summands: Iterable[Number]) -> str:
    return " + ".join(
        f"{seconds(each.value)} {'assumed' if each.assumed else each.origin}" for each in summands
    )


def _parts(balancer: Balancer) -> str:
    named = (
        ("lag", balancer.lag),
        ("delay", balancer.delay),
        ("floor", balancer.floor),
        ("jitter up to", balancer.jitter),
    )
    return ", ".join(
        f"{name} {seconds(each.value)}{' assumed' if each.assumed else ''}"
        for name, each in named
        if each is not None
    )


def _sources(numbers: Iterable[Number]) -> str:
    return "; ".join(dict.fromkeys(each.origin for each in numbers if each.assumed))


def _grace(hook_ns: int, told: Told) -> int:
    """What the hook and all that is told would fit into, with 30 s where no drain is told."""
    others = (told.drained_ns, told.close_ns, told.flush_ns, told.reserve_ns)
    return whole_seconds(hook_ns + sum(ns or 0 for ns in others)) + (
        30 if told.drained_ns is None else 0
    )
