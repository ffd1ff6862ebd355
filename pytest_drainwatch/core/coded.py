"""What is known of one among many things that were recorded as a run of alike ones.

Of the first and the last of a run the begin is known exactly. One between them was begun in a
later slot than those before it, never before its slot's time, and later after it by no more
than any was. Where only each ``every``-th slot was used they are at least so many slots apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When they are due, and by how much each was late at most."""

    epoch_ns: int
    period_ns: int
    late_ns: int

    def slot_ns(self, slot: int) -> int:
        """The time of a slot."""
        return self.epoch_ns + slot * self.period_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedRun(ABC):
    """``count`` of them in the order of their slots; ``schedule`` None: it is not known."""

    first_slot: int
    last_slot: int
    count: int
    first_ns: int
    last_ns: int
    schedule: Schedule | None
    every: int = 1

    @abstractmethod
    def over_hi(self, k: int) -> int:
        """How number ``k`` (from 0) went was known by then; never falls with ``k``."""

    def begun_lo(self, k: int) -> int:
        """Number ``k`` was not begun before this."""
        if k == self.count - 1:
            return self.last_ns
        if k == 0 or self.schedule is None:
            return self.first_ns
        due_ns = self.schedule.slot_ns(self.first_slot + k * self.every)
        return min(self.last_ns, max(self.first_ns, due_ns))

    def begun_hi(self, k: int) -> int:
        """Number ``k`` was begun by then; never falls with ``k``."""
        if k == 0:
            return self.first_ns
        if self.schedule is None or k == self.count - 1:
            return self.last_ns
        due_ns = self.schedule.slot_ns(self.last_slot - (self.count - 1 - k) * self.every)
        return min(self.last_ns, max(self.first_ns, due_ns + self.schedule.late_ns))

    def first_not_over(self, at_ns: int) -> int:
        """All before this one were surely over before ``at_ns``."""
        return bisect_left(range(self.count), at_ns, key=self.over_hi)

    def first_begun_after(self, at_ns: int) -> int:
        """This one and all later ones were surely begun after ``at_ns``."""
        return bisect_right(range(self.count), at_ns, key=self.begun_lo)

    def first_not_begun(self, at_ns: int) -> int:
        """All before this one were surely begun before ``at_ns``."""
        return bisect_left(range(self.count), at_ns, key=self.begun_hi)

    def first_may_begin_after(self, at_ns: int) -> int:
        """All before this one were surely begun by ``at_ns``."""
        return bisect_right(range(self.count), at_ns, key=self.begun_hi)
