"""What no manifest says: the application's own times, as its owner tells them.

None is "not told". It is never taken for 0: what depends on it is said to be not known.
All are integer nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_drainwatch.core.advisor.balancers import Balancer


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Durations of one application and of the way to it."""

    # How long new connections still come after a deletion: measured, or somebody's estimate.
    propagation_ns: int | None = None
    # How it was measured, in a sentence; None: its owner says it.
    propagation_source: str | None = None
    # After SIGTERM: it goes on accepting, then finishes what runs, closes, flushes.
    wait_ns: int | None = None
    drain_ns: int | None = None
    close_ns: int | None = None
    flush_ns: int | None = None
    # From SIGTERM to the end of its process, as trials of it were measured: all four together.
    shutdown_ns: int | None = None
    shutdown_source: str | None = None
    # What must be left over in the end.
    reserve_ns: int | None = None
    longest_request_ns: int | None = None
    # For how long an idle connection is kept; after how long any is closed, and with which grace.
    keep_alive_ns: int | None = None
    max_connection_age_ns: int | None = None
    max_connection_age_grace_ns: int | None = None
    # How long clients use an old answer of DNS: its TTL, and how often they ask again.
    dns_ttl_ns: int | None = None
    resolve_period_ns: int | None = None
    # Minor version of the cluster: 34 for 1.34.
    kubernetes_minor: int | None = None
    # What stands before the pods; None where no manifest and nobody says.
    balancer: Balancer | None = None

    @property
    def drained_ns(self) -> int | None:
        """The drain as it is told, or else what of the measured time is nobody else's."""
        if self.drain_ns is not None or self.shutdown_ns is None:
            return self.drain_ns
        others = (self.wait_ns, self.close_ns, self.flush_ns)
        return max(0, self.shutdown_ns - sum(ns or 0 for ns in others))
