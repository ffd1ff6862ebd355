"""A load balancer in front of the nodes: what it asks them, and how long it is patient."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario.values import check_within

SHORTEST_CHECK_NS = 100 * NS_PER_MS
LONGEST_NS = 3600 * NS_PER_S
MOST_CHECKS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBalancer:
    """Each node's NodePort is a server of it, as where clouds balance over instances.

    A server that fails ``fall`` health checks in a row, ``check_interval_ns`` apart, gets no new
    connection until ``rise`` checks in a row went well. Its old ones stay for
    ``deregistration_ns`` after that, and are then closed.
    """

    check_interval_ns: int = NS_PER_S
    fall: int = 2
    rise: int = 2
    deregistration_ns: int = 10 * NS_PER_S

    def check(self) -> None:
        """Refuse values that cannot be. Raises :class:`ScenarioError`."""
        check_within(
            "balancer's check_interval_ns", self.check_interval_ns, SHORTEST_CHECK_NS, LONGEST_NS
        )
        check_within("balancer's fall", self.fall, 1, MOST_CHECKS)
        check_within("balancer's rise", self.rise, 1, MOST_CHECKS)
        check_within("balancer's deregistration_ns", self.deregistration_ns, 0, LONGEST_NS)

    @property
    def notices_ns(self) -> int:
        """How long after it began to fail its checks a node may still get new connections.

        The check before may just have gone well, and the last one may take as long as a check is
        waited for: an interval.
        """
        return (self.fall + 1) * self.check_interval_ns

    @property
    def rises_ns(self) -> int:
        """How long a healthy node may take to be seen as one."""
        return (self.rise + 1) * self.check_interval_ns

    def config(self) -> dict[str, object]:
        """As it stands in a report."""
        return {
            "check_interval_ms": self.check_interval_ns / NS_PER_MS,
            "fall": self.fall,
            "rise": self.rise,
            "deregistration_seconds": self.deregistration_ns / NS_PER_S,
        }
