"""When to send: an open-loop plan that no reply can move.

Slot ``n`` of flow ``i`` lies at ``epoch + phase(i) + n * period``. Phases follow
the golden ratio, so any number of flows is spread evenly over the period without
randomness. A slot that is missed by a whole period is counted and not made up for:
a burst would measure the burst.
"""

from __future__ import annotations

import heapq
from typing import Protocol

GOLDEN_64 = 0x9E3779B97F4A7C15  # 2**64 / golden ratio


def phase_ns(index: int, period_ns: int) -> int:
    """Where in its period flow ``index`` sends; exact integer arithmetic."""
    return (index * GOLDEN_64 % 2**64) * period_ns >> 64


def first_slot_ns(epoch_ns: int, index: int, period_ns: int, now_ns: int) -> int:
    """The flow's first slot that is not before ``now_ns``."""
    first = epoch_ns + phase_ns(index, period_ns)
    return first + max(0, -(-(now_ns - first) // period_ns)) * period_ns


class Sender(Protocol):
    """What the schedule drives."""

    sending: bool

    @property
    def period_ns(self) -> int:
        """Its slots' distance."""


class Schedule:
    """The due times of all flows in one heap: one timer serves thousands of flows."""

    def __init__(self, epoch_ns: int) -> None:
        self.epoch_ns = epoch_ns
        self.missed = 0
        self._heap: list[tuple[int, int, Sender]] = []
        self._order = 0

    def add(self, flow: Sender, index: int, now_ns: int) -> None:
        """Let ``flow`` send from its next slot on."""
        slot = first_slot_ns(self.epoch_ns, index, flow.period_ns, now_ns)
        self._order += 1  # breaks ties, so that flows are never compared
        heapq.heappush(self._heap, (slot, self._order, flow))

    @property
    def next_ns(self) -> int | None:
        """When the next slot is due."""
        return self._heap[0][0] if self._heap else None

    def take(self, now_ns: int) -> tuple[int, Sender] | None:
        """A due slot and its flow, or None. Slots that are a period late are missed."""
        heap = self._heap
        while heap and heap[0][0] <= now_ns:
            slot, order, flow = heap[0]
            if not flow.sending:
                heapq.heappop(heap)
                continue
            period_ns = flow.period_ns
            missed = (now_ns - slot) // period_ns
            self.missed += missed
            slot += missed * period_ns
            heapq.heapreplace(heap, (slot + period_ns, order, flow))
            return slot, flow
        return None


class Lateness:
    """How late sends were: a histogram with 1.6 % wide buckets and the exact maximum."""

    _BITS = 6

    def __init__(self) -> None:
        self.count = 0
        self.max_ns = 0
        self._buckets: dict[int, int] = {}

    def add(self, late_ns: int) -> None:
        """Count one send."""
        self.count += 1
        if late_ns > self.max_ns:
            self.max_ns = late_ns
        shift = max(0, late_ns.bit_length() - self._BITS - 1)
        bucket = ((late_ns >> shift) + 1 << shift) - 1  # upper edge
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1

    def quantile_ns(self, q: float) -> int | None:
        """The upper edge of the bucket that holds the quantile."""
        left = q * self.count
        for edge in sorted(self._buckets):
            left -= self._buckets[edge]
            if left <= 0:
                return min(edge, self.max_ns)
        return None
