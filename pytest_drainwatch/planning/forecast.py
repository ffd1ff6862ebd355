"""What can be said before the wait: how many trials, how long about, and on how many workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch import session
from pytest_drainwatch.planning import asked, dealing, ordering, repeating
from pytest_drainwatch.planning.dealing import Work

if TYPE_CHECKING:
    from pytest_drainwatch.core.scenario import ClusterNeeds


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Who runs the tests: ``mode`` is xdist's ``--dist``."""

    number: int = 1
    mode: str = "no"
    take_turns: bool = False

    @classmethod
    def of(cls, config: pytest.Config) -> Workers:
        """As a worker was told by its controller, or as a run that only collects would do."""
        told = getattr(config, "workerinput", None)
        if told is not None:
            return cls(
                number=int(told["workercount"]),
                mode=str(told.get("dw_dist", "no")),
                take_turns=bool(told.get("dw_take_turns", False)),
            )
        number = session.workers_of(config)
        if number < 2:
            return cls()
        return cls(
            number=number,
            mode=str(config.getoption("dist")),
            take_turns=session.shares_one_cluster(config.stash[session.RUN].settings),
        )


def forecast(config: pytest.Config, items: Sequence[pytest.Item]) -> list[str]:
    """Said before the wait: how many trials, how long about, and what is unusual.

    ``items`` in the order in which they will run; without workers as yet, they are dealt here.
    """
    planned = [each for item in items for each in asked.applied(config, item)]
    unnamed = [i for i in items if repeating.measures(i) and not asked.applied(config, i)]
    if not planned and not unnamed:
        return []
    workers = Workers.of(config)
    if not hasattr(config, "workerinput"):
        items = ordering.dealt(config, items, workers.mode, workers.number)
    flags = sorted({f"{each.id}: {flag}" for each in planned for flag in each.flags})
    unusual = Counter(words for each in planned if (words := _in_words(each.cluster)))
    single = sorted({item.nodeid for item in repeating.once_only(config, items)})
    works = [ordering.work_of(config, item) for item in items]
    takes = duration(works, workers, alive=ordering.alive_at_once(config))
    return [
        f"drainwatch: {_counted(len(planned), len(unnamed))}, {takes}",
        *(f"drainwatch: {number} of them on {words}" for words, number in unusual.items()),
        *(f"drainwatch: note: {flag}" for flag in flags),
        *(
            f"drainwatch: note: {name} is measured once: pytest has no parameters for it"
            for name in single
        ),
    ]


def duration(works: Sequence[Work], workers: Workers, *, alive: int) -> str:
    """How long tests take that have been dealt, about, in words."""
    in_a_row_s = dealing.lasts_s(works, alive=alive)
    if workers.number < 2 or workers.mode == "each":
        return f"about {in_a_row_s:.0f} s one after the other"
    if workers.take_turns:
        return f"about {in_a_row_s:.0f} s: {workers.number} workers take turns on one cluster"
    if workers.mode in dealing.FIRST_STRETCHES:
        order = range(len(works))
        seconds = dealing.finish_s(works, order, workers.mode, workers.number, alive=alive)
        return f"about {seconds:.0f} s with {workers.number} workers"
    # How these modes share out is not known here.
    return f"at least {in_a_row_s / workers.number:.0f} s with {workers.number} workers"


def _counted(planned: int, unnamed: int) -> str:
    """How many trials, as far as it is known; of the others each test is taken for one."""
    others = f"those of {unnamed} test(s) that choose in their body"
    if not planned:
        return f"trials: {others}"
    return f"{planned} trial(s) and {others}" if unnamed else f"{planned} trial(s)"


def _in_words(needs: ClusterNeeds) -> str:
    """What is said of a cluster that is not the run's usual one; of that nothing."""
    from pytest_drainwatch.core.scenario.needs import in_words

    return in_words(needs.kube_version, needs.proxy_mode, needs.min_sync_period_ms, needs.nodes)
