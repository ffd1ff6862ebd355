"""Several containers: which of them ends before the application, and which after it."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_drainwatch.core.advisor.checks.hooks import KUBELET
from pytest_drainwatch.core.advisor.finding import Finding, Level
from pytest_drainwatch.core.advisor.hook import lasts
from pytest_drainwatch.core.advisor.roles import application, is_proxy
from pytest_drainwatch.core.advisor.shown import seconds
from pytest_drainwatch.core.advisor.subject import Container, Subject
from pytest_drainwatch.core.advisor.told import Told
from pytest_drainwatch.core.interval import NS_PER_S, whole_seconds
from pytest_drainwatch.core.pod.kubelet import MINIMUM_S, remaining_after


def ends_before_the_application(subject: Subject, told: Told) -> Iterator[Finding]:
    """An ordinary second container gets SIGTERM while the application still works."""
    main = application(subject)
    works_ns = (lasts(main.pre_stop).ns or 0) + sum(
        ns or 0 for ns in (told.wait_ns, told.drained_ns, told.close_ns, told.flush_ns)
    )
    for container in subject.containers:
        if container is main or container.native_sidecar:
            continue
        hook_ns = lasts(container.pre_stop).ns
        if hook_ns is None or (told.drained_ns is not None and hook_ns >= works_ns):
            continue  # as long as the application; or nobody knows
        yield _finding(subject, container, main, hook_ns, works_ns)


def ends_after_the_application(subject: Subject, told: Told) -> Iterator[Finding]:
    """A native sidecar: its hook runs at once, its SIGTERM waits; all in the same grace period."""
    if subject.grace_s <= 0:
        return
    main = application(subject)
    main_hook_ns = lasts(main.pre_stop).ns
    work = (told.wait_ns, told.drained_ns, told.close_ns, told.flush_ns)
    works_ns = (main_hook_ns or 0) + sum(ns or 0 for ns in work)
    for container in subject.containers:
        if not container.native_sidecar:
            continue
        hook = lasts(container.pre_stop)
        # It waits for its own hook and for the application, whichever takes longer.
        turn_ns = max(hook.ns or 0, works_ns)
        waits_ns = min(turn_ns, subject.grace_ns)
        left_ns = remaining_after(subject.grace_s, waits_ns)
        known = told.drained_ns is not None and main_hook_ns is not None
        least = known and left_ns <= MINIMUM_S * NS_PER_S
        yield Finding(
            level=Level.WARNING if least else Level.NOTE,
            code="sidecar-ends-last",
            where=subject.where(container),
            says=f"a native sidecar: it gets SIGTERM {seconds(waits_ns)} after the deletion"
            f"{'' if known else ' or later'}, when {main.name} has ended"
            + (f" and its own hook ({hook.shown}) too" if container.pre_stop else "")
            + f", and SIGKILL {seconds(left_ns)} after that{'' if known else ' or sooner'}",
            expected="a reserve in the grace period that its own end fits into",
            because="its preStop hook runs from the deletion on, beside the application's, but its "
            "SIGTERM waits until every ordinary container has ended; the wait comes off the same "
            "grace period, of which at least 2 s are left",
            fix=f"terminationGracePeriodSeconds: {whole_seconds(turn_ns) + 5} or more"
            if least
            else "",
            breaks="it ends within 2 s" if least else "",
            source=f"{KUBELET}, terminationOrdering",
        )


def _finding(
    subject: Subject, container: Container, main: Container, hook_ns: int, works_ns: int
) -> Finding:
    proxy = is_proxy(container)
    return Finding(
        level=Level.WARNING if proxy else Level.NOTE,
        code="sidecar-ends-first",
        where=subject.where(container),
        says=f"an ordinary container beside {main.name}: it gets SIGTERM {seconds(hook_ns)} after "
        f"the deletion, while {main.name} works for {seconds(works_ns)} or longer",
        expected="a helper that ends after the application",
        because="containers of a pod are stopped at the same time: "
        + (
            "the application's calls through this proxy are refused once it has ended"
            if proxy
            else "if the application needs it to finish its work, that work fails"
        ),
        fix="initContainers with restartPolicy: Always (a native sidecar, GA in 1.33), or a "
        "preStop hook as long as the application's hook and drain",
        breaks="it waits by itself until the application's connections are gone"
        if proxy
        else "the application does not need it",
        source="istio/istio#7136, kubernetes/kubernetes#105703",
    )
