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

# Trials at least so long, as a share of the longest, are long ones.
LONG = 0.75
# The start of a cluster, about.
CLUSTER_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One test: how long its trials take, about, and the names of the clusters they need.

    ``clusters`` in the order in which it needs them; the first one is held throughout.
    ``seconds`` is 0 for a test without trials: nobody knows, and mostly it is short.
    """

    seconds: float = 0.0
    clusters: tuple[str, ...] = ()

    @property
    def is_trial(self) -> bool:
        """Whether the test measures."""
        return self.seconds > 0


def dealt(works: Sequence[Work], mode: str, workers: int, *, alive: int) -> list[int]:
    """Places of ``works`` in the order in which to run them; ``mode`` is xdist's ``--dist``.

    ``alive`` is how many clusters a worker keeps for what comes next.
    Tests without trials keep their order among themselves. Another mode than the two above has
    an order of its own, and nothing is gained with one worker: there the list stays as it is.
    """
    as_it_is = list(range(len(works)))
    if mode not in FIRST_STRETCHES or workers < 2 or not any(w.is_trial for w in works):
        return as_it_is
    balanced = _balanced(works, FIRST_STRETCHES[mode](len(works), workers))

    def ends_s(order: Sequence[int]) -> float:
        return finish_s(works, order, mode, workers, alive=alive)

    return balanced if ends_s(balanced) <= ends_s(as_it_is) else as_it_is


def finish_s(
    works: Sequence[Work], order: Sequence[int], mode: str, workers: int, *, alive: int
) -> float:
    """When the last worker is done, if nobody steals: what ``dealt`` makes small."""

    def ends_s(queue: Sequence[int]) -> float:
        return lasts_s([works[place] for place in queue], alive=alive)

    queues, rest = _stretches(order, FIRST_STRETCHES[mode](len(order), workers))
    for place in rest:  # whoever is free next takes it
        min(queues, key=ends_s).append(place)
    return max(map(ends_s, queues), default=0.0)


def lasts_s(works: Sequence[Work], *, alive: int) -> float:
    """How long tests take one after the other, with the starts of their clusters."""
    return sum(work.seconds for work in works) + CLUSTER_S * _starts(works, alive)


def _starts(works: Iterable[Work], alive: int) -> int:
    """How often a cluster is started: the one that was used longest ago makes room."""
    opened: list[str] = []
    number = 0
    for work in works:
        for name in work.clusters:
            if name in opened:
                opened.remove(name)
            else:
                number += 1
            opened.append(name)
            while len(opened) > max(alive, 1):
                del opened[1 if opened[0] == work.clusters[0] else 0]
    return number


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
            min(open_ones, key=lambda queue: _grouped_s(works, [*queue, place])).append(place)
        else:
            rest.append(place)
    order = []
    for number, (queue, size) in enumerate(zip(queues, sizes, strict=True)):
        room = size - len(queue)
        order += others[:room] + _together(works, queue, number)
        del others[:room]
    return order + rest + others


def _together(works: Sequence[Work], queue: Iterable[int], number: int) -> list[int]:
    """Trials of one cluster in a row; among themselves the long ones first.

    What is stolen is taken from the end: a short one there does no harm. Each worker begins with
    another of its long ones: else all would have the same scenario, and be busy at the same
    instants.
    """
    found: dict[frozenset[str], list[int]] = {}
    for place in sorted(queue, key=lambda place: (-works[place].seconds, place)):
        found.setdefault(frozenset(works[place].clusters), []).append(place)
    return [place for group in found.values() for place in _turned(works, group, number)]


def _turned(works: Sequence[Work], group: list[int], number: int) -> list[int]:
    long = sum(works[place].seconds >= LONG * works[group[0]].seconds for place in group)
    first = number % long
    return group[first:long] + group[:first] + group[long:]


def _stretches(order: Sequence[int], sizes: Iterable[int]) -> tuple[list[list[int]], Sequence[int]]:
    queues, at = [], 0
    for size in sizes:
        queues.append(list(order[at : at + size]))
        at += size
    return queues, order[at:]


def _grouped_s(works: Sequence[Work], queue: Iterable[int]) -> float:
    """How long a stretch takes once those of one cluster stand together: each starts once."""
    own = [works[place] for place in queue]
    clusters = {name for work in own for name in work.clusters}
    return sum(work.seconds for work in own) + CLUSTER_S * len(clusters)
