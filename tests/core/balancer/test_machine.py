"""Any stream of commands, against a model that is written another way."""

from __future__ import annotations

from itertools import cycle, islice

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from pytest_drainwatch.core.balancer.machine import Balancer, Refused, Removable, State
from tests.core.balancer.mutants import MUTANTS

NAMES = ["a", "b", "c"]
names = st.sampled_from(NAMES)
UNLIMITED = float("inf")


class Play(RuleBasedStateMachine):
    """A balancer beside lists of requests: the model never counts up or down, it looks."""

    make: type[Balancer] = Balancer

    def __init__(self) -> None:
        super().__init__()
        self.balancer = self.make()
        self.order: list[str] = []
        self.drained: dict[str, tuple[int, float]] = {}  # began, and ends at the latest
        self.time = 0
        # Every request ever picked, as who got it and what became of it.
        self.requests: list[tuple[str, str]] = []
        self.reported_killed = 0

    def open_on(self, name: str) -> list[int]:
        return [at for at, told in enumerate(self.requests) if told == (name, "open")]

    def refused(self, does: object, *arguments: object) -> None:
        before = self.balancer
        with pytest.raises(Refused, match="expected"):
            does(*arguments)  # type: ignore[operator]
        assert self.balancer == before

    def known(self, name: str, does: object, *arguments: object) -> bool:
        if name in self.order:
            return True
        self.refused(does, name, *arguments)
        return False

    @initialize(pool=st.permutations(NAMES), size=st.integers(1, len(NAMES)))
    def begin(self, pool: list[str], size: int) -> None:
        self.order = pool[:size]
        self.balancer = self.balancer.pool(self.order)

    @rule(pool=st.permutations(NAMES), size=st.integers(1, len(NAMES)))
    def pool(self, pool: list[str], size: int) -> None:
        if any(told == "open" for _, told in self.requests):
            self.refused(self.balancer.pool, pool[:size])
            return
        self.order, self.drained = pool[:size], {}
        self.balancer = self.balancer.pool(self.order)

    @rule(later=st.integers(-2, 4))
    def at(self, later: int) -> None:
        if later < 0:
            self.refused(self.balancer.at, self.time + later)
            return
        self.time += later
        self.balancer = self.balancer.at(self.time)

    @rule()
    def pick(self) -> None:
        turns = [name for name in self.order if name not in self.drained]
        if not turns:
            self.refused(self.balancer.pick)
            return
        before = self.balancer.counter
        self.balancer, chosen = self.balancer.pick()
        # So many turns of a wheel with the ACTIVE ones on it.
        assert chosen == next(islice(cycle(turns), len(self.requests), None))
        assert self.balancer.counter == before + 1
        self.requests.append((chosen, "open"))

    @rule(name=names)
    def done(self, name: str) -> None:
        if not self.known(name, self.balancer.done):
            return
        if not self.open_on(name):
            self.refused(self.balancer.done, name)
            return
        self.balancer = self.balancer.done(name)
        self.requests[self.open_on(name)[0]] = (name, "done")

    @rule(name=names, timeout=st.none() | st.integers(0, 4))
    def drain(self, name: str, timeout: int | None) -> None:
        if not self.known(name, self.balancer.drain, timeout):
            return
        began, until = self.drained.get(name, (self.time, UNLIMITED))
        asked = UNLIMITED if timeout is None else self.time + timeout
        self.drained[name] = began, min(until, asked)
        self.balancer = self.balancer.drain(name, timeout)

    @rule(name=names)
    def undrain(self, name: str) -> None:
        if self.known(name, self.balancer.undrain):
            self.drained.pop(name, None)
            self.balancer = self.balancer.undrain(name)

    @rule(name=names)
    def remove(self, name: str) -> None:
        if not self.known(name, self.balancer.remove):
            return
        held = self.open_on(name)
        if name not in self.drained or (held and self.time < self.drained[name][1]):
            self.refused(self.balancer.remove, name)
            return
        self.balancer, killed = self.balancer.remove(name)
        self.reported_killed += killed
        for at in held:
            self.requests[at] = (name, "killed")
        self.order.remove(name)
        del self.drained[name]

    @invariant()
    def the_pool_is_the_models(self) -> None:
        """The removed are gone, the others keep what they hold, through drain and undrain."""
        held = [(each.name, each.in_flight) for each in self.balancer.backends]
        assert held == [(name, len(self.open_on(name))) for name in self.order]
        for each in self.balancer.backends:
            assert each.in_flight >= 0
            assert (each.state is State.DRAIN) == (each.name in self.drained)
            began, until = self.drained.get(each.name, (None, UNLIMITED))
            assert each.since == began
            assert each.deadline == (None if until == UNLIMITED else until)

    @invariant()
    def nothing_is_lost(self) -> None:
        fates = [told for _, told in self.requests]
        in_flight = sum(each.in_flight for each in self.balancer.backends)
        assert self.reported_killed == fates.count("killed")
        assert self.reported_killed + fates.count("done") + in_flight == len(self.requests)
        assert self.balancer.counter == len(self.requests)

    @invariant()
    def who_is_removable(self) -> None:
        assert self.balancer.removable() == tuple(
            Removable(name=name, forced=bool(self.open_on(name)))
            for name in self.order
            if name in self.drained
            and (not self.open_on(name) or self.time >= self.drained[name][1])
        )


TestPlay = Play.TestCase

# To find a mistake, and not to explain it: no shrinking, the same examples each time.
FINDING = settings(
    max_examples=400,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_model_catches_the_mistake(mutant: type[Balancer]) -> None:
    class Mistaken(Play):
        make = mutant

    with pytest.raises((AssertionError, Refused, pytest.fail.Exception)):
        run_state_machine_as_test(Mistaken, settings=FINDING)
