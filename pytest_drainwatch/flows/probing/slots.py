"""Which slots a prober tries: a function of epoch, interval and plan, and of nothing it sees.

Slot ``n`` lies at ``epoch + n * interval`` throughout. Where the plan is dense every slot is
tried, elsewhere each ``every``-th, so an attempt's time follows from its slot alone. A slot
that is over when the next one is due is missed: counted where it lies, not made up for.
"""

from __future__ import annotations

from typing import NamedTuple

from pytest_drainwatch.flows.density import Densities, Stretch
from pytest_drainwatch.flows.lateness import Book


class Turn(NamedTuple):
    """A slot to try now, how far apart those are that are tried around it, and its books."""

    slot: int
    every: int
    book: Book


class Slots:
    """One prober's place in the plan."""

    def __init__(
        self, densities: Densities, name: str, *, epoch_ns: int, interval_ns: int, every: int
    ) -> None:
        self.epoch_ns, self._interval_ns = epoch_ns, interval_ns
        self._densities, self._name, self._sparse_every = densities, name, every
        self._begin = 0  # no slot before this is tried any more
        self._slot, self._stretch = self._planned(0, densities.first)

    @property
    def next_ns(self) -> int:
        """When the next slot is due."""
        return self.time_ns(self._slot)

    def time_ns(self, slot: int) -> int:
        """When a slot is due."""
        return self.epoch_ns + slot * self._interval_ns

    def every(self, stretch: Stretch) -> int:
        """Each so many-th slot of a stretch is tried."""
        return 1 if stretch.dense else self._sparse_every

    def replanned(self) -> None:
        """There is a new plan; what was due before it still is."""
        self._slot, self._stretch = self._planned(self._begin, self._densities.first)

    def take(self, now_ns: int) -> Turn | None:
        """The last slot that is due, if one is; those before it are missed."""
        if self.next_ns > now_ns:
            return None
        self.skip(now_ns)
        slot, stretch = self._slot, self._stretch
        self._begin = slot + 1
        self._slot, self._stretch = self._planned(slot + 1, stretch)
        return Turn(slot, self.every(stretch), stretch.book(self._name))

    def skip(self, now_ns: int) -> None:
        """All slots but the last that is due are missed."""
        slot, stretch = self._slot, self._stretch
        while (slot_ns := self.time_ns(slot)) <= now_ns:
            every = self.every(stretch)
            period_ns = every * self._interval_ns
            passed = (min(now_ns, stretch.hi_ns - 1) - slot_ns) // period_ns
            self._slot, self._stretch = slot + passed * every, stretch
            slot, stretch = self._planned(self._slot + 1, stretch)
            if self.time_ns(slot) <= now_ns:
                passed += 1
            self._stretch.book(self._name).miss(now_ns - slot_ns, period_ns, passed)

    def _planned(self, slot: int, stretch: Stretch) -> tuple[int, Stretch]:
        """The first slot to try that is not before ``slot``, which is not before ``stretch``."""
        while True:
            # Upwards, as all divisions here: no slot of a stretch lies before it.
            first = max(slot, -(-(stretch.lo_ns - self.epoch_ns) // self._interval_ns))
            every = self.every(stretch)
            found = -(-first // every) * every
            if self.time_ns(found) < stretch.hi_ns:
                return found, stretch
            assert stretch.next is not None, "the last stretch has no end"
            stretch = stretch.next
