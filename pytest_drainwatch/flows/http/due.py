"""When lanes ask: a function of epoch, plan and the lane's number, and of no answer.

Lanes that ask throughout have slots on a grid of their own, staggered by the golden ratio. The
others ask once for each planned trigger: idle ones within some seconds after it, no two at once,
and those in flight before it, by a tenth to nine tenths of what their answer takes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from pytest_drainwatch.core.http.ending import LaneKind
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.flows.density import Densities
from pytest_drainwatch.flows.http.config import HttpConfig
from pytest_drainwatch.flows.http.lane import OPENING, Lane
from pytest_drainwatch.flows.lateness import Book
from pytest_drainwatch.flows.probing.slots import Slots
from pytest_drainwatch.flows.schedule import phase_ns

OPENING_APART_NS = 10 * NS_PER_MS
REOPEN_NS = NS_PER_S // 2
SAME_TRIGGER_NS = NS_PER_S // 2


class Due(ABC):
    """When one lane asks next."""

    once = False  # whether it asks but once around a trigger

    def __init__(self, lane: Lane, config: HttpConfig) -> None:
        self.lane = lane
        self._config = config

    @property
    @abstractmethod
    def next_ns(self) -> int | None:
        """When it is due; None: nothing is."""

    @property
    def planned(self) -> bool:
        """Whether a request that was planned for the trigger is still to come."""
        return False

    @abstractmethod
    def fire(self, now_ns: int) -> None:
        """Ask what is due."""

    @abstractmethod
    def plan(self, trigger_ns: int | None, now_ns: int) -> None:
        """There is a new plan, with this time of the trigger."""

    @abstractmethod
    def end(self, at_ns: int) -> None:
        """Nothing more is asked."""

    @abstractmethod
    def book(self, end_ns: int) -> Book:
        """How late it was, and what it missed."""


class Periodic(Due):
    """A lane that asks throughout, from ``from_ns`` on; ``number`` counts all lanes, from 1."""

    def __init__(
        self, lane: Lane, config: HttpConfig, densities: Densities, from_ns: int, number: int
    ) -> None:
        super().__init__(lane, config)
        period_ns = config.period_ns
        self.epoch_ns = from_ns + phase_ns(number, period_ns)
        self._densities = densities
        self._slots = Slots(
            densities, lane.name, epoch_ns=self.epoch_ns, interval_ns=period_ns, every=1
        )

    @property
    def next_ns(self) -> int | None:
        return self._slots.next_ns

    def fire(self, now_ns: int) -> None:
        turn = self._slots.take(now_ns)
        if turn is not None:
            request = self.lane.ask(turn.slot, self._config.path, self._config.timeout_ns)
            late_ns = request.begun_ns - self._slots.time_ns(turn.slot)
            turn.book.lateness.add(max(0, late_ns))

    def plan(self, trigger_ns: int | None, now_ns: int) -> None:
        self._slots.replanned()

    def end(self, at_ns: int) -> None:
        # A slot that was due just now is neither taken nor missed.
        self._slots.skip(at_ns)

    def book(self, end_ns: int) -> Book:
        whole = Book()
        for stretch in self._densities.until(end_ns):
            whole.add(stretch.book(self.lane.name))
        return whole


class Once(Due):
    """A lane that asks once around each planned trigger; before that, once to open."""

    once = True

    def __init__(self, lane: Lane, config: HttpConfig, open_ns: int) -> None:
        super().__init__(lane, config)
        self.trigger_ns: int | None = None
        self._open_ns: int | None = open_ns
        self._due_ns: int | None = None
        self._asked_for_ns: int | None = None  # the trigger around which it asked last
        self._slot = 0
        self._book = Book()

    @property
    def next_ns(self) -> int | None:
        times = [at for at in (self._open_ns, self._due_ns) if at is not None]
        return min(times, default=None)

    @property
    def planned(self) -> bool:
        return self._due_ns is not None

    @property
    def _slack_ns(self) -> int:
        """A plan whose trigger is later by less means the same one: what was asked for it is
        in flight then as well, half of a tenth of its answer before it is over.
        """
        if self.lane.kind is LaneKind.IDLE:
            return SAME_TRIGGER_NS
        return min(SAME_TRIGGER_NS, self._config.in_flight_ns // 20)

    def fire(self, now_ns: int) -> None:
        config, due_ns = self._config, self._due_ns
        if due_ns is not None and due_ns <= now_ns:
            self._due_ns = None
            self._asked_for_ns = self.trigger_ns
            path, patience_ns = config.path, config.timeout_ns
            if self.lane.kind is LaneKind.IN_FLIGHT:
                path = config.in_flight_path or path
                patience_ns += config.in_flight_ns
            request = self.lane.ask(self._slot, path, patience_ns)
            self._slot += 1
            self._book.lateness.add(max(0, request.begun_ns - due_ns))
        elif self._open_ns is not None and self._open_ns <= now_ns:
            self._open_ns = None
            self.lane.ask(OPENING, config.path, config.timeout_ns, opening=True)

    def plan(self, trigger_ns: int | None, now_ns: int) -> None:
        asked_ns, self.trigger_ns = self._asked_for_ns, trigger_ns
        number = self.lane.index + 1
        if trigger_ns is None:
            self._due_ns = None
        elif asked_ns is not None and trigger_ns - asked_ns < self._slack_ns:
            return  # it asked for this very trigger
        elif self.lane.kind is LaneKind.IDLE:
            self._due_ns = trigger_ns + phase_ns(number, self._config.idle_within_ns)
            if self.lane.pooled is None and not self.lane.waiting and self._open_ns is None:
                self._open_ns = now_ns  # the trigger before this one has cost it its connection
        else:
            tenth = self._config.in_flight_ns // 10
            self._due_ns = max(now_ns, trigger_ns - tenth - phase_ns(number, 8 * tenth))

    def reopen(self, now_ns: int) -> bool:
        """Open again, a little later, if that is before the trigger; whether it will be."""
        open_ns = now_ns + REOPEN_NS
        if self.trigger_ns is not None and open_ns >= self.trigger_ns:
            return False
        self._open_ns = open_ns
        return True

    def end(self, at_ns: int) -> None:
        if self._due_ns is not None:
            self._due_ns = None
            self.lane.not_sent(self._slot, at_ns)

    def book(self, end_ns: int) -> Book:
        return self._book
