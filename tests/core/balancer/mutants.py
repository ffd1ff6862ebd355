"""Balancers that make one mistake each: what the tests of this folder must tell from ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from pytest_drainwatch.core.balancer.machine import Backend, Balancer, State


class DrainIsRemoval(Balancer):
    """Treating DRAIN as removal."""

    __slots__ = ()

    def drain(self, name: str, timeout: int | None = None) -> Self:
        kept = tuple(each for each in self.backends if each is not self.backend(name))
        return replace(self, backends=kept)


class DrainForgets(Balancer):
    """A drained backend that does not keep its in-flight count."""

    __slots__ = ()

    def drain(self, name: str, timeout: int | None = None) -> Self:
        drained = super().drain(name, timeout)
        return drained._with(replace(drained.backend(name), in_flight=0))


class RemovableTooEarly(Balancer):
    """Declaring a backend removable while requests are in flight and no deadline is reached."""

    __slots__ = ()

    def obstacle(self, backend: Backend) -> str | None:
        return super().obstacle(backend) if backend.state is State.ACTIVE else None


class DeadlineTooEarly(Balancer):
    """The same by one unit of time."""

    __slots__ = ()

    def obstacle(self, backend: Backend) -> str | None:
        return super(DeadlineTooEarly, replace(self, now=self.now + 1)).obstacle(backend)


class DeadlineTooLate(Balancer):
    """Once now is past the deadline, instead of once it has reached it."""

    __slots__ = ()

    def obstacle(self, backend: Backend) -> str | None:
        return super(DeadlineTooLate, replace(self, now=self.now - 1)).obstacle(backend)


class DropsSilently(Balancer):
    """REMOVE that does not report how many requests were killed."""

    __slots__ = ()

    def remove(self, name: str) -> tuple[Self, int]:
        return super().remove(name)[0], 0


class ResetsTheCounter(Balancer):
    """Resetting the rotation counter when the active set changes."""

    __slots__ = ()

    def drain(self, name: str, timeout: int | None = None) -> Self:
        return replace(super().drain(name, timeout), counter=0)


class ResetsTheCounterOnUndrain(Balancer):
    """The same when a backend comes back."""

    __slots__ = ()

    def undrain(self, name: str) -> Self:
        return replace(super().undrain(name), counter=0)


class StartsTheCounterAgain(Balancer):
    """The same with a new pool."""

    __slots__ = ()

    def pool(self, names: Sequence[str]) -> Self:
        return replace(super().pool(names), counter=0)


class AdvancesPastTheDrained(Balancer):
    """A turn for every backend in the pool, drained ones passed over."""

    __slots__ = ()

    def pick(self) -> tuple[Self, str]:
        past = self
        for _ in self.backends:
            turn = past.backends[past.counter % len(past.backends)]
            past = replace(past, counter=past.counter + 1)
            if turn.state is State.ACTIVE:
                return past.dispatch(turn.name), turn.name
        return super().pick()


class UndrainForgets(Balancer):
    """Letting UNDRAIN forget the in-flight count."""

    __slots__ = ()

    def undrain(self, name: str) -> Self:
        back = super().undrain(name)
        return back._with(replace(back.backend(name), in_flight=0))


class DrainReceives(Balancer):
    """A flag that nobody looks at."""

    __slots__ = ()

    def actives(self) -> tuple[Backend, ...]:
        return self.backends

    def dispatch(self, name: str) -> Self:
        backend = self.backend(name)
        return self._with(replace(backend, in_flight=backend.in_flight + 1))


class NeverForced(Balancer):
    """Drain for ever: a deadline that changes nothing."""

    __slots__ = ()

    def obstacle(self, backend: Backend) -> str | None:
        return super().obstacle(replace(backend, deadline=None))


class DoneBelowZero(Balancer):
    """A completion of what nobody dispatched."""

    __slots__ = ()

    def done(self, name: str) -> Self:
        backend = self.backend(name)
        return self._with(replace(backend, in_flight=backend.in_flight - 1))


MUTANTS: tuple[type[Balancer], ...] = (
    *(DrainIsRemoval, DrainForgets, RemovableTooEarly, DeadlineTooEarly, DeadlineTooLate),
    *(DropsSilently, ResetsTheCounter, ResetsTheCounterOnUndrain, StartsTheCounterAgain),
    *(AdvancesPastTheDrained, UndrainForgets, DrainReceives, NeverForced, DoneBelowZero),
)
