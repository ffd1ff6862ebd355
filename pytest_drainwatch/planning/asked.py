"""What the tests of a run ask for, as far as it can be told before anything starts."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch.planning import repeating
from pytest_drainwatch.session import RUN

if TYPE_CHECKING:
    from pytest_drainwatch.core.scenario import Scenario

EXPECTED_ARMS = (
    'expected @pytest.mark.parametrize("arms", [arms(Scenario(), FIELD, {NAME: VALUE, ...})]), '
    "with brackets around the arms: they are one value, which one test gets"
)
# What check_items() has to say of an item, where it cannot be said at once.
REFUSED = pytest.StashKey[str]()


def check_items(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """What a test asks for and we cannot do is a usage error before anything starts.

    To be called about the tests that will run, after all deselection. A worker of xdist
    has nobody to tell it to, so there it is the error of the test: see :func:`refuse`.
    """
    for item in items:
        problem = _problem_of(config, item)
        if problem is None:
            continue
        if not hasattr(config, "workerinput"):
            raise pytest.UsageError(problem)
        item.stash[REFUSED] = problem


def refuse(item: pytest.Item) -> None:
    """End a test here whose usage error could not be raised before the run."""
    problem = item.stash.get(REFUSED, None)
    if problem is not None:
        pytest.fail(f"usage error: {problem}", pytrace=False)


def _problem_of(config: pytest.Config, item: pytest.Item) -> str | None:
    try:
        if arms := arms_of(item):
            named_arms(config, arms)
        for asked in _scenarios_of(item):
            config.stash[RUN].settings.apply(asked)
    except ValueError as error:
        return f"{item.nodeid} with the options given: {error}"
    marked = repeating.problem_of(item)
    return marked and f"{item.nodeid}: {marked}"


def arms_of(item: pytest.Item) -> Sequence[Scenario]:
    """The arms that a test measures by the fixture ``trials``; empty: none are known yet.

    Raises :class:`~pytest_drainwatch.core.scenario.ScenarioError` if its parameter is no arms.
    """
    if "trials" not in getattr(item, "fixturenames", ()):
        return ()
    params = getattr(getattr(item, "callspec", None), "params", {})
    if "arms" not in params:
        return ()
    try:
        return as_arms(params["arms"])
    except ValueError:
        if _is_given_by_a_mark(item, "arms"):
            raise
        return ()  # a fixture makes of it what it likes; the fixture 'trials' checks that


def as_arms(given: object) -> Sequence[Scenario]:
    """What somebody gave as arms, if it is a list of scenarios.

    Raises :class:`~pytest_drainwatch.core.scenario.ScenarioError` if it is not.
    """
    from pytest_drainwatch.core.scenario import Scenario, ScenarioError

    found = tuple(given) if isinstance(given, Iterable) else ()
    if not found or not all(isinstance(each, Scenario) for each in found):
        seen = f"the scenario {given.id}" if isinstance(given, Scenario) else reprlib.repr(given)
        raise ScenarioError(f"'arms' is {seen}, not a list of scenarios; {EXPECTED_ARMS}")
    return found


def _is_given_by_a_mark(item: pytest.Item, name: str) -> bool:
    """Whether ``@pytest.mark.parametrize`` gives a value to ``name`` that no fixture changes."""
    for marker in item.iter_markers("parametrize"):
        given = dict(zip(("argnames", "argvalues", "indirect"), marker.args, strict=False))
        given |= marker.kwargs
        names, indirect = given.get("argnames", ()), given.get("indirect", False)
        if isinstance(names, str):
            names = [each.strip() for each in names.split(",")]
        if name in names:
            return not (indirect is True or (indirect and name in indirect))
    return False


def named_arms(config: pytest.Config, arms: Sequence[Scenario]) -> dict[str, Scenario]:
    """Arms by their own names, as the options given leave them.

    An option overrides every arm's own value, so it can make two of them one. Raises
    :class:`~pytest_drainwatch.core.scenario.ScenarioError` if these do not compare.
    """
    from pytest_drainwatch.core.scenario import ScenarioError, check_arms

    applied = [config.stash[RUN].settings.apply(asked) for asked in as_arms(arms)]
    check_arms(applied)
    named = dict(zip(arm_names(applied), applied, strict=True))
    if len(named) < len(applied):
        ids = ", ".join(asked.id for asked in applied)
        raise ScenarioError(f"arms are called {ids}; expected a name of its own for each")
    return named


def arm_names(asked: Sequence[Scenario]) -> list[str]:
    """How a question calls its arms; one that was not made as an arm keeps its id."""
    return [each.arm or each.id for each in asked]


def applied(config: pytest.Config, item: pytest.Item) -> list[Scenario]:
    """A test's scenarios as the options leave them; none if check_items() refuses them."""
    with suppress(ValueError):
        return [config.stash[RUN].settings.apply(asked) for asked in _scenarios_of(item)]
    return []


def says_its_scenarios(item: pytest.Item) -> bool:
    """Whether :func:`applied` knows all that the test will measure, and not just how much."""
    names = set(getattr(item, "fixturenames", ()))
    if "drainwatch" in names:
        return False
    if "trials" in names:
        with suppress(ValueError):
            return bool(arms_of(item))
        return False
    given = getattr(getattr(item, "callspec", None), "params", {}).get("scenario")
    if given is not None:
        from pytest_drainwatch.core.scenario import Scenario

        return isinstance(given, Scenario)
    made_by = getattr(item, "_fixtureinfo", None)
    fixtures = made_by.name2fixturedefs.get("scenario", ()) if made_by else ()
    return len(fixtures) == 1  # else somebody's own fixture makes it, when its time comes


def _scenarios_of(item: pytest.Item) -> Sequence[Scenario]:
    """Every trial of a test, as far as its parameters tell."""
    if arms := arms_of(item):
        return arms
    if not repeating.DESCRIBED & set(getattr(item, "fixturenames", ())):
        return ()
    from pytest_drainwatch.core.scenario import Scenario

    callspec = getattr(item, "callspec", None)
    asked = callspec.params.get("scenario") if callspec else None
    return (asked if isinstance(asked, Scenario) else Scenario(),)
