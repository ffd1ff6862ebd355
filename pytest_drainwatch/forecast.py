"""What can be said before the wait: how many trials, how long about, and on how many workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch import asked, dealing, repeating
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.dealing import CLUSTER_S, Work
from pytest_drainwatch.session import RUN

if TYPE_CHECKING:
    from pytest_drainwatch.core.scenario import ClusterNeeds, Scenario

# About what a trial takes beside settling and observing: deployment, preflight, clearing up.
AROUND_S = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Who runs the tests: ``mode`` is xdist's ``--dist``."""

    number: int = 1
    mode: str = "no"
    take_turns: bool = False

    @classmethod
    def of(cls, config: pytest.Config) -> Workers:
        """As a worker was told by its controller; one if there is none."""
        told = getattr(config, "workerinput", {})
        return cls(
            number=int(told.get("workercount", 1)),
            mode=str(told.get("dw_dist", "no")),
            take_turns=bool(told.get("dw_take_turns", False)),
        )


def forecast(config: pytest.Config, items: Sequence[pytest.Item]) -> list[str]:
    """Said before the wait: how many trials, how long about, and what is unusual."""
    planned = [each for item in items for each in asked.applied(config, item)]
    if not planned:
        return []
    flags = sorted({f"{each.id}: {flag}" for each in planned for flag in each.flags})
    unusual = Counter(words for each in planned if (words := _in_words(each.cluster)))
    single = sorted({item.nodeid for item in repeating.once_only(config, items)})
    unnamed = [i for i in items if repeating.measures(i) and not asked.applied(config, i)]
    works = [_work(config, item) for item in items]
    others = f" and those of {len(unnamed)} test(s) that choose in their body" if unnamed else ""
    return [
        f"drainwatch: {len(planned)} trial(s){others}, {duration(works, Workers.of(config))}",
        *(f"drainwatch: {number} of them on {words}" for words, number in unusual.items()),
        *(f"drainwatch: note: {flag}" for flag in flags),
        *(
            f"drainwatch: note: {name} is measured once: pytest has no parameters for it"
            for name in single
        ),
    ]


def dealt(config: pytest.Config, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The order in which a worker of xdist should have its tests; the same in all of them."""
    workers = Workers.of(config)
    works = [_work(config, item) for item in items]
    return [items[place] for place in dealing.dealt(works, workers.mode, workers.number)]


def duration(works: Sequence[Work], workers: Workers) -> str:
    """How long tests take that have been dealt, about, in words."""
    clusters = {name for work in works for name in work.clusters}
    in_a_row_s = sum(work.seconds for work in works) + CLUSTER_S * len(clusters)
    if workers.number < 2 or workers.mode == "each":
        return f"about {in_a_row_s:.0f} s one after the other"
    if workers.take_turns:
        return f"about {in_a_row_s:.0f} s: {workers.number} workers take turns on one cluster"
    if workers.mode in dealing.FIRST_STRETCHES:
        order = range(len(works))
        seconds = dealing.finish_s(works, order, workers.mode, workers.number)
        return f"about {seconds:.0f} s with {workers.number} workers"
    # How these modes share out is not known here.
    return f"at least {in_a_row_s / workers.number:.0f} s with {workers.number} workers"


def _work(config: pytest.Config, item: pytest.Item) -> Work:
    """What a test costs its worker; a trial that only the test's body knows is a usual one."""
    known = asked.applied(config, item)
    if not known and not repeating.measures(item):
        return Work()
    from pytest_drainwatch.core.scenario import Scenario

    settings = config.stash[RUN].settings
    each_of_them = known or [settings.apply(Scenario())]
    clusters = set()
    for each in each_of_them:
        # What else than its needs tells a trial's cluster from that of others.
        own = {"scenario": each.id, "trial": item.nodeid}.get(settings.fresh_cluster, "")
        clusters.add(f"{each.cluster} {own}")
    return Work(seconds=sum(map(_seconds, each_of_them)), clusters=tuple(sorted(clusters)))


def _seconds(scenario: Scenario) -> float:
    """How long its trial takes, about: a pod's endpoint must be stable for two sync periods."""
    period_ms = scenario.cluster.min_sync_period_ms
    late_s = 0 if period_ms is None else 2 * (period_ms - 1000) / 1000
    return scenario.expected_ns / NS_PER_S + AROUND_S + late_s


def _in_words(needs: ClusterNeeds) -> str:
    """What is said of a cluster that is not the run's usual one; of that nothing."""
    from pytest_drainwatch.core.scenario.needs import in_words

    return in_words(needs.kube_version, needs.proxy_mode, needs.min_sync_period_ms)
