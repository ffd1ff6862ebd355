"""A cluster of two nodes: each is a node of its own, and they end as one."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import pytest

from pytest_drainwatch.api import Api, connect
from pytest_drainwatch.cluster import ClusterError, ClusterSettings
from pytest_drainwatch.cluster.embedded import runtime
from pytest_drainwatch.cluster.embedded.addresses import pod_range
from pytest_drainwatch.cluster.embedded.archive import (
    Layer,
    image_config,
    layer_bytes,
    write_archive,
)
from pytest_drainwatch.cluster.embedded.cluster import EmbeddedCluster, start_embedded
from tests.embedded.live.conftest import own_processes
from tests.embedded.live.host import cgroups, eventually
from tests.embedded.live.test_cluster import fetch
from tests.embedded.live.test_end import nothing_is_left
from tests.embedded.live.workload import Web, deploy_web

pytestmark = pytest.mark.cluster

TWO = ClusterSettings(nodes=2)


@pytest.fixture(scope="module")
def cluster(logs: Path, _own_state: None) -> Iterator[EmbeddedCluster]:
    """One cluster for the whole module; its last test ends it."""
    started = start_embedded(TWO, why="a test", log=print, logs_dir=logs)
    yield started
    started.close()


@pytest.fixture(scope="module")
def api(cluster: EmbeddedCluster) -> Iterator[Api]:
    connected = connect(cluster.kubeconfig, cluster.context)
    yield connected
    connected.close()


@pytest.fixture(scope="module")
def web(cluster: EmbeddedCluster) -> Iterator[Web]:
    """A pod on each node: the scheduler spreads them by itself."""
    deployed = deploy_web(cluster)
    yield deployed
    deployed.api.close()


def seat_of(cluster: EmbeddedCluster, pod: object) -> list[str]:
    """The words that lead into a pod's network."""
    return list(cluster.enter_pod(pod.metadata.uid).prefix)  # type: ignore[attr-defined]


def test_the_nodes_are_those_that_kubernetes_knows(cluster: EmbeddedCluster, api: Api) -> None:
    found = {
        node.metadata.name: next(a.address for a in node.status.addresses if a.type == "InternalIP")
        for node in api.core.list_node().items
    }
    assert found == dict(cluster.node_addresses)
    assert len(found) == cluster.facts().nodes == 2
    assert next(iter(cluster.node_addresses.values())) == cluster.node_address


def test_each_node_has_pods_of_its_own_range(cluster: EmbeddedCluster, web: Web) -> None:
    names = list(cluster.node_addresses)
    pods = web.pods()
    assert sorted(pod.spec.node_name for pod in pods) == sorted(names)
    for pod in pods:
        assert ip_address(pod.status.pod_ip) in pod_range(names.index(pod.spec.node_name))


def test_node_ports_answer_on_each_node_for_the_pods_of_all(
    cluster: EmbeddedCluster, web: Web
) -> None:
    source = cluster.source_addresses[0]
    for address in cluster.node_addresses.values():

        def answers(address: str = address) -> bool:
            return [fetch(address, web.port, source) for _ in range(20)] == [200] * 20

        # By chance all twenty went to one pod twice in a million.
        assert eventually(answers, within_s=5), address


def test_pods_reach_those_of_other_nodes_under_their_own_address(
    cluster: EmbeddedCluster, api: Api, web: Web
) -> None:
    one, other = web.pods()
    command = [*seat_of(cluster, one), "python3", "-c", _ASK, other.status.pod_ip, "8080"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.strip() == "200"
    log = str(api.core.read_namespaced_pod_log(other.metadata.name, "default"))
    assert f"{one.status.pod_ip} - - " in log, "no masquerade between pods, and logs of each node"


def test_a_cluster_ip_leads_to_the_pods_of_all_nodes(
    cluster: EmbeddedCluster, api: Api, web: Web
) -> None:
    address = api.core.read_namespaced_service("web", "default").spec.cluster_ip
    for pod in web.pods():
        command = [*seat_of(cluster, pod), "python3", "-c", _ASK, address, "8080"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert said.strip() == "200"


def test_a_seat_is_on_the_pods_own_node(cluster: EmbeddedCluster, web: Web) -> None:
    for pod in web.pods():
        index = list(cluster.node_addresses).index(pod.spec.node_name)
        seat = cluster.enter_pod(pod.metadata.uid)
        assert all(ip_address(each) in pod_range(index) for each in seat.addresses)
        assert seat.addresses[0] == pod.status.pod_ip


def test_each_nodes_own_rules_can_be_looked_at(cluster: EmbeddedCluster, web: Web) -> None:
    for node in cluster.node_addresses:
        seen = cluster.node_network(cluster.source_addresses[:1], node)
        assert seen is not None
        assert (seen.rules.problem, seen.conntrack.problem) == (None, None)
        assert "default/web" in seen.rules.text
    assert cluster.node_network([], "no-such-node") is None


def test_what_a_pod_opened_is_looked_for_on_its_own_node(
    cluster: EmbeddedCluster, api: Api, web: Web
) -> None:
    """A pod's connections to a Service are translated there, and nowhere else."""
    address = api.core.read_namespaced_service("web", "default").spec.cluster_ip
    for pod in web.pods():
        command = [*seat_of(cluster, pod), "python3", "-c", _ASK, address, "8080"]
        subprocess.run(command, capture_output=True, check=True)
        seen = cluster.node_network([pod.status.pod_ip])
        assert seen is not None
        assert seen.conntrack.problem is None
        assert f"dst={address} " in seen.conntrack.text, pod.spec.node_name


def test_each_node_tells_in_a_log_of_its_own_how_it_started(cluster: EmbeddedCluster) -> None:
    for index in range(2):
        said = cluster.layout.of_node(index).log("node").read_text()
        assert said.count("kubelet started") == 1, index


def test_an_image_is_given_to_every_node(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    content = layer_bytes({"x": (b"x", 0o644)})
    layer = Layer(path=tmp_path / "layer", digest=hashlib.sha256(content).hexdigest())
    layer.path.write_bytes(content)
    config = image_config([layer.digest], entrypoint=["/x"])
    write_archive(tmp_path / "image.tar", "docker.io/drainwatch/tiny:1", [layer], config)
    reference = cluster.load_image(tmp_path / "image.tar")
    for index in range(2):
        pid = cluster.layout.of_node(index).node_pid.read_text()
        socket = f"/proc/{pid}/root{runtime.SOCKET}"
        command = ["ctr", "--address", socket, "--namespace=k8s.io", "images", "ls", "-q"]
        known = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert reference in known.split()


def test_no_node_has_a_default_route(cluster: EmbeddedCluster) -> None:
    for index in range(2):
        pid = cluster.layout.of_node(index).node_pid.read_text()
        table = Path(f"/proc/{pid}/net/route").read_text()
        destinations = [line.split()[1] for line in table.splitlines()[1:]]
        assert destinations
        assert "00000000" not in destinations


def test_the_report_hears_how_this_differs(cluster: EmbeddedCluster) -> None:
    assert any(line.startswith("2 nodes on one machine") for line in cluster.facts().deviations)


@pytest.mark.parametrize("dies", ["kubelet", "node"])
def test_a_component_that_dies_on_another_node_is_named_and_ends_the_cluster(dies: str) -> None:
    cluster = start_embedded(TWO, why="a test", log=print)
    nodes = [int(cluster.layout.of_node(index).node_pid.read_text()) for index in range(2)]
    assert any(cluster.name in path for path in cgroups())
    victim = nodes[1]  # its PID 1
    if dies != "node":
        victim = next(p for p, line in own_processes(nodes[1]).items() if "kubelet -" in line)
    cluster.check()
    os.kill(victim, signal.SIGKILL)

    def died() -> bool:
        try:
            cluster.check()
        except ClusterError as error:
            said = str(error)
            assert f"{dies} {'ended' if dies == 'node' else 'was killed by signal 9'}" in said
            assert str(cluster.layout.of_node(1).log(dies)) in said
            assert "(no log)" not in said
            return True
        return False

    assert eventually(died, within_s=5)
    cluster.close()
    for node in nodes:
        assert nothing_is_left(cluster.name, node)


_ASK = """
import http.client, sys
asked = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=3)
asked.request("GET", "/")
print(asked.getresponse().status)
"""
