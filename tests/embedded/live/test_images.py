"""The probe's image in a real containerd: begun from the store, edited, unpacked anew."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_drainwatch.cluster import ClusterSettings
from pytest_drainwatch.cluster.embedded import image, runtime
from pytest_drainwatch.cluster.embedded.cluster import EmbeddedCluster, start_embedded
from pytest_drainwatch.cluster.embedded.directories import cache_dir
from tests.embedded.live.workload import deploy_web

pytestmark = pytest.mark.cluster


def known_images(cluster: EmbeddedCluster) -> list[str]:
    socket = f"/proc/{cluster.layout.node_pid.read_text()}/root{runtime.SOCKET}"
    command = ["ctr", "--address", socket, "--namespace=k8s.io", "images", "list", "-q"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def stores() -> dict[str, tuple[int, int]]:
    """Every file of every store → its size and time of change."""
    found = {}
    for path in (cache_dir() / "stores").rglob("*"):
        if path.is_file() and not path.is_symlink():
            status = path.stat()
            found[str(path)] = (status.st_size, status.st_mtime_ns)
    return found


def test_edited_probe_is_loaded_into_a_running_cluster(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cluster.ensure_probe_image()
    assert cluster.ensure_probe_image() == first
    edited = tmp_path / "probe.py"
    edited.write_text("print('another')\n")
    monkeypatch.setattr(image, "_probe_source", lambda: edited)
    second = cluster.ensure_probe_image()
    assert second != first
    assert {first, second} <= set(known_images(cluster))


def test_pods_do_not_write_to_the_store(cluster: EmbeddedCluster) -> None:
    before = stores()
    deploy_web(cluster).api.close()
    assert before
    assert stores() == before


def test_works_without_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "pytest_drainwatch.cluster.embedded.cluster.begin_from", lambda store, layout: False
    )
    cluster = start_embedded(ClusterSettings(), why="a test", log=print)
    try:
        deploy_web(cluster, replicas=1).api.close()
    finally:
        cluster.close()
