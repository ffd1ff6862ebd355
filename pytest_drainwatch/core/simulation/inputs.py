"""What the simulator of requests is given: a pod that ends, what routes to it, and who asks."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.pod.kubelet import kill_after
from pytest_drainwatch.core.scenario import Behavior
from pytest_drainwatch.core.scenario.values import (
    ScenarioError,
    become,
    check_kind,
    check_within,
)

# Above a day nothing is a shutdown. Products of these stay below 2**53, so that JavaScript's
# numbers, with which the page computes the same, hold every one exactly.
LONGEST_NS = 24 * 3600 * NS_PER_S
LONGEST_GRACE_S = 24 * 3600
MOST_NODES = 100
MOST_RETRIES = 10
MOST_REQUESTS = 20_000
# Requests last a hundredth of the longest one and more: none may last no time at all.
SHORTEST_NS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """One pod's end; the defaults are the example of which every request succeeds.

    Attributes:
        grace_period_s: terminationGracePeriodSeconds; it counts from the deletion and holds the
            preStop hook too.
        pre_stop_ns: how long the preStop hook takes; 0: there is none.
        behavior: what the app does on SIGTERM.
        drain_ns: how long a draining app lets work finish before it cuts what is left.
        close_idle: whether a draining app closes idle keep-alive connections.
        nodes: how many kube-proxies route to the pod.
        propagation_ns: when the slowest of them sends no new connection here any more; node i of
            n stops at i/n of it.
        load_balancer_ns: when an external load balancer stops (its deregistration delay); None:
            there is none.
        longest_ns: how long the longest request takes.
        keepalive: whether a client asks on a connection that it opened before.
        client_retries: how often a client tries again, each time a second later.
        slow_ns: a request that was served but took longer is slow.
        kubelet_ns: from the deletion until the kubelet begins.
        handler_ns: from SIGTERM until the app has acted on it.
        kill_ns: from SIGKILL until the process is gone.

    Raises:
        ScenarioError: a value means nothing, or there would be too many requests.
    """

    grace_period_s: int = 45
    pre_stop_ns: int = 10 * NS_PER_S
    behavior: Behavior = Behavior.DRAIN
    drain_ns: int = 25 * NS_PER_S
    close_idle: bool = True
    nodes: int = 3
    propagation_ns: int = 8 * NS_PER_S
    load_balancer_ns: int | None = None
    longest_ns: int = 20 * NS_PER_S
    keepalive: bool = True
    client_retries: int = 0
    slow_ns: int = 30 * NS_PER_S
    kubelet_ns: int = 0
    handler_ns: int = 0
    kill_ns: int = 0

    def __post_init__(self) -> None:
        become(self, "behavior", Behavior)
        check_within("grace_period_s", self.grace_period_s, 0, LONGEST_GRACE_S)
        check_within("nodes", self.nodes, 1, MOST_NODES)
        check_within("client_retries", self.client_retries, 0, MOST_RETRIES)
        for name in DURATIONS:
            check_within(name, getattr(self, name), 0, LONGEST_NS)
        check_within("longest_ns", self.longest_ns, SHORTEST_NS, LONGEST_NS)
        if self.load_balancer_ns is not None:
            check_within("load_balancer_ns", self.load_balancer_ns, 0, LONGEST_NS)
        check_kind("close_idle", self.close_idle, bool)
        check_kind("keepalive", self.keepalive, bool)
        if self.most_requests > MOST_REQUESTS:
            raise ScenarioError(
                f"these inputs give up to {self.most_requests} requests, one a second from each "
                f"source, expected {MOST_REQUESTS} at most: fewer nodes, or shorter times"
            )

    @property
    def most_requests(self) -> int:
        """How many requests are at least looked at: a bound, cheap to compute."""
        ends = [self.propagation_ns] * self.nodes
        if self.load_balancer_ns is not None:
            ends.append(self.load_balancer_ns)
        lasts_ns = sum(end_ns + self.longest_ns for end_ns in ends)
        if self.keepalive:
            lasts_ns += (
                self.kubelet_ns + kill_after(self.grace_period_s, self.pre_stop_ns) + self.kill_ns
            )
        return lasts_ns // NS_PER_S


# The durations that may be 0, by their names.
DURATIONS = (
    "pre_stop_ns",
    "drain_ns",
    "propagation_ns",
    "slow_ns",
    "kubelet_ns",
    "handler_ns",
    "kill_ns",
)
