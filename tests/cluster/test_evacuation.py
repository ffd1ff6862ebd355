"""Triggers that reach beyond the pods: what is left of them, and where they are not possible.

A node that was evacuated takes pods again, however the run that did it came to its end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_drainwatch import TrialVoid, Trigger, cordon, pool
from pytest_drainwatch import trial as conductor
from pytest_drainwatch.api import Api, connect
from pytest_drainwatch.cluster import Cluster, ClusterSettings
from pytest_drainwatch.cluster.opening import open_cluster
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import loads
from pytest_drainwatch.workload.namespace import sweep
from tests.cluster.harness import QUICK, Silent, never
from tests.cluster.runs import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@contextmanager
def evacuating(cluster: Cluster, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A run of its own on a cluster that is not its own, when its node is being emptied."""
    arguments = ["--cluster", "existing", "--kubeconfig", str(cluster.kubeconfig)]
    arguments += ["--probe-image", cluster.ensure_probe_image(), "--trigger", "evacuate-node"]
    arguments += ["--drain-behavior", "ignore", "--settle", "1s", "--out", str(folder)]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest_drainwatch", "run", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout
    said = []
    for line in process.stdout:
        said.append(line)
        if "observe" in line:
            break
    else:
        pytest.fail("".join(said))
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def cordoned(api: Api) -> list[str]:
    return [node.metadata.name for node in api.core.list_node().items if node.spec.unschedulable]


def test_an_interrupted_run_uncordons_its_node(dw_cluster: Cluster, tmp_path: Path) -> None:
    api = connect(dw_cluster.kubeconfig, dw_cluster.context)
    with evacuating(dw_cluster, tmp_path) as process:
        assert len(cordoned(api)) == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert not cordoned(api)
    assert not list(cordon.left(api))


def test_a_container_cannot_be_killed_where_nodes_cannot_be_entered(
    dw_cluster: Cluster, tmp_path: Path
) -> None:
    """Said before any flow is opened, with the reason, and nothing is left."""
    settings = ClusterSettings(
        provider="existing",
        kubeconfig=dw_cluster.kubeconfig,
        probe_image=dw_cluster.ensure_probe_image(),
    )
    cluster = open_cluster(settings, why="asked for", log=lambda _: None)
    scenario = replace(QUICK, trigger=Trigger.CONTAINER_KILL)
    folder = tmp_path / "x" / "r00"
    with pytest.raises(TrialVoid, match="'trigger-possible' failed") as void:
        conductor.run_trial(cluster, scenario, folder=folder, keep=never, progress=Silent())
    assert "the kernel drops SIGKILL from its own PID namespace" in str(void.value)
    seen = loads((folder / "recording.jsonl").read_text()).observations
    assert not {o.event for o in seen} & {Event.TRIGGER_ACCEPTED, Event.FLOW_CONNECTED}


def test_a_killed_runs_node_is_uncordoned_by_the_next_one(
    dw_cluster: Cluster, tmp_path: Path
) -> None:
    api, told = connect(dw_cluster.kubeconfig, dw_cluster.context), list[str]()
    with evacuating(dw_cluster, tmp_path) as process:
        (node,) = cordoned(api)
        pool._uncordon(api, told.append)
        assert not told, "its run lives"
        process.kill()
        process.wait()
    assert cordoned(api) == [node]
    pool._uncordon(api, told.append)
    assert told == [f"uncordoned node {node}, left cordoned by a run that is gone"]
    assert not cordoned(api)
    sweep(api)
