"""Load balancers outside of the cluster: how long they go on sending to a pod that ends.

Each number is the owner's, a manifest's, or assumed from a public page or issue, and says
which. What nobody says and nothing is assumed for stays None. All times are nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from pytest_drainwatch.core.interval import NS_PER_S

# What a wait for health checks stands on.
CHECKS_FAIL_EARLY = (
    "its health checks fail from the deletion on (kube-proxy's healthCheckNodePort does); a check "
    "of the pod itself fails after SIGTERM at the earliest, so no hook covers it: the application "
    "must go on accepting that long (--wait)"
)


class Kind(StrEnum):
    """What is known by name."""

    AWS_ALB = "aws-alb"
    AWS_NLB = "aws-nlb"
    GCP = "gcp"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number and where it is from: an option, a place in a manifest, or a source."""

    value: int
    origin: str
    assumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Balancer:
    """One load balancer, in front of the pods' nodes or of the pods."""

    kind: Kind
    # From the deletion to the balancer's own API: controllers that watch, and calls.
    lag: Number | None = None
    # From there to its last machine: new connections still come.
    spread: Number | None = None
    # The deregistration or draining delay that was set; what it never stays under; what may
    # come on top, evenly distributed from 0 on.
    delay: Number | None = None
    floor: Number | None = None
    jitter: Number | None = None
    # Its own health checks.
    interval: Number | None = None
    threshold: Number | None = None
    timeout: Number | None = None

    @property
    def effective_ns(self) -> int | None:
        """The delay that happens: never under the floor."""
        values = [each.value for each in (self.delay, self.floor) if each is not None]
        return max(values) if values else None

    @property
    def drained_ns(self) -> tuple[int, int] | None:
        """From the deletion to the end of the deregistration, in the mean and at worst."""
        effective = self.effective_ns
        if effective is None:
            return None
        least = (self.lag.value if self.lag else 0) + effective
        jitter = self.jitter.value if self.jitter else 0
        return least + jitter // 2, least + jitter

    @property
    def unhealthy_ns(self) -> tuple[int, int] | None:
        """From a pod's first failure to its being unhealthy, in the mean and at worst.

        The failure lies anywhere in an interval: half of one is waited in the mean, a whole one
        at worst; then come the other checks, and the last one's timeout.
        """
        if self.interval is None or self.threshold is None:
            return None
        timeout = self.timeout.value if self.timeout else 0
        others = self.interval.value * (self.threshold.value - 1) + timeout
        return others + self.interval.value // 2, others + self.interval.value

    @property
    def by_health_checks(self) -> bool:
        """Whether its health checks alone tell it that a pod ends.

        They count from the deletion only where they fail from there on (kube-proxy's
        healthCheckNodePort). A check of the pod itself fails after SIGTERM at the earliest: then
        no hook covers it, and the application must go on accepting.
        """
        return self.kind is Kind.CUSTOM and self.spread is None and self.unhealthy_ns is not None

    @property
    def sends_for(self) -> tuple[int, tuple[Number, ...]] | None:
        """For how long after the deletion new connections come at worst, and the summands.

        None where it is not known.
        """
        if self.by_health_checks and self.unhealthy_ns is not None:
            origin = "health checks: interval x threshold + timeout"
            checks = Number(value=self.unhealthy_ns[1], origin=origin)
            summands = (checks,) if self.lag is None else (self.lag, checks)
            return sum(each.value for each in summands), summands
        if self.kind is Kind.AWS_NLB:
            # It takes as long as the deregistration does.
            last = max(
                (each for each in (self.delay, self.floor) if each is not None),
                key=lambda each: each.value,
                default=None,
            )
        else:
            last = self.spread
        if self.lag is None or last is None:
            return None
        return self.lag.value + last.value, (self.lag, last)


def _assumed(seconds: int, origin: str) -> Number:
    return Number(value=seconds * NS_PER_S, origin=origin, assumed=True)


_ALB = "kubernetes-sigs/aws-load-balancer-controller#1064, #1719"
_NLB = "kubernetes-sigs/aws-load-balancer-controller#2366, #3270"
_GCP = "cloud.google.com/load-balancing/docs/enabling-connection-draining"

PRESETS: Mapping[Kind, Balancer] = {
    Kind.AWS_ALB: Balancer(kind=Kind.AWS_ALB, lag=_assumed(3, _ALB), spread=_assumed(15, _ALB)),
    Kind.AWS_NLB: Balancer(kind=Kind.AWS_NLB, lag=_assumed(3, _ALB), floor=_assumed(120, _NLB)),
    Kind.GCP: Balancer(kind=Kind.GCP, jitter=_assumed(60, _GCP)),
    Kind.CUSTOM: Balancer(kind=Kind.CUSTOM),
}


def with_numbers(balancer: Balancer, given: Mapping[str, Number | None]) -> Balancer:
    """The same with what is given instead of what is assumed or read."""
    changes: dict[str, Any] = {name: each for name, each in given.items() if each is not None}
    return replace(balancer, **changes)
