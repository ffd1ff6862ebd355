"""Probes: who gets traffic, and what may restart a container while it drains."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_drainwatch.core.advisor.finding import Finding, Level
from pytest_drainwatch.core.advisor.hook import lasts
from pytest_drainwatch.core.advisor.roles import application, pods_at_least
from pytest_drainwatch.core.advisor.subject import Subject
from pytest_drainwatch.core.advisor.told import Told
from pytest_drainwatch.core.interval import NS_PER_S

_WORKER = "kubernetes/kubernetes pkg/kubelet/prober/worker.go"


def readiness_is_missing(subject: Subject, told: Told) -> Iterator[Finding]:
    """No readiness probe on what a Service sends to."""
    container = application(subject)
    if container.readiness is not None or not subject.services:
        return
    yield Finding(
        level=Level.WARNING,
        code="readiness-missing",
        where=subject.where(container),
        says=f"no readinessProbe, and Service/{subject.services[0].name} sends to it",
        expected="a readinessProbe that passes once the server answers",
        because="without it a pod is ready when its container has started: a rollout ends old "
        "pods while new ones cannot answer yet, and no drain can be shown to the routes",
        fix="readinessProbe: {httpGet: {path: /ready, port: …}, periodSeconds: 2}",
        breaks="the server answers the moment its process exists",
        source="kubernetes/kubernetes#86280",
    )


def readiness_while_draining(subject: Subject, told: Told) -> Iterator[Finding]:
    """What failing readiness during the drain does: by the number of pods."""
    container = application(subject)
    pods = pods_at_least(subject)
    if container.readiness is None or not subject.services or pods is None:
        return
    seen_s = container.readiness.detected_within_s
    where = subject.where(container, container.readiness.at)
    source = "kubernetes/kubernetes pkg/proxy/topology.go, k8s.io/endpointslice"
    if pods == 1:
        yield Finding(
            level=Level.NOTE,
            code="readiness-drain-single",
            where=where,
            says="one pod: whether it fails its readiness probe while it drains decides who "
            "serves until the replacement is ready",
            expected="readiness that keeps passing during the drain of a single pod",
            because="with no ready endpoint kube-proxy falls back to those that are terminating "
            "and still serving; a pod that fails readiness leaves them, and new connections are "
            "refused",
            breaks="the data plane is another one than kube-proxy",
            source=source,
        )
        return
    yield Finding(
        level=Level.NOTE,
        code="readiness-drain",
        where=where,
        says=f"{pods} pods: the deletion itself makes the endpoint unready, readiness is seen "
        f"within {seen_s} s at the latest and changes nothing for new TCP connections",
        expected="a hook or wait that covers the routes, not the readiness probe's time",
        because="an endpoint is ready only if its pod is not terminating; failing readiness "
        "matters for health checks that ask the pod itself, and for UDP",
        source=source,
    )


def liveness(subject: Subject, told: Told) -> Iterator[Finding]:
    """A liveness probe that asks the same as readiness."""
    container = application(subject)
    alive, ready = container.liveness, container.readiness
    if alive is None or ready is None:
        return
    same = alive.path and (alive.action, alive.path) == (ready.action, ready.path)
    if not same:
        return
    yield Finding(
        level=Level.NOTE,
        code="liveness-asks-readiness",
        where=subject.where(container, alive.at),
        says=f"liveness and readiness ask the same: {alive.path}",
        expected="a draining server is alive and not ready: two answers",
        because="liveness probes stop when a pod terminates, so the drain itself is safe; but a "
        "server that says not ready for another reason is restarted, and its preStop hook runs "
        "with no deletion behind it",
        fix="livenessProbe on a path that only fails when a restart would help",
        source=f"{_WORKER}; projectcontour/contour#4851",
    )


def grace_of_a_probe(subject: Subject, told: Told) -> Iterator[Finding]:
    """A grace period of the probe's own that the hook uses up."""
    for container in subject.containers:
        if container.readiness is not None and container.readiness.grace_s is not None:
            yield Finding(
                level=Level.BROKEN,
                code="probe-grace-on-readiness",
                where=subject.where(container, container.readiness.at),
                says="terminationGracePeriodSeconds on a readinessProbe",
                expected="it on liveness and startup probes only",
                because="a readiness probe ends nothing, so the API server refuses it there",
                fix="take it out",
                source="k8s.io/api/core/v1 Probe",
            )
        hook_ns = lasts(container.pre_stop).ns
        for name, probe in (("liveness", container.liveness), ("startup", container.startup)):
            if probe is None or probe.grace_s is None or not hook_ns:
                continue
            if hook_ns < probe.grace_s * NS_PER_S:
                continue
            yield Finding(
                level=Level.WARNING,
                code="probe-grace-under-hook",
                where=subject.where(container, probe.at),
                says=f"the {name}Probe's own grace is {probe.grace_s} s, the preStop hook takes "
                f"{hook_ns // NS_PER_S} s",
                expected="a grace period over the hook's time",
                because="a container that this probe restarts runs its hook within that grace, "
                "and gets SIGTERM only when it is over: 2 s are left",
                fix=f"terminationGracePeriodSeconds: {hook_ns // NS_PER_S + 10} in the probe",
                source=_WORKER,
            )
