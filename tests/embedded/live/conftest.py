"""Real embedded clusters for tests; skipped where `drainwatch setup` was not run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_drainwatch.cluster import ClusterError, ClusterSettings
from pytest_drainwatch.cluster.embedded import binary, machine
from pytest_drainwatch.cluster.embedded.cluster import EmbeddedCluster, start_embedded
from pytest_drainwatch.cluster.embedded.rootfs import cached_root_filesystem


@pytest.fixture(scope="session", autouse=True)
def _set_up() -> None:
    try:
        machine.check()
    except ClusterError as error:
        pytest.skip(str(error))
    version = ClusterSettings().kube_version
    if not binary.cached(binary.kubenode_recipe(version)).exists() or not cached_root_filesystem():
        pytest.skip("nothing is built: drainwatch setup")


@pytest.fixture(scope="session")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory of this session's own: no sweep meets other people's clusters."""
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module", autouse=True)
def _own_state(state: Path) -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    patch.setenv("DW_STATE", str(state))
    yield
    patch.undo()


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def cluster(logs: Path, _own_state: None) -> Iterator[EmbeddedCluster]:
    """One cluster for a whole module, for tests that leave it as it is."""
    started = start_embedded(ClusterSettings(), why="a test", log=print, logs_dir=logs)
    yield started
    started.close()


def own_processes(node_pid: int) -> dict[int, str]:
    """Process id on the host → command line, of every descendant of a node's PID 1."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(fields[1])
    found = {}
    for pid in parents:
        ancestor = pid
        while ancestor in parents and ancestor != node_pid:
            ancestor = parents[ancestor]
        if ancestor == node_pid and pid != node_pid:
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                found[pid] = command.replace(b"\0", b" ").decode()
    return found
