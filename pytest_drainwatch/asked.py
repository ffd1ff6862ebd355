"""What the tests of a run ask for, as far as it can be told before anything starts."""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.session import RUN

if TYPE_CHECKING:
    from pytest_drainwatch.core.scenario import ClusterNeeds, Scenario

# About what a trial takes beside settling and observing (deployment, preflight, clearing up),
# and the start of a cluster.
AROUND_S, CLUSTER_S = 8, 5
EXPECTED_ARMS = (
    'expected @pytest.mark.parametrize("arms", [arms(Scenario(), FIELD, {NAME: VALUE, ...})]), '
    "with brackets around the arms: they are one value, which one test gets"
)
# What check_items() has to say of an item, where it cannot be said at once.
REFUSED = pytest.StashKey[str]()
FIXTURES = frozenset({"trial", "dw_flows", "dw_probe", "dw_namespace"})


def forecast(config: pytest.Config, items: Iterable[pytest.Item]) -> list[str]:
    """Said before the wait: how many trials, how long about, and what is unusual."""
    planned: list[Scenario] = []
    for item in items:
        # An impossible scenario has been refused by check_items(), which comes first.
        with suppress(ValueError):
            planned.extend(map(config.stash[RUN].settings.apply, _scenarios_of(item)))
    if not planned:
        return []
    seconds = sum(map(_seconds, planned)) + CLUSTER_S * len({asked.cluster for asked in planned})
    flags = sorted({f"{asked.id}: {flag}" for asked in planned for flag in asked.flags})
    unusual = Counter(words for asked in planned if (words := _in_words(asked.cluster)))
    return [
        f"drainwatch: {len(planned)} trial(s), about {seconds:.0f} s one after the other",
        *(f"drainwatch: {number} of them on {words}" for words, number in unusual.items()),
        *(f"drainwatch: note: {flag}" for flag in flags),
    ]


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
    for marker in item.iter_markers("trial"):
        if marker.args or marker.kwargs:
            given = ", ".join([*map(repr, marker.args), *marker.kwargs])
            return f"{item.nodeid}: @pytest.mark.trial takes no arguments, got: {given}"
    return None


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


def _scenarios_of(item: pytest.Item) -> Sequence[Scenario]:
    """Every trial of a test, as far as its parameters tell."""
    if arms := arms_of(item):
        return arms
    if not FIXTURES & set(getattr(item, "fixturenames", ())):
        return ()
    from pytest_drainwatch.core.scenario import Scenario

    callspec = getattr(item, "callspec", None)
    asked = callspec.params.get("scenario") if callspec else None
    return (asked if isinstance(asked, Scenario) else Scenario(),)


def _seconds(asked: Scenario) -> float:
    """How long its trial takes, about: a pod's endpoint must be stable for two sync periods."""
    period_ms = asked.cluster.min_sync_period_ms
    late_s = 0 if period_ms is None else 2 * (period_ms - 1000) / 1000
    return asked.expected_ns / NS_PER_S + AROUND_S + late_s


def _in_words(needs: ClusterNeeds) -> str:
    """What is said of a cluster that is not the run's usual one; of that nothing."""
    from pytest_drainwatch.core.scenario.needs import in_words

    return in_words(needs.kube_version, needs.proxy_mode, needs.min_sync_period_ms)
