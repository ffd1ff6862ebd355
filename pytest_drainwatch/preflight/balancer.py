"""The check of the load balancer in front of the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pytest_drainwatch.preflight.check import Check


class Healthy(Protocol):
    """A server as the balancer sees it: whether it gets connections, and its last check."""

    @property
    def up(self) -> bool: ...

    @property
    def check(self) -> str: ...

    @property
    def passed(self) -> bool: ...


def balancer_up(servers: Mapping[str, Healthy], nodes: int, asked: str) -> Check:
    """Each of the ``nodes`` gets new connections, and has passed a health check.

    ``asked`` is what a check asks, in words.
    """
    told = [
        f"{node} is {'up' if each.up else 'down'}, its last check: {each.check or 'none yet'}"
        for node, each in sorted(servers.items())
    ]
    return Check(
        name="balancer-up",
        invariant="the load balancer holds every node healthy before anything is measured",
        expected=f"{nodes} node(s) up, each with a check that went well ({asked})",
        observed="; ".join(told) or "no server was seen yet",
        passed=len(servers) == nodes and all(each.up and each.passed for each in servers.values()),
        look_at="with externalTrafficPolicy Local each node needs a ready pod of its own: "
        "App(spread_over_nodes=True), as many replicas as nodes or more; kube-proxy's log",
    )
