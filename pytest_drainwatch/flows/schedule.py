"""When to send: an open-loop plan that no reply can move.

Time is cut into *stretches*, dense or sparse; each density has a grid of its own, and
slot ``n`` of flow ``i`` lies at ``epoch + phase(i) + n * period`` on it. Phases follow
the golden ratio, so any number of flows is spread evenly over a period without
randomness, and when the density changes each flow changes at its own next slot: no
burst, no two flows in step. A flow's slots are a function of epoch, index and stretches
alone. A slot that is missed by a whole period is counted and not made up for: a burst
would measure the burst.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.flows.density import Densities, Stretch
from pytest_drainwatch.flows.lateness import Book

GOLDEN_64 = 0x9E3779B97F4A7C15  # 2**64 / golden ratio


def phase_ns(index: int, period_ns: int) -> int:
    """Where in its period flow ``index`` sends; exact integer arithmetic."""
    return (index * GOLDEN_64 % 2**64) * period_ns >> 64


def first_slot_ns(epoch_ns: int, index: int, period_ns: int, now_ns: int) -> int:
    """The flow's first slot on that grid that is not before ``now_ns``."""
    first = epoch_ns + phase_ns(index, period_ns)
    return first + max(0, -(-(now_ns - first) // period_ns)) * period_ns


@dataclass(frozen=True, slots=True)
class Cadence:
    """How far apart a flow's slots are, in dense and in sparse stretches."""

    dense_ns: int
    sparse_ns: int


class Sender(Protocol):
    """What the schedule drives."""

    sending: bool
    proto: str
    cadence: Cadence


class Due(NamedTuple):
    """A slot whose time has come, its flow, and where to book it."""

    slot_ns: int
    flow: Sender
    book: Book


class _Turn:
    """One flow's place in the schedule."""

    __slots__ = ("book", "counted", "flow", "index", "plan", "slot_ns", "stretch", "taken_ns")

    def __init__(self, flow: Sender, index: int, from_ns: int, plan: int) -> None:
        self.flow, self.index = flow, index
        self.taken_ns = from_ns - 1  # its last slot
        self.plan = plan  # the one that its next slot comes from
        self.slot_ns: int
        self.stretch: Stretch
        self.counted: Stretch | None = None
        self.book: Book


class Schedule:
    """The due times of all flows in one heap: one timer serves thousands of flows."""

    def __init__(self, epoch_ns: int) -> None:
        self.epoch_ns = epoch_ns
        self.densities = Densities(epoch_ns)
        self._heap: list[tuple[int, int, _Turn]] = []
        self._turns: list[_Turn] = []
        self._pushes = 0
        self._plan = 0
        self._unsettled = 0  # turns before this position may follow an older plan

    def add(self, flow: Sender, index: int, now_ns: int) -> None:
        """Let ``flow`` send from its next slot on."""
        turn = _Turn(flow, index, now_ns, self._plan)
        self._turns.append(turn)
        slot_ns, turn.stretch = self._next(turn, now_ns, self.densities.first)
        self._push(turn, slot_ns)

    @property
    def next_ns(self) -> int | None:
        """When the next slot is due."""
        return self._heap[0][0] if self._heap else None

    def take(self, now_ns: int) -> Due | None:
        """A due slot and its flow, or None. Slots that are a period late are missed."""
        heap = self._heap
        while heap and heap[0][0] <= now_ns:
            slot_ns, push, turn = heap[0]
            if slot_ns != turn.slot_ns or not turn.flow.sending:
                heapq.heappop(heap)  # moved by a plan, or over
                continue
            if turn.plan != self._plan and self._settle_one(turn):
                continue
            stretch, cadence = turn.stretch, turn.flow.cadence
            period_ns = cadence.dense_ns if stretch.dense else cadence.sparse_ns
            next_ns = slot_ns + period_ns
            if next_ns < stretch.hi_ns and next_ns > now_ns:
                book = self._booked(turn, stretch)
            else:
                slot_ns, next_ns, book = self._skip(turn, now_ns)
            turn.taken_ns, turn.slot_ns = slot_ns, next_ns
            heapq.heapreplace(heap, (next_ns, push, turn))
            return Due(slot_ns, turn.flow, book)
        return None

    def replan(self, dense: Sequence[Interval], now_ns: int) -> None:
        """From ``now_ns`` on send densely within ``dense`` (in order, apart), else sparsely.

        To be followed by calls of :meth:`settle` until it says that it is done.
        """
        self.densities.replan(dense, now_ns)
        self._plan += 1
        self._unsettled = len(self._turns)

    def settle(self, most: int) -> bool:
        """Move up to ``most`` flows to their slots in the current plan; True when all are."""
        turns = self._turns
        for _ in range(most):
            if not self._unsettled:
                return True
            self._unsettled -= 1
            turn = turns[self._unsettled]
            if not turn.flow.sending:
                turns[self._unsettled] = turns[-1]
                turns.pop()
            elif turn.plan != self._plan:
                self._settle_one(turn)
        return not self._unsettled

    def _settle_one(self, turn: _Turn) -> bool:
        """Whether the current plan gives the flow another next slot."""
        turn.plan = self._plan
        before_ns = turn.slot_ns
        # The past does not change with a plan: a slot that was due before it stays.
        slot_ns, turn.stretch = self._next(turn, turn.taken_ns + 1, self.densities.first)
        if slot_ns == before_ns:
            return False
        self._push(turn, slot_ns)
        return True

    def _push(self, turn: _Turn, slot_ns: int) -> None:
        turn.slot_ns = slot_ns
        self._pushes += 1  # breaks ties, so that flows are never compared
        heapq.heappush(self._heap, (slot_ns, self._pushes, turn))

    def _next(self, turn: _Turn, from_ns: int, stretch: Stretch) -> tuple[int, Stretch]:
        """The first slot that is not before ``from_ns``, which is not before ``stretch``."""
        cadence = turn.flow.cadence
        while True:
            period_ns = cadence.dense_ns if stretch.dense else cadence.sparse_ns
            if from_ns < stretch.hi_ns:
                start_ns = max(from_ns, stretch.lo_ns)
                slot_ns = first_slot_ns(self.epoch_ns, turn.index, period_ns, start_ns)
                if slot_ns < stretch.hi_ns:
                    return slot_ns, stretch
            assert stretch.next is not None, "the last stretch has no end"
            stretch = stretch.next

    def _skip(self, turn: _Turn, now_ns: int) -> tuple[int, int, Book]:
        """The last slot that is due, the one after it, and the books of the former.

        Those before it are missed, each booked where it lies.
        """
        slot_ns, stretch, cadence = turn.slot_ns, turn.stretch, turn.flow.cadence
        while True:
            period_ns = cadence.dense_ns if stretch.dense else cadence.sparse_ns
            passed = (min(now_ns, stretch.hi_ns - 1) - slot_ns) // period_ns
            book = self._booked(turn, stretch)
            next_ns, following = self._next(turn, slot_ns + passed * period_ns + 1, stretch)
            if next_ns > now_ns:
                book.miss(now_ns - slot_ns, period_ns, passed)
                turn.stretch = following
                return slot_ns + passed * period_ns, next_ns, book
            book.miss(now_ns - slot_ns, period_ns, passed + 1)
            slot_ns, stretch = next_ns, following

    def _booked(self, turn: _Turn, stretch: Stretch) -> Book:
        if turn.counted is not stretch:
            turn.counted = stretch
            turn.book = stretch.book(turn.flow.proto)
            turn.book.flows += 1
        return turn.book
