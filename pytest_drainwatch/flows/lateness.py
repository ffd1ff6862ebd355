"""How late slots were taken or given up, in little memory."""

from __future__ import annotations


class Lateness:
    """A histogram with 1.6 % wide buckets and the exact maximum."""

    _BITS = 6

    def __init__(self) -> None:
        self.count = 0
        self.max_ns = 0
        self._buckets: dict[int, int] = {}

    def add(self, late_ns: int, count: int = 1) -> None:
        """Count a slot, or several that were late by about the same."""
        self.count += count
        if late_ns > self.max_ns:
            self.max_ns = late_ns
        shift = max(0, late_ns.bit_length() - self._BITS - 1)
        bucket = ((late_ns >> shift) + 1 << shift) - 1  # upper edge
        self._buckets[bucket] = self._buckets.get(bucket, 0) + count

    def merge(self, other: Lateness) -> None:
        """Count the slots of ``other`` as well."""
        self.count += other.count
        self.max_ns = max(self.max_ns, other.max_ns)
        for edge, count in other._buckets.items():
            self._buckets[edge] = self._buckets.get(edge, 0) + count

    def quantile_ns(self, q: float) -> int | None:
        """The upper edge of the bucket that holds the quantile."""
        left = q * self.count
        for edge in sorted(self._buckets):
            left -= self._buckets[edge]
            if left <= 0:
                return min(edge, self.max_ns)
        return None


MISSED_APART = 16  # so many slots of a flow's gap are booked with a lateness of their own


class Book:
    """What the flows of one transport sent in one stretch, and what they did not.

    A missed slot is as late as it was when it was given up. Were it left out, an agent
    that slept for seconds would seem to be late by one period at most.
    """

    __slots__ = ("flows", "lateness", "missed")

    def __init__(self) -> None:
        self.flows = 0  # that had a slot in it
        self.missed = 0
        self.lateness = Lateness()

    @property
    def sends(self) -> int:
        """Slots that were taken."""
        return self.lateness.count - self.missed

    def miss(self, late_ns: int, period_ns: int, count: int) -> None:
        """``count`` slots one period apart, the first of which is late by ``late_ns``.

        Of many, neighbours are booked with the first of them: too late, never too early.
        """
        self.missed += count
        step = -(-count // MISSED_APART) or 1
        for first in range(0, count, step):
            self.lateness.add(late_ns - first * period_ns, min(step, count - first))

    def told(self) -> dict[str, object]:
        """As observations hold it."""
        late = self.lateness
        return {
            "sends": self.sends,
            "missed_slots": self.missed,
            "late_p50_ns": late.quantile_ns(0.5),
            "late_p99_ns": late.quantile_ns(0.99),
            "late_max_ns": late.max_ns if late.count else None,
        }

    def add(self, other: Book) -> None:
        """Book what ``other`` holds as well; flows are not summed, they are the same ones."""
        self.missed += other.missed
        self.lateness.merge(other.lateness)
