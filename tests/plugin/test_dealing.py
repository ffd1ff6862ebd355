"""The order for xdist's workers: a permutation that ends no later, whatever the tests are."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.scenario import ClusterNeeds
from pytest_drainwatch.planning.dealing import (
    CLUSTER_S,
    FIRST_STRETCHES,
    Work,
    dealt,
    finish_s,
    lasts_s,
)
from pytest_drainwatch.planning.ordering import interleaved
from pytest_drainwatch.pool import MOST_ALIVE
from tests.embedded.test_pool import FOUR, pooled

MODES = st.sampled_from(["worksteal", "load"])
WORKS = st.lists(
    st.one_of(
        st.just(Work()),
        st.builds(
            Work,
            seconds=st.integers(1, 90).map(float),
            clusters=st.lists(st.sampled_from("abc"), max_size=2, unique=True).map(
                lambda names: tuple(sorted(names))
            ),
        ),
    ),
    max_size=40,
)


@given(works=WORKS, mode=MODES, workers=st.integers(1, 9))
def test_every_test_runs_once_and_the_run_ends_no_later(
    works: list[Work], mode: str, workers: int
) -> None:
    order = dealt(works, mode, workers, alive=MOST_ALIVE)
    assert sorted(order) == list(range(len(works)))
    assert order == dealt(list(works), mode, workers, alive=MOST_ALIVE), (
        "all workers must come to the same list"
    )
    naive = list(range(len(works)))
    assert finish_s(works, order, mode, workers, alive=MOST_ALIVE) <= finish_s(
        works, naive, mode, workers, alive=MOST_ALIVE
    )
    plain = [place for place in order if not works[place].is_trial]
    assert plain == sorted(plain)


@given(works=WORKS, workers=st.integers(1, 9))
def test_other_modes_and_runs_without_trials_stay_as_they_are(
    works: list[Work], workers: int
) -> None:
    as_it_is = list(range(len(works)))
    for mode in ("loadscope", "loadfile", "loadgroup", "each", "no"):
        assert dealt(works, mode, workers, alive=MOST_ALIVE) == as_it_is
    assert dealt([Work()] * len(works), "worksteal", workers, alive=MOST_ALIVE) == as_it_is
    assert dealt(works, "worksteal", 1, alive=MOST_ALIVE) == as_it_is


def test_the_published_matrix_is_shared_out_evenly() -> None:
    """Five arms of 25 to 60 s, each five times: the naive order gives one worker all the long
    ones.
    """
    works = [Work(seconds=s, clusters=("a",)) for s in (25, 45, 50, 46, 60) for _ in range(5)]
    order = dealt(works, "worksteal", 5, alive=MOST_ALIVE)
    even = sum(work.seconds for work in works) / 5 + CLUSTER_S
    naive = finish_s(works, range(25), "worksteal", 5, alive=MOST_ALIVE)
    assert naive == 60 * 5 + CLUSTER_S
    assert finish_s(works, order, "worksteal", 5, alive=MOST_ALIVE) <= 1.05 * even


def test_trials_of_one_cluster_stand_together() -> None:
    works = [Work(seconds=10, clusters=(name,)) for name in "abababab"]
    order = dealt(works, "worksteal", 2, alive=MOST_ALIVE)
    first, second = (["abababab"[place] for place in order[at : at + 4]] for at in (0, 4))
    assert {"".join(first), "".join(second)} == {"aaaa", "bbbb"}


@given(works=WORKS, alive=st.integers(1, 4))
def test_a_cluster_that_made_room_is_started_again(works: list[Work], alive: int) -> None:
    names = [work.clusters for work in works]
    distinct = {name for each in names for name in each}
    measured_s = sum(work.seconds for work in works)
    started = (lasts_s(works, alive=alive) - measured_s) / CLUSTER_S
    assert len(distinct) <= started <= sum(map(len, names))
    if alive >= len(distinct):
        assert started == len(distinct)


@given(st.lists(st.lists(st.sampled_from(FOUR), min_size=1, max_size=4, unique=True), max_size=8))
def test_starts_are_counted_as_the_pool_makes_them(tests: list[list[ClusterNeeds]]) -> None:
    with pooled() as (pool, opened):
        for arms in tests:
            with pool.lease(arms[0]):  # the fixture dw_cluster, for as long as the test
                for needs in arms:
                    with pool.lease(needs, "an-arm"):
                        pass
    works = [Work(seconds=1, clusters=tuple(str(needs) for needs in arms)) for arms in tests]
    assert lasts_s(works, alive=MOST_ALIVE) == len(works) + len(opened) * CLUSTER_S


def test_three_clusters_in_turn_start_with_every_trial() -> None:
    def starts(clusters: str) -> float:
        works = [Work(seconds=1, clusters=(name,)) for name in clusters]
        return (lasts_s(works, alive=2) - len(works)) / CLUSTER_S

    assert starts("abab" * 5) == 2
    assert starts("abc" * 5) == 15
    assert starts("aaaaabbbbbccccc") == 3


TESTS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 4)), max_size=8)


@given(tests=TESTS, alive=st.integers(1, 4))
def test_taking_turns_starts_no_cluster_twice(tests: list[tuple[str, int]], alive: int) -> None:
    """Each test with its cluster and its number of repeats, defined one after the other."""
    repeats = [number for _, times in tests for number in range(times)]
    clusters = [(name,) for name, times in tests for _ in range(times)]
    order = interleaved(repeats, clusters, alive=alive)
    assert sorted(order) == list(range(len(repeats)))
    works = [Work(seconds=1, clusters=clusters[place]) for place in order]
    distinct = {name for name, _ in tests}
    assert lasts_s(works, alive=alive) == len(works) + CLUSTER_S * len(distinct)
    if len(distinct) <= alive:  # none has to wait, so all take turns
        assert [repeats[place] for place in order] == sorted(repeats)


@pytest.mark.parametrize("mode", ["worksteal", "load"])
def test_the_stretches_are_those_that_xdist_deals_out(mode: str) -> None:
    """xdist's own scheduler, with workers that only note what they were sent."""
    scheduler = pytest.importorskip("xdist.scheduler")
    made = {
        "worksteal": scheduler.WorkStealingScheduling,
        "load": scheduler.LoadScheduling,
    }[mode]
    for tests, workers in [(25, 7), (25, 2), (8, 4), (9, 4), (100, 6), (200, 3), (3, 1)]:
        sent = _first_sent(made, tests, workers)
        if mode == "load" and tests < 2 * workers:
            continue
        assert [len(each) for each in sent] == FIRST_STRETCHES[mode](tests, workers)
        assert [at for each in sent for at in each] == list(range(sum(map(len, sent))))


class _Node:
    """A worker as its scheduler sees it."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.sent: list[int] = []

    def send_runtest_some(self, places: list[int]) -> None:
        self.sent += places

    def send_steal(self, places: list[int]) -> None: ...

    def shutdown(self) -> None:
        self.shutting_down = True


class _Config:
    """Of pytest's the two things that a scheduler asks for."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def getvalue(self, name: str) -> object:
        return ["popen"] * self.workers if name == "tx" else None

    getoption = getvalue


def _first_sent(made: type, tests: int, workers: int) -> list[list[int]]:
    schedule = made(_Config(workers))
    nodes = [_Node(f"gw{number}") for number in range(workers)]
    for node in nodes:
        schedule.add_node(node)
    for node in nodes:
        schedule.add_node_collection(node, [f"test_{n}" for n in range(tests)])
    schedule.schedule()
    return [node.sent for node in nodes]


def test_workers_do_not_begin_with_the_same_scenario() -> None:
    """Five repeats of five scenarios: who has a long one of another kind begins with it."""
    works = [Work(seconds=s, clusters=("one",)) for _ in range(5) for s in (26, 50, 51, 52, 55)]
    order = dealt(works, "worksteal", 6, alive=2)
    firsts = [works[order[at]].seconds for at in (0, 4, 8, 12, 16, 20)]
    assert len(set(firsts)) > 1
    assert min(firsts) >= 50  # the short one stays where it does no harm when it is stolen
