"""The figures of one trial, whoever measured it.

The twelve names of :class:`Metric` and their meanings are the ancestor's, so that its
results and ours stand in one table. A trial is first reduced to its :class:`Instants`;
those figures are differences of them and nothing else. What only we measure has names
of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pytest_drainwatch.core.interval import Interval


class Metric(StrEnum):
    """A figure's name in aggregates."""

    FIRST_TCP = "trigger_to_first_tcp_terminal_ms"
    LAST_TCP = "trigger_to_last_tcp_terminal_ms"
    FIRST_UDP = "trigger_to_first_udp_terminal_ms"
    LAST_UDP = "trigger_to_last_udp_terminal_ms"
    ENDPOINT_REMOVED = "trigger_to_endpoint_removed_ms"
    CONTAINER_TERMINATED = "trigger_to_container_terminated_ms"
    DEAD_WINDOW = "tcp_dead_before_endpoint_removed_ms"
    FIRST_UDP_TO_EXIT = "udp_first_terminal_minus_container_exit_ms"
    LAST_UDP_TO_EXIT = "udp_last_terminal_minus_container_exit_ms"
    SIGTERM = "trigger_to_sigterm_ms"
    SIGTERM_TO_READY_FALSE = "sigterm_to_ready_false_ms"
    SIGTERM_TO_REMOVED = "sigterm_to_endpoint_removed_ms"


class OwnMetric(StrEnum):
    """A duration that the ancestor does not measure; 0 where surely no connection failed.

    From the first new connection that failed to the last one; and the time for which those
    that failed stand, each until the next one was due: of TCP and of UDP, added up. From the
    first HTTP request that failed to the last one.
    """

    NEW_TCP_FAILING = "new_tcp_connections_failing_ms"
    NEW_UDP_FAILING = "new_udp_ports_failing_ms"
    NEW_FAILED = "new_connections_failed_for_ms"
    HTTP_FAILING = "http_requests_failing_ms"


class Tally(StrEnum):
    """A number of things in a trial that must not be, whose bounds hold what is not known."""

    TARGET_FLOWS_LOST = "target_flows_lost"  # not drained, and not alive at the end
    BYSTANDER_FLOWS_LOST = "bystander_flows_lost"
    NEW_CONNECTIONS_FAILED = "new_connections_failed"  # of those tried since the trigger
    HTTP_REQUESTS_FAILED = "http_requests_failed"  # of those since the trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An instant since t = 0, or a duration: as it is shown, and within which bounds.

    ``shown_ns`` is one number for a table. ``within`` holds the truth as far as it is
    known; None when the source kept no bounds, which does not make the number exact.
    """

    shown_ns: int
    within: Interval | None = None

    @classmethod
    def of(cls, within: Interval) -> Reading:
        """Known within bounds, shown at its upper one: by then it had happened."""
        return cls(shown_ns=within.hi, within=within)

    def __sub__(self, other: Reading) -> Reading:
        """The difference; where one side has bounds, the other counts as what it shows."""
        shown_ns = self.shown_ns - other.shown_ns
        if self.within is None and other.within is None:
            return Reading(shown_ns=shown_ns)
        return Reading(shown_ns=shown_ns, within=self._bounds() - other._bounds())

    def _bounds(self) -> Interval:
        return Interval.point(self.shown_ns) if self.within is None else self.within


@dataclass(frozen=True, slots=True, kw_only=True)
class Instants:
    """What happened in a trial, counted from its trigger; None is not measured."""

    first_tcp_end: Reading | None = None
    last_tcp_end: Reading | None = None
    first_udp_end: Reading | None = None
    last_udp_end: Reading | None = None
    sigterm: Reading | None = None
    ready_false: Reading | None = None
    endpoint_removed: Reading | None = None
    container_terminated: Reading | None = None


def metrics(at: Instants) -> Mapping[Metric, Reading | None]:
    """All figures, in the ancestor's order; None where an instant of it is missing."""
    return {
        Metric.FIRST_TCP: at.first_tcp_end,
        Metric.LAST_TCP: at.last_tcp_end,
        Metric.FIRST_UDP: at.first_udp_end,
        Metric.LAST_UDP: at.last_udp_end,
        Metric.ENDPOINT_REMOVED: at.endpoint_removed,
        Metric.CONTAINER_TERMINATED: at.container_terminated,
        Metric.DEAD_WINDOW: _between(at.last_tcp_end, at.endpoint_removed),
        Metric.FIRST_UDP_TO_EXIT: _between(at.container_terminated, at.first_udp_end),
        Metric.LAST_UDP_TO_EXIT: _between(at.container_terminated, at.last_udp_end),
        Metric.SIGTERM: at.sigterm,
        Metric.SIGTERM_TO_READY_FALSE: _between(at.sigterm, at.ready_false),
        Metric.SIGTERM_TO_REMOVED: _between(at.sigterm, at.endpoint_removed),
    }


def first_of(ends: Sequence[Reading]) -> Reading | None:
    """When the first of several things happened."""
    return _extreme(ends, min)


def last_of(ends: Sequence[Reading]) -> Reading | None:
    """When the last of several things had happened."""
    return _extreme(ends, max)


def _extreme(ends: Sequence[Reading], pick: Callable[[Iterable[int]], int]) -> Reading | None:
    if not ends:
        return None
    known = [end.within for end in ends if end.within is not None]
    within = None
    if len(known) == len(ends):
        within = Interval(pick(at.lo for at in known), pick(at.hi for at in known))
    return Reading(shown_ns=pick(end.shown_ns for end in ends), within=within)


def _between(start: Reading | None, end: Reading | None) -> Reading | None:
    return None if start is None or end is None else end - start
