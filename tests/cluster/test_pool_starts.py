"""Real starts of several processes take turns, trials wait for them, and fresh ones are new."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded import starts
from pytest_drainwatch.core.scenario import ClusterNeeds
from pytest_drainwatch.pool import ClusterPool
from pytest_drainwatch.settings import Settings

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

ANY = ClusterNeeds()
WITHIN_S = 60.0
# On one core, where starts go one at a time. The plan is written once the turn has come.
START = """
import json, os, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from pytest_drainwatch.cluster import ClusterSettings
from pytest_drainwatch.cluster.embedded.cluster import start_embedded
said = {}
def log(line):
    said[line] = time.time()
cluster = start_embedded(ClusterSettings(), why="a test", log=log)
began = cluster.layout.plan.stat().st_mtime
ended = next(when for line, when in said.items() if "takes pods after" in line)
cluster.close()
print(json.dumps({"began": began, "ended": ended, "said": list(said)}))
"""


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("embedded clusters need root")
    monkeypatch.setenv("DW_STATE", str(tmp_path / "state"))


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def pool(tmp_path: Path, said: list[str]) -> Iterator[ClusterPool]:
    settings = Settings(cluster="embedded")
    with ClusterPool(settings, tmp_path, said.append, keep=lambda: False) as made:
        yield made


def started() -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", START], stdout=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str]) -> Any:
    out, _ = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0
    return json.loads(out)


def test_two_processes_start_their_clusters_one_after_the_other() -> None:
    processes = [started(), started()]
    first, second = sorted(map(told, processes), key=lambda each: float(each["began"]))
    assert first["ended"] < second["began"]
    assert any("waiting for 1 cluster start(s)" in line for line in second["said"])
    assert not any("waiting" in line for line in first["said"])


def test_a_trial_begins_when_another_processs_start_is_over(
    pool: ClusterPool, said: list[str]
) -> None:
    with pool.lease(ANY):
        pass
    process = started()
    try:
        until = time.monotonic() + WITHIN_S
        while not starts.STARTS.tickets():
            assert time.monotonic() < until
            time.sleep(0.01)
        with pool.lease(ANY):  # which is there, and yet
            entered = time.time()
        assert told(process)["ended"] < entered
    finally:
        process.kill()
        process.wait()
    assert "waiting for 1 cluster start(s) on this machine to end" in said


def test_who_holds_one_cluster_may_start_another(pool: ClusterPool) -> None:
    with pool.lease(ANY) as one, pool.lease(ClusterNeeds(min_sync_period_ms=100)) as other:
        one.check()
        other.check()
        assert one.name != other.name


def test_each_trial_on_a_cluster_of_its_own(tmp_path: Path) -> None:
    settings = Settings(cluster="embedded", fresh_cluster="trial")
    with ClusterPool(settings, tmp_path, print, keep=lambda: False) as pool:
        with pool.lease(ANY, "drain") as first:
            first.check()
        with pool.lease(ANY, "drain") as second:
            second.check()
            assert second.name != first.name
            with pytest.raises(ClusterError, match="has died"):
                first.check()
