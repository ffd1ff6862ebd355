"""How densely to act when: the stretches of a plan, for whoever sends, tries or looks by it.

A plan says where to be dense, from some instant on; before the first one comes all is
dense. What lies before that instant stays as it was: a new plan never changes the past.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.flows.lateness import Book

FOREVER_NS = 2**63 - 1


class Stretch:
    """Time ``[lo, hi)`` of one density, and what was done in it."""

    __slots__ = ("books", "dense", "hi_ns", "lo_ns", "next", "quantum_ns")

    def __init__(self, lo_ns: int, hi_ns: int, dense: bool) -> None:
        self.lo_ns, self.hi_ns, self.dense = lo_ns, hi_ns, dense
        self.next: Stretch | None = None  # None: this one never ends
        self.books: dict[str, Book] = {}
        # How long the selector waited at most in it; None: it was not told.
        self.quantum_ns: int | None = None

    def book(self, name: str) -> Book:
        """The books of one transport's flows, or of one prober."""
        found = self.books.get(name)
        if found is None:
            found = self.books[name] = Book()
        return found

    def at(self, now_ns: int) -> Stretch:
        """This one or the later one that ``now_ns`` lies in."""
        found = self
        while found.next is not None and found.hi_ns <= now_ns:
            found = found.next
        return found


class Densities:
    """All stretches, from ``epoch_ns`` on without end or gap."""

    def __init__(self, epoch_ns: int) -> None:
        self.epoch_ns = epoch_ns
        self.first = Stretch(epoch_ns, FOREVER_NS, dense=True)

    def replan(self, dense: Sequence[Interval], now_ns: int) -> None:
        """From ``now_ns`` on be dense within ``dense`` (in order, apart), else sparse."""
        last = self.first.at(now_ns)
        now_ns = max(now_ns, last.lo_ns)
        last.hi_ns, last.next = now_ns, None
        for lo_ns, hi_ns, is_dense in _cut(dense, now_ns):
            if last.dense is is_dense:
                last.hi_ns = hi_ns
            elif last.lo_ns == last.hi_ns:  # nothing of it is left
                last.hi_ns, last.dense = hi_ns, is_dense
            else:
                last.next = Stretch(lo_ns, hi_ns, is_dense)
                last = last.next

    def until(self, end_ns: int) -> Iterator[Stretch]:
        """What was planned up to ``end_ns``."""
        stretch: Stretch | None = self.first
        while stretch is not None and stretch.lo_ns < end_ns:
            yield stretch
            stretch = stretch.next


def _cut(dense: Iterable[Interval], from_ns: int) -> Iterator[tuple[int, int, bool]]:
    """All time from ``from_ns`` on, as ``(lo, hi, dense)`` one after the other."""
    edges = [from_ns]
    for at in dense:
        edges += [max(at.lo, from_ns), max(at.hi, from_ns)]
    edges.append(FOREVER_NS)
    for number, (lo_ns, hi_ns) in enumerate(pairwise(edges)):
        if lo_ns < hi_ns:
            yield lo_ns, hi_ns, number % 2 == 1
