"""Who stamps what is seen runs soon, where that is allowed; and nobody else does."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.priority import run_soon, running_soon
from pytest_drainwatch.watch.ticker import Ticker

FORBIDDEN = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice", "--")


def policy(thread_id: int = 0) -> int:
    return os.sched_getscheduler(thread_id) & ~os.SCHED_RESET_ON_FORK


@pytest.fixture
def allowed() -> None:
    took: list[int] = []

    def take() -> None:
        run_soon()
        took.append(policy())

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    if took != [os.SCHED_RR]:
        pytest.skip("this user, container or cgroup may not take a real-time priority")


@pytest.mark.usefixtures("allowed")
def test_the_ticker_runs_soon_and_the_rest_of_the_process_as_before() -> None:
    seen: list[Observation] = []
    ticker = Ticker(seen.append)
    ticker.thread.start()
    try:
        for _ in range(100):
            if policy(ticker.thread.native_id or 0) == os.SCHED_RR:
                break
            threading.Event().wait(0.01)
        assert policy(ticker.thread.native_id or 0) == os.SCHED_RR
        assert policy(threading.get_native_id()) == os.SCHED_OTHER
    finally:
        ticker.stop()
        ticker.thread.join()
    assert not ticker.thread.is_alive()


@pytest.mark.usefixtures("allowed")
def test_children_have_an_ordinary_one() -> None:
    found: list[str] = []

    def ask() -> None:
        run_soon()
        program = "import os; print(os.sched_getscheduler(0))"
        argv = [sys.executable, "-c", program]
        found.append(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [f"{os.SCHED_OTHER}\n"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a right up")
def test_where_it_may_not_nothing_happens() -> None:
    program = (
        "import os; from pytest_drainwatch.priority import run_soon;"
        "run_soon(); print(os.sched_getscheduler(0))"
    )
    argv = [*FORBIDDEN, sys.executable, "-c", program]
    told = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert told == f"{os.SCHED_OTHER}\n"


@pytest.mark.usefixtures("allowed")
def test_a_thread_has_it_for_a_while_and_its_children_never() -> None:
    program = "import os; print(os.sched_getscheduler(0))"
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    with running_soon():
        assert policy() == os.SCHED_RR
        argv = [sys.executable, "-c", program]
        told = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert told == f"{os.SCHED_OTHER}\n"
    assert (os.sched_getscheduler(0), os.sched_getparam(0)) == before
    with pytest.raises(RuntimeError), running_soon():
        raise RuntimeError
    assert (os.sched_getscheduler(0), os.sched_getparam(0)) == before
