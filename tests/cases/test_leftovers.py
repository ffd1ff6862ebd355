"""Case C64: what a run that was killed leaves, and what the next one makes of it."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_drainwatch.api import Api, connect, failures
from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.pool import opened_cluster
from pytest_drainwatch.settings import Settings
from pytest_drainwatch.workload import manifests
from pytest_drainwatch.workload.namespace import owner
from tests.cluster.runs import left_behind, run_drainwatch

pytestmark = pytest.mark.cluster


def test_c64_kill_9_leaves_nothing_and_the_next_run_works(
    running: subprocess.Popen[str], tmp_path: Path
) -> None:
    running.kill()
    running.wait()
    deadline = time.monotonic() + 20
    while (left := left_behind(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not left
    assert not list(tmp_path.glob("results/2*/*/r00/report.json"))
    done = run_drainwatch(
        *("run", "--cluster", "embedded", "--drain-behavior", "exit-now"),
        *("--settle", "1", "--grace-period", "3", "--out", str(tmp_path / "next")),
    )
    assert done.returncode == 0, done.stderr
    assert "rst" in done.stdout


NODE_PORT = 31_999


def test_c64_the_next_run_removes_what_a_dead_one_left_and_nothing_else(
    dw_cluster: Cluster, tmp_path: Path
) -> None:
    """Leftovers are known by their owner, a process that is gone; they kept a node port busy."""
    api = connect(dw_cluster.kubeconfig)
    owners = {"left-behind": _gone(), "mine": owner(), "elsewhere": "another-boot/1/1/1"}
    for name, who in owners.items():
        api.core.create_namespace(manifests.namespace(f"dw-{name}", who))
    # Somebody else's, without our label, even if it names a dead owner of ours.
    annotations = {manifests.OWNER_ANNOTATION: owners["left-behind"]}
    api.core.create_namespace({"metadata": {"name": "foreign", "annotations": annotations}})
    _take_port(api, "dw-left-behind")
    with pytest.raises(failures(), match="already allocated"):
        _take_port(api, "dw-mine")
    said: list[str] = []
    settings = Settings(cluster="existing", kubeconfig=dw_cluster.kubeconfig)
    try:
        with opened_cluster(settings, tmp_path, said.append, keep=lambda: False):
            assert said == ["removed namespace dw-left-behind, left by a run that is gone"]
            phases = {n.metadata.name: n.status.phase for n in api.core.list_namespace().items}
            assert {phases["dw-mine"], phases["dw-elsewhere"], phases["foreign"]} == {"Active"}
            assert phases.get("dw-left-behind") in (None, "Terminating")
            _until_free(api, "dw-mine")
    finally:
        for name in ("dw-mine", "dw-elsewhere", "foreign"):
            api.core.delete_namespace(name)


def _gone() -> str:
    """The identity of a process that has ended by the time anybody asks."""
    ask = "from pytest_drainwatch.workload.namespace import owner; print(owner())"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _take_port(api: Api, namespace: str) -> None:
    ports = [{"port": 80, "nodePort": NODE_PORT}]
    body = {"metadata": {"name": "taken"}, "spec": {"type": "NodePort", "ports": ports}}
    api.core.create_namespaced_service(namespace, body)


def _until_free(api: Api, namespace: str) -> None:
    """Wait until the namespace that held the node port is gone with it."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(*failures()):
            return _take_port(api, namespace)
        time.sleep(0.2)
    return _take_port(api, namespace)
