"""The lesson's common mistakes: a script for each that tells the balancer that makes it."""

from __future__ import annotations

import pytest

from pytest_drainwatch.core.balancer.machine import Balancer
from tests.core.balancer import mutants
from tests.core.balancer.played import play

Told = tuple[list[str], int]  # answers, and how many commands were refused

COUNT_IS_KEPT = ("POOL a b; PICK; DRAIN a; STATUS", (["a", "a DRAIN 1 since 0", "b ACTIVE 0"], 0))
NOT_YET = ("POOL a; PICK; DRAIN a 9; NOW 8; REMOVABLE; REMOVE a", (["a"], 1))
IN_FLIGHT = ("POOL a; PICK; DRAIN a; REMOVABLE; REMOVE a", (["a"], 1))
KILLED = ("POOL a; PICK; PICK; DRAIN a 9; NOW 9; REMOVE a", (["a", "a", "killed 2"], 0))
ROTATION = ("POOL a b c; PICK; PICK; DRAIN a; PICK; PICK", (["a", "b", "b", "c"], 0))
RESET = ("POOL a b c; PICK; DRAIN c; PICK", (["a", "b"], 0))
BACK = ("POOL a b c; PICK; DRAIN c; UNDRAIN c; PICK", (["a", "b"], 0))
FORGETS = ("POOL a; PICK; DRAIN a; UNDRAIN a; STATUS", (["a", "a ACTIVE 1"], 0))
NEW_POOL = ("POOL a b; PICK; DONE a; POOL a b; PICK", (["a", "b"], 0))
NO_NEW = ("POOL a b; DRAIN a; PICK; PICK", (["b", "b"], 0))
BELOW = ("POOL a; DONE a; STATUS", (["a ACTIVE 0"], 1))

CAUGHT: list[tuple[type[Balancer], tuple[str, Told]]] = [
    # Treating DRAIN as removal: it keeps its count and stays listed until it is removed.
    (mutants.DrainIsRemoval, COUNT_IS_KEPT),
    (mutants.DrainForgets, COUNT_IS_KEPT),
    # Declaring a backend removable with requests in flight and no deadline reached.
    (mutants.RemovableTooEarly, IN_FLIGHT),
    (mutants.RemovableTooEarly, NOT_YET),
    (mutants.DeadlineTooEarly, NOT_YET),
    (mutants.DeadlineTooLate, KILLED),
    (mutants.NeverForced, KILLED),
    # Dropping the requests silently.
    (mutants.DropsSilently, KILLED),
    # Resetting the rotation counter, or advancing past the drained backend.
    # (The lesson's own example cannot tell a reset: 2 mod 2 is 0 as well.)
    (mutants.ResetsTheCounter, RESET),
    (mutants.ResetsTheCounterOnUndrain, BACK),
    (mutants.StartsTheCounterAgain, NEW_POOL),
    (mutants.AdvancesPastTheDrained, ROTATION),
    # Letting UNDRAIN forget the in-flight count.
    (mutants.UndrainForgets, FORGETS),
    # Not in the lesson's list.
    (mutants.DrainReceives, NO_NEW),
    (mutants.DoneBelowZero, BELOW),
]


def told(script: str, balancer: Balancer) -> Told:
    played = play(script, balancer)
    return played.answers, len(played.errors)


@pytest.mark.parametrize(("mutant", "case"), CAUGHT, ids=lambda each: getattr(each, "__name__", ""))
def test_the_mistake_shows(mutant: type[Balancer], case: tuple[str, Told]) -> None:
    script, expected = case
    assert told(script, Balancer()) == expected
    assert told(script, mutant()) != expected


def test_every_mutant_is_caught_by_a_script() -> None:
    assert {mutant for mutant, _ in CAUGHT} == set(mutants.MUTANTS)
