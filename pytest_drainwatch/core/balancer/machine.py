"""The states of a load balancer's backends, and what each command makes of them.

    ACTIVE ---- drain ----> DRAIN ---- remove (when removable) ----> gone
       ^                      |
       +------- undrain ------+

A balancer is a value: each command gives the balancer that follows, or raises
:class:`Refused` and nothing happened. Time is a whole number that :meth:`Balancer.at` sets;
its unit is the caller's. docs/balancer.md says which mistakes this avoids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

# So many backends an error names.
NAMED = 8


class Refused(ValueError):
    """A command that cannot be carried out; says what was found and what was expected."""


class State(StrEnum):
    """Whether a backend receives new requests. One that is gone is in no pool."""

    ACTIVE = "ACTIVE"
    DRAIN = "DRAIN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One backend of the pool.

    Attributes:
        in_flight: requests that it holds: dispatched, and not done.
        since: when its drain began; None: it is ACTIVE.
        deadline: when what it then still holds may be killed; None: never.
    """

    name: str
    in_flight: int = 0
    since: int | None = None
    deadline: int | None = None

    @property
    def state(self) -> State:
        return State.ACTIVE if self.since is None else State.DRAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Removable:
    """A backend that may be removed; ``forced``: requests are still in flight on it."""

    name: str
    forced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Balancer:
    """The pool, in its own order.

    Attributes:
        now: the time.
        counter: successful picks so far; never reset, whatever happens to the pool.
    """

    backends: tuple[Backend, ...] = ()
    now: int = 0
    counter: int = 0

    def pool(self, names: Sequence[str]) -> Self:
        """A pool of these, all ACTIVE, instead of the present one, which must hold nothing."""
        if not names:
            raise Refused("a pool of nobody, expected the names of its backends")
        if twice := [name for name, times in Counter(names).items() if times > 1]:
            raise Refused(f"{twice[0]} is named twice, expected each backend once")
        if busy := [each for each in self.backends if each.in_flight]:
            raise Refused(
                f"the present pool holds requests ({_held(busy)}), expected none: a new pool"
                " would drop them silently"
            )
        return replace(self, backends=tuple(Backend(name=name) for name in names))

    def at(self, now: int) -> Self:
        """The same at a later time, or at the same."""
        if now < self.now:
            raise Refused(f"it is {self.now} already, expected no earlier time than that")
        return replace(self, now=now)

    def drain(self, name: str, timeout: int | None = None) -> Self:
        """No new requests for it from here on; those it holds run to completion.

        Of a backend that drains already the beginning stays, and the deadline comes no later.
        """
        backend = self.backend(name)
        since = self.now if backend.since is None else backend.since
        fixed = [] if timeout is None else [self.now + timeout]
        if backend.deadline is not None:
            fixed.append(backend.deadline)
        return self._with(replace(backend, since=since, deadline=min(fixed, default=None)))

    def undrain(self, name: str) -> Self:
        """It receives new requests again, and still holds what it held."""
        return self._with(replace(self.backend(name), since=None, deadline=None))

    def pick(self) -> tuple[Self, str]:
        """Dispatch a request to the backend whose turn it is, and name that.

        One counter turns over the ACTIVE backends of this moment: where the list shrank or
        grew since, another backend's turn may come than a fixed order would give.
        """
        actives = self.actives()
        if not actives:
            raise Refused("no backend is ACTIVE, expected one at least: UNDRAIN or POOL")
        chosen = actives[self.counter % len(actives)].name
        dispatched = self.dispatch(chosen)
        return replace(dispatched, counter=self.counter + 1), chosen

    def dispatch(self, name: str) -> Self:
        """The same for a request that somebody else's rotation sent to this backend."""
        backend = self.backend(name)
        if backend.state is not State.ACTIVE:
            raise Refused(f"{name} is {backend.state}, expected an ACTIVE backend")
        return self._with(replace(backend, in_flight=backend.in_flight + 1))

    def done(self, name: str) -> Self:
        """A request on this backend is complete."""
        backend = self.backend(name)
        if not backend.in_flight:
            raise Refused(f"{name} holds no request, expected one that a PICK sent there")
        return self._with(replace(backend, in_flight=backend.in_flight - 1))

    def removable(self) -> tuple[Removable, ...]:
        """Who may be removed now, in pool order."""
        return tuple(
            Removable(name=each.name, forced=each.in_flight > 0)
            for each in self.backends
            if self.obstacle(each) is None
        )

    def remove(self, name: str) -> tuple[Self, int]:
        """Take a removable backend out; also how many requests that killed."""
        backend = self.backend(name)
        if (why := self.obstacle(backend)) is not None:
            raise Refused(f"{name} {why}")
        left = tuple(each for each in self.backends if each is not backend)
        return replace(self, backends=left), backend.in_flight

    def actives(self) -> tuple[Backend, ...]:
        """Who receives new requests, in pool order."""
        return tuple(each for each in self.backends if each.state is State.ACTIVE)

    def obstacle(self, backend: Backend) -> str | None:
        """Why this backend may not be removed now; None: it may."""
        if backend.state is State.ACTIVE:
            return "is ACTIVE, expected one that drains: DRAIN it first"
        if not backend.in_flight:
            return None
        if backend.deadline is None:
            return (
                f"holds {backend.in_flight} in flight and has no deadline, expected them DONE,"
                " or a deadline: DRAIN it with a timeout"
            )
        if self.now < backend.deadline:
            return (
                f"holds {backend.in_flight} in flight until {backend.deadline} and it is"
                f" {self.now}, expected them DONE or that time reached"
            )
        return None

    def backend(self, name: str) -> Backend:
        """The backend of this name."""
        for each in self.backends:
            if each.name == name:
                return each
        if not self.backends:
            raise Refused(f"no {name} in an empty pool, expected POOL with its backends first")
        known = " ".join(each.name for each in self.backends[:NAMED])
        more = " …" if len(self.backends) > NAMED else ""
        raise Refused(f"no {name} in the pool, expected one of: {known}{more}")

    def _with(self, changed: Backend) -> Self:
        kept = (changed if each.name == changed.name else each for each in self.backends)
        return replace(self, backends=tuple(kept))


def _held(busy: Sequence[Backend]) -> str:
    return ", ".join(f"{each.in_flight} on {each.name}" for each in busy[:NAMED])
