"""The order for xdist's workers: a permutation that ends no later, whatever the tests are."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.dealing import CLUSTER_S, FIRST_STRETCHES, Work, dealt, finish_s

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
    order = dealt(works, mode, workers)
    assert sorted(order) == list(range(len(works)))
    assert order == dealt(list(works), mode, workers), "all workers must come to the same list"
    naive = list(range(len(works)))
    assert finish_s(works, order, mode, workers) <= finish_s(works, naive, mode, workers)
    plain = [place for place in order if not works[place].is_trial]
    assert plain == sorted(plain)


@given(works=WORKS, workers=st.integers(1, 9))
def test_other_modes_and_runs_without_trials_stay_as_they_are(
    works: list[Work], workers: int
) -> None:
    as_it_is = list(range(len(works)))
    for mode in ("loadscope", "loadfile", "loadgroup", "each", "no"):
        assert dealt(works, mode, workers) == as_it_is
    assert dealt([Work()] * len(works), "worksteal", workers) == as_it_is
    assert dealt(works, "worksteal", 1) == as_it_is


def test_the_published_matrix_is_shared_out_evenly() -> None:
    """Five arms of 25 to 60 s, each five times: the naive order gives one worker all the long
    ones.
    """
    works = [Work(seconds=s, clusters=("a",)) for s in (25, 45, 50, 46, 60) for _ in range(5)]
    order = dealt(works, "worksteal", 5)
    even = sum(work.seconds for work in works) / 5 + CLUSTER_S
    naive = finish_s(works, range(25), "worksteal", 5)
    assert naive == 60 * 5 + CLUSTER_S
    assert finish_s(works, order, "worksteal", 5) <= 1.05 * even


def test_trials_of_one_cluster_stand_together() -> None:
    works = [Work(seconds=10, clusters=(name,)) for name in "abababab"]
    order = dealt(works, "worksteal", 2)
    first, second = (["abababab"[place] for place in order[at : at + 4]] for at in (0, 4))
    assert {"".join(first), "".join(second)} == {"aaaa", "bbbb"}


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
