"""How embedded clusters end, by whatever cause, and that nothing of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_drainwatch.cluster import ClusterError, ClusterSettings
from pytest_drainwatch.cluster.embedded import lifeline, records
from pytest_drainwatch.cluster.embedded.cluster import EmbeddedCluster, start_embedded
from tests.embedded.live import host
from tests.embedded.live.conftest import own_processes
from tests.embedded.live.workload import deploy_web, write_failing_binary

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[3]
OWNER = """
import sys, time
from pytest_drainwatch.cluster import ClusterSettings
from pytest_drainwatch.cluster.opening import open_cluster
from tests.embedded.live.workload import deploy_web
nodes = int(sys.argv[1])
cluster = open_cluster(ClusterSettings(nodes=nodes), why="a test", log=lambda line: None)
deploy_web(cluster)
layouts = [cluster.layout.of_node(index) for index in range(nodes)]
print(cluster.name, *(layout.node_pid.read_text() for layout in layouts), flush=True)
time.sleep(300)
"""


def start(**settings: object) -> EmbeddedCluster:
    return start_embedded(ClusterSettings(**settings), why="a test", log=print)  # type: ignore[arg-type]


@pytest.fixture
def owner(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds a cluster with pods, of so many nodes (one)."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(getattr(request, "param", 1))],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=ROOT,
    )
    yield process
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def nothing_is_left(name: str, node: int) -> bool:
    return (
        not Path(f"/proc/{node}").exists()
        and not host.processes_naming(name)
        and not [path for path in host.cgroups() if name in path]
        and not (records.clusters_dir() / name).exists()
    )


@pytest.mark.alone
def test_host_is_as_before() -> None:
    before = host.snapshot()
    cluster = start()
    deploy_web(cluster).api.close()
    link = cluster._block.link
    assert link in str(host.snapshot()["links"])
    cluster.close()
    cluster.close()  # may be repeated
    changed = host.differences(before, host.snapshot(), cluster=cluster.name, link=link)
    assert changed == []


@pytest.mark.alone
@pytest.mark.parametrize(
    ("owner", "number"),
    [
        (1, signal.SIGKILL),
        (1, signal.SIGTERM),
        (1, signal.SIGINT),
        (2, signal.SIGKILL),
    ],
    indirect=["owner"],
)
def test_ends_with_its_owner(owner: subprocess.Popen[str], number: int) -> None:
    before = host.snapshot()
    assert owner.stdout is not None
    name, *nodes = owner.stdout.readline().split()
    link = next(
        line.split("@")[0]
        for line in host.snapshot()["links"]
        if line.startswith("dwh") and line not in before["links"]
    )
    for node in nodes:
        assert any("python3" in command for command in own_processes(int(node)).values())
    owner.send_signal(number)
    owner.wait()
    for node in nodes:
        assert host.eventually(lambda node=node: nothing_is_left(name, int(node)), within_s=5)  # type: ignore[misc]
    assert host.differences(before, host.snapshot(), cluster=name, link=link) == []
    if number == signal.SIGKILL:
        start().close()  # and the next start works


@pytest.mark.parametrize("count", [1, 2])
def test_killed_reaper_takes_the_nodes_with_it_and_is_swept_up(count: int) -> None:
    cluster = start(nodes=count)
    deploy_web(cluster).api.close()
    layouts = [cluster.layout.of_node(index) for index in range(count)]
    nodes = [int(layout.node_pid.read_text()) for layout in layouts]
    os.kill(cluster.reaper, signal.SIGKILL)
    for node in nodes:
        gone = Path(f"/proc/{node}")
        assert host.eventually(lambda gone=gone: not gone.exists(), within_s=5)  # type: ignore[misc]
    with pytest.raises(ClusterError, match="has died"):
        cluster.check()
    cluster.close()
    assert records.leftovers() == [cluster.name]
    said: list[str] = []
    records.sweep(said.append)
    assert any(cluster.name in line for line in said)
    for node in nodes:
        assert nothing_is_left(cluster.name, node)


@pytest.mark.parametrize("component", ["kube-apiserver", "kube-proxy", "containerd"])
def test_dead_component_is_named(component: str) -> None:
    cluster = start()
    node = int(cluster.layout.node_pid.read_text())
    processes = own_processes(node)
    victim = next(pid for pid, line in processes.items() if f"{component} -" in line)
    cluster.check()
    os.kill(victim, signal.SIGKILL)

    def died() -> bool:
        try:
            cluster.check()
        except ClusterError as error:
            assert f"{component} was killed by signal 9" in str(error)  # noqa: PT017
            assert str(cluster.layout.log(component)) in str(error)  # noqa: PT017
            return True
        return False

    assert host.eventually(died, within_s=5)
    cluster.close()
    assert cluster.layout.log(component).exists()
    assert nothing_is_left(cluster.name, node)


@pytest.mark.parametrize("component", ["etcd", "kubelet"])
def test_failed_start_names_the_component_and_leaves_only_logs(
    component: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_drainwatch.cluster.embedded.cluster.READY_TIMEOUT_S", 3.0)
    program = write_failing_binary(tmp_path, component)
    with pytest.raises(ClusterError) as caught:
        start_embedded(
            ClusterSettings(kube_bin=program), why="a test", log=print, logs_dir=tmp_path / "logs"
        )
    message = str(caught.value)
    if component == "etcd":
        assert "etcd ended with exit code 7" in message
        assert "no such luck" in message
    else:  # never started: the API server in this program only sleeps
        assert "not Ready after 3 s" in message
        assert "does not answer" in message
    assert list((tmp_path / "logs").glob("*/node.log"))
    assert not records.running()


@pytest.mark.alone  # two more clusters beside a neighbour's: inotify instances run out
def test_clusters_side_by_side_have_addresses_of_their_own() -> None:
    first = start()
    second = start()
    try:
        assert first.node_address != second.node_address
        assert {record.name for record in records.running()} == {first.name, second.name}
        names = {record.name: record.owner for record in records.running()}
        assert set(names.values()) == {os.getpid()}
        with pytest.raises(ClusterError, match=f"belongs to process {os.getpid()}"):
            records.stop(first.name)
    finally:
        first.close()
        second.check()
        second.close()


def test_closes_while_a_forked_child_lives_on() -> None:
    cluster = start()
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    began = time.monotonic()
    cluster.close()
    # As long as the child holds the pipe, its end tells the reaper nothing.
    assert time.monotonic() - began < lifeline._END_TIMEOUT_S
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
