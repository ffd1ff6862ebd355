"""Case C63: several workers and one cluster between them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.recording import loads
from tests.cluster.runs import ROOT

pytestmark = pytest.mark.cluster

SUITE = """
import pytest
from pytest_drainwatch import App, Behavior, Flows, Scenario
from pytest_drainwatch.core.interval import NS_PER_S

SHORT = [
    Scenario(
        name=name,
        app=App(behavior=Behavior.EXIT_NOW, grace_period_s=3),
        flows=Flows(tcp=2, udp=2, probe_interval_ns=None),
        settle_ns=NS_PER_S,
    )
    for name in ("one", "two")
]

@pytest.mark.parametrize("scenario", SHORT)
def test_it(trial): pass
"""
# What would be measured if nobody waited for anybody.
WITHOUT_TURNS = """
from contextlib import nullcontext
from pytest_drainwatch import turns

turns.turn = lambda cluster, **_: nullcontext()
"""


def measured(folder: Path, cluster: Cluster, conftest: str = "") -> tuple[str, list[Interval]]:
    """Two trials on two workers, on a cluster that is there; what was said, and when they were."""
    (folder / "test_short.py").write_text(SUITE)
    (folder / "conftest.py").write_text(conftest)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-v", "-n2", "-p", "no:cacheprovider"),
            *("--dw-kubeconfig", str(cluster.kubeconfig)),
            *("--dw-probe-image", cluster.ensure_probe_image()),
        ],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, "PYTHONPATH": str(ROOT), "DW_CLUSTER": ""},
    )
    print(done.stdout)
    assert done.returncode == 0
    recordings = [loads(p.read_text()) for p in folder.glob("results/2*/*/r00/recording.jsonl")]
    assert len(recordings) == 2
    assert len({recording.header.clock for recording in recordings}) == 1
    spans = [
        Interval(
            min(o.at.lo for o in recording.observations if not o.clock),
            max(o.at.hi for o in recording.observations if not o.clock),
        )
        for recording in recordings
    ]
    return done.stdout, sorted(spans, key=lambda span: span.lo)


def test_c63_trials_of_two_workers_on_one_cluster_take_turns(
    dw_cluster: Cluster, tmp_path: Path
) -> None:
    """The second one waits, is seen to wait, and begins when the first is over."""
    said, (first, second) = measured(tmp_path, dw_cluster)
    assert first.hi < second.lo
    assert "2 workers take turns on cluster" in said
    assert "wait for a turn on cluster" in said
    # And after some seconds, also without -v, for whom.
    assert re.search(r"so far: process \d+ \(test_short.py::test_it\[\w+\]\) measures on it", said)


@pytest.mark.slow
def test_c63_without_turns_they_would_measure_each_other(
    dw_cluster: Cluster, tmp_path: Path
) -> None:
    """What the test above would see if nobody waited: it can fail."""
    said, (first, second) = measured(tmp_path, dw_cluster, WITHOUT_TURNS)
    assert second.lo < first.hi
    assert "for a turn" not in said
