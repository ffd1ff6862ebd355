"""The order in which a run measures: against drift, and with few clusters started.

Without xdist repeats are interleaved: first r00 of every scenario, then every r01, so that a
machine that slows down during the run slows all of them alike. A worker of xdist has the order
that :mod:`pytest_drainwatch.planning.dealing` makes, which is about the run's length alone:
there one scenario's repeats may follow each other, and other workers measure other scenarios
meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.planning import asked, dealing, repeating
from pytest_drainwatch.planning.dealing import Work
from pytest_drainwatch.session import RUN

if TYPE_CHECKING:
    from pytest_drainwatch.core.scenario import Scenario

# About what a trial takes beside settling and observing: deployment, preflight, clearing up.
AROUND_S = 8


def in_turn(config: pytest.Config, items: Sequence[pytest.Item]) -> Sequence[pytest.Item]:
    """Within each module r00 of all tests, then r01, …; what is not repeated keeps its place.

    Only as many clusters take turns as live at once: those that need another one are measured
    when these had all their repeats, else each repeat would start a cluster.
    """
    found: list[pytest.Item] = []
    for _, module in groupby(items, key=lambda item: item.nodeid.partition("::")[0]):
        tests = list(module)
        places = [at for at, item in enumerate(tests) if repeating.is_repeated(item)]
        for at, item in zip(places, _in_turn(config, [tests[at] for at in places]), strict=True):
            tests[at] = item
        found += tests
    return found


def dealt(
    config: pytest.Config, items: Sequence[pytest.Item], mode: str, workers: int
) -> list[pytest.Item]:
    """The order in which each of ``workers`` should have its tests; the same in all of them."""
    works = [work_of(config, item) for item in items]
    return [items[at] for at in dealing.dealt(works, mode, workers, alive=alive_at_once(config))]


def alive_at_once(config: pytest.Config) -> int:
    """How many clusters stay open for later trials."""
    from pytest_drainwatch.pool import MOST_ALIVE

    return MOST_ALIVE if config.stash[RUN].settings.fresh_cluster == "session" else 1


def work_of(config: pytest.Config, item: pytest.Item) -> Work:
    """What a test costs its worker; a trial that only the test's body knows is a usual one."""
    known = asked.applied(config, item)
    if not known and not repeating.measures(item):
        return Work()
    from pytest_drainwatch.core.scenario import Scenario

    fresh = config.stash[RUN].settings.fresh_cluster
    each_of_them = known or [config.stash[RUN].settings.apply(Scenario())]
    # What else than its needs tells a trial's cluster from that of others. Of a test that
    # measures several, or in its body, no other test can take a fresh one over.
    alone = fresh == "trial" or (fresh == "scenario" and not repeating.is_described(item))
    clusters = []
    for number, each in enumerate(each_of_them):
        own = f"{item.nodeid} {number}" if alone else each.id if fresh == "scenario" else ""
        clusters.append(f"{each.cluster} {own}")
    return Work(seconds=sum(map(_seconds, each_of_them)), clusters=tuple(dict.fromkeys(clusters)))


def _in_turn(config: pytest.Config, tests: Sequence[pytest.Item]) -> list[pytest.Item]:
    repeats = [repeating.repeat_of(item) for item in tests]
    if config.stash[RUN].settings.fresh_cluster == "trial":  # whatever the order
        clusters: list[Sequence[str]] = [()] * len(tests)
    else:
        clusters = [work_of(config, item).clusters for item in tests]
    return [tests[at] for at in interleaved(repeats, clusters, alive=alive_at_once(config))]


def interleaved(
    repeats: Sequence[int], clusters: Sequence[Sequence[str]], *, alive: int
) -> list[int]:
    """Places of tests in batches that need ``alive`` clusters, each batch by repeats."""
    batches: list[tuple[set[str], list[int]]] = []
    for place, needed in enumerate(map(set, clusters)):
        for started, members in batches:
            if needed <= started or len(needed | started) <= alive:
                started |= needed
                members.append(place)
                break
        else:
            batches.append((needed, [place]))
    return [at for _, members in batches for at in sorted(members, key=repeats.__getitem__)]


def _seconds(scenario: Scenario) -> float:
    """How long its trial takes, about: a pod's endpoint must be stable for two sync periods."""
    period_ms = scenario.cluster.min_sync_period_ms
    late_s = 0 if period_ms is None else 2 * (period_ms - 1000) / 1000
    return scenario.expected_ns / NS_PER_S + AROUND_S + late_s
