"""In which order workers of xdist should be given the tests of a run, so that it ends soon.

xdist hands out tests by their place in the list: with ``worksteal`` each worker gets one
stretch of it at the start, with ``load`` a first stretch and then one test after the other.
Trials take as long as their scenario says, so the list can be laid out such that the stretches
take equally long, and that within one stretch those trials stand together that need the same
cluster, since each further cluster has to be started. A pure function: every worker must come
to the same list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# The start of a cluster, about.
CLUSTER_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One test: how long its trials take, about, and the names of the clusters they need.

    ``seconds`` is 0 for a test without trials: nobody knows, and mostly it is short.
    """

    seconds: float = 0.0
    clusters: tuple[str, ...] = ()

    @property
    def is_trial(self) -> bool:
        """Whether the test measures."""
        return self.seconds > 0


def dealt(works: Sequence[Work], mode: str, workers: int) -> list[int]:
    """Places of ``works`` in the order in which to run them; ``mode`` is xdist's ``--dist``.

    Tests without trials keep their order among themselves. Another mode than the two above has
    an order of its own, and nothing is gained with one worker: there the list stays as it is.
    """
    as_it_is = list(range(len(works)))
    if mode not in FIRST_STRETCHES or workers < 2 or not any(w.is_trial for w in works):
        return as_it_is
    balanced = _balanced(works, FIRST_STRETCHES[mode](len(works), workers))
    faster = finish_s(works, balanced, mode, workers) <= finish_s(works, as_it_is, mode, workers)
    return balanced if faster else as_it_is


def finish_s(works: Sequence[Work], order: Sequence[int], mode: str, workers: int) -> float:
    """When the last worker is done, if nobody steals: what ``dealt`` makes small."""
    queues, rest = _stretches(order, FIRST_STRETCHES[mode](len(order), workers))
    for place in rest:  # whoever is free next takes it
        min(queues, key=lambda queue: _lasts_s(works, queue)).append(place)
    return max((_lasts_s(works, queue) for queue in queues), default=0.0)


def _worksteal(tests: int, workers: int) -> list[int]:
    """As WorkStealingScheduling.check_schedule() divides the list."""
    sizes: list[int] = []
    for number in range(workers):
        sizes.append((tests - sum(sizes)) // (workers - number))
    return sizes


def _load(tests: int, workers: int) -> list[int]:
    """As LoadScheduling.schedule() does, but for few tests, which go round one by one."""
    if tests < 2 * workers:
        return [0] * workers
    return [max(tests // workers // 4, 2)] * workers


FIRST_STRETCHES = {"worksteal": _worksteal, "load": _load}


def _balanced(works: Sequence[Work], sizes: Sequence[int]) -> list[int]:
    """The longest first, each to the worker that is then done soonest and has room."""
    trials = sorted(
        (place for place, work in enumerate(works) if work.is_trial),
        key=lambda place: -works[place].seconds,
    )
    others = [place for place, work in enumerate(works) if not work.is_trial]
    queues: list[list[int]] = [[] for _ in sizes]
    rest = []
    for place in trials:
        open_ones = [queue for queue, size in zip(queues, sizes, strict=True) if len(queue) < size]
        if open_ones:
            min(open_ones, key=lambda queue: _lasts_s(works, [*queue, place])).append(place)
        else:
            rest.append(place)
    order = []
    for queue, size in zip(queues, sizes, strict=True):
        room = size - len(queue)
        order += others[:room] + _together(works, queue)
        del others[:room]
    return order + rest + others


def _together(works: Sequence[Work], queue: Iterable[int]) -> list[int]:
    """Trials of one cluster in a row; among themselves the longest first.

    What is stolen is taken from the end: a short one there does no harm.
    """
    found: dict[tuple[str, ...], list[int]] = {}
    for place in sorted(queue, key=lambda place: (-works[place].seconds, place)):
        found.setdefault(works[place].clusters, []).append(place)
    return [place for group in found.values() for place in group]


def _stretches(order: Sequence[int], sizes: Iterable[int]) -> tuple[list[list[int]], Sequence[int]]:
    queues, at = [], 0
    for size in sizes:
        queues.append(list(order[at : at + size]))
        at += size
    return queues, order[at:]


def _lasts_s(works: Sequence[Work], queue: Iterable[int]) -> float:
    own = [works[place] for place in queue]
    clusters = {name for work in own for name in work.clusters}
    return sum(work.seconds for work in own) + CLUSTER_S * len(clusters)
