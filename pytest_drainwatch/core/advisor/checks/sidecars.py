"""Several containers: one that the application needs until its end, and that ends first."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_drainwatch.core.advisor.finding import Finding, Level
from pytest_drainwatch.core.advisor.hook import lasts
from pytest_drainwatch.core.advisor.roles import application, is_proxy
from pytest_drainwatch.core.advisor.shown import seconds
from pytest_drainwatch.core.advisor.subject import Container, Subject
from pytest_drainwatch.core.advisor.told import Told


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
