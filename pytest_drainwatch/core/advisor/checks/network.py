"""Services: which of their settings keep a pod that ends in the routes."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_drainwatch.core.advisor.finding import Finding, Level
from pytest_drainwatch.core.advisor.hook import lasts
from pytest_drainwatch.core.advisor.roles import application, pods_at_least
from pytest_drainwatch.core.advisor.shown import seconds
from pytest_drainwatch.core.advisor.subject import Subject
from pytest_drainwatch.core.advisor.told import Told


def endpoint_stays_ready(subject: Subject, told: Told) -> Iterator[Finding]:
    """publishNotReadyAddresses: the endpoint is ready until it is gone."""
    for service in subject.services:
        if not service.publish_not_ready:
            continue
        yield Finding(
            # Peers of a StatefulSet find each other that way; nobody balances over it.
            level=Level.NOTE if service.headless else Level.WARNING,
            code="publish-not-ready",
            where=f"{service.at} Service/{service.name}",
            says=f"publishNotReadyAddresses is true, and the Service selects {subject.kind}/"
            f"{subject.name}",
            expected="false for a Service that traffic comes through",
            because="its endpoints stay ready: true while the pod terminates, so new connections "
            "are sent to it until it is gone, however it drains",
            fix="a Service of its own, headless, for peers that must find unready pods",
            source="k8s.io/endpointslice utils.go podToEndpoint",
        )


def last_pod_of_a_node(subject: Subject, told: Told) -> Iterator[Finding]:
    """externalTrafficPolicy Local: a node whose last pod ends has nobody to send to."""
    pods = pods_at_least(subject)
    alone = subject.kind == "DaemonSet" or subject.one_a_node or pods == 1
    container = application(subject)
    hook_ns = lasts(container.pre_stop).ns
    serves_ns = None if hook_ns is None else hook_ns + (told.wait_ns or 0)
    for service in subject.services:
        if not service.local_traffic:
            continue
        known = told.propagation_ns is not None and serves_ns is not None
        if known and (serves_ns or 0) >= (told.propagation_ns or 0):
            continue
        yield Finding(
            level=Level.WARNING if alone else Level.NOTE,
            code="local-traffic-last-pod",
            where=f"{service.at} Service/{service.name}",
            says=f"externalTrafficPolicy Local, and {subject.kind}/{subject.name} "
            + ("has one pod a node" if alone else "may have one pod on a node")
            + (
                f": it serves {seconds(serves_ns)} after its deletion"
                if serves_ns is not None
                else ""
            ),
            expected="the last pod of a node serves until the load balancer has left the node "
            "(--propagation says how long that takes)",
            because="while it serves and terminates the node still sends to it; after its end new "
            "connections are dropped until the load balancer's health check has failed",
            fix="preStop and grace over the load balancer's interval x threshold, "
            + (
                "updateStrategy.rollingUpdate.maxSurge: 1"
                if subject.kind == "DaemonSet"
                else "or externalTrafficPolicy: Cluster"
            ),
            breaks="another pod of it on the same node is ready before this one ends",
            source="kubernetes/kubernetes#85643; kubernetes/kubernetes pkg/proxy/topology.go",
        )


def udp_flows_stay(subject: Subject, told: Told) -> Iterator[Finding]:
    """UDP: what decides is whether the pod is serving, not its drain."""
    for service in subject.services:
        if "UDP" not in service.protocols:
            continue
        single = pods_at_least(subject) == 1
        yield Finding(
            level=Level.NOTE,
            code="udp-follows-serving",
            where=f"{service.at} Service/{service.name}",
            says="UDP flows stay with the pod while it is serving (its readiness probe passes)",
            expected="a readiness probe that fails when the drain begins"
            + (", and a second pod to move to" if single else ""),
            because="kube-proxy drops the tracked flows of a backend that no longer serves; while "
            "it serves they stay, to its very end; where no endpoint serves at all they keep "
            "pointing at a dead pod (1.34; on 1.37 those of NodePorts still)",
            fix="fail readiness on SIGTERM; measure it: drainwatch run --drain-behavior drain",
            source="kubernetes/kubernetes#139628, pkg/proxy/conntrack/cleanup.go",
        )
