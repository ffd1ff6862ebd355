"""What a running embedded cluster is and does."""

from __future__ import annotations

import http.client
import signal
import socket
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_drainwatch.cluster import ClusterSettings
from pytest_drainwatch.cluster.embedded import cgroups
from pytest_drainwatch.cluster.embedded.cluster import EmbeddedCluster, start_embedded
from tests.embedded.live.conftest import own_processes
from tests.embedded.live.host import eventually
from tests.embedded.live.workload import NAME, Web, deploy_web

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def web(cluster: EmbeddedCluster) -> Iterator[Web]:
    deployed = deploy_web(cluster)
    yield deployed
    deployed.api.close()


def fetch(address: str, port: int, source: str) -> int:
    connection = http.client.HTTPConnection(address, port, timeout=1, source_address=(source, 0))
    try:
        connection.request("GET", "/")
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def test_states_the_pinned_version(cluster: EmbeddedCluster, web: Web) -> None:
    from kubernetes import client

    version = client.VersionApi(web.api).get_code().git_version
    assert version.startswith(f"v{ClusterSettings().kube_version}.")


def test_node_port_answers_from_every_source_address(cluster: EmbeddedCluster, web: Web) -> None:
    assert len(cluster.source_addresses) >= 2

    def all_answer() -> bool:
        return {
            fetch(cluster.node_address, web.port, source) for source in cluster.source_addresses
        } == {200}

    assert eventually(all_answer, within_s=5)


def test_logs_come_through_the_verified_kubelet(cluster: EmbeddedCluster, web: Web) -> None:
    from kubernetes import client

    pod = web.pods()[0].metadata.name
    log = client.CoreV1Api(web.api).read_namespaced_pod_log(pod, "default")
    assert isinstance(log, str)


def test_api_server_knows_nobody_without_a_certificate(cluster: EmbeddedCluster) -> None:
    authority = ssl.create_default_context(cafile=str(cluster.layout.pki / "ca.crt"))
    request = f"https://{cluster.node_address}:6443/api"
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(request, context=authority)


def test_api_server_is_known_by_its_own_authority_only(cluster: EmbeddedCluster) -> None:
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        urllib.request.urlopen(f"https://{cluster.node_address}:6443/api")


@pytest.mark.parametrize("port", [2379, 2380, 10257, 10259, 10249])
def test_inner_ports_do_not_answer_outside(cluster: EmbeddedCluster, port: int) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((cluster.node_address, port), timeout=1)


def test_kubelet_wants_a_certificate(cluster: EmbeddedCluster) -> None:
    authority = ssl.create_default_context(cafile=str(cluster.layout.pki / "ca.crt"))
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"https://{cluster.node_address}:10250/pods", context=authority)


def test_node_has_no_default_route(cluster: EmbeddedCluster) -> None:
    table = Path(f"/proc/{cluster.layout.node_pid.read_text()}/net/route").read_text()
    destinations = [line.split()[1] for line in table.splitlines()[1:]]
    assert destinations
    assert "00000000" not in destinations


def test_names_what_differs_from_the_defaults(cluster: EmbeddedCluster) -> None:
    facts = cluster.facts()
    assert (facts.provider, facts.proxy_mode, facts.min_sync_period_ms) == (
        "embedded",
        "iptables",
        1000,
    )
    assert not any("minSyncPeriod" in line for line in facts.deviations)
    assert any("eviction" in line for line in facts.deviations)


def test_nothing_in_the_node_inherits_ignored_signals(cluster: EmbeddedCluster, web: Web) -> None:
    # A pod that cannot be terminated because of how pytest was started would be a wrong verdict.
    signals = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1)
    mask = sum(1 << (number - 1) for number in signals)
    processes = own_processes(int(cluster.layout.node_pid.read_text()))
    assert sum("http.server" in command for command in processes.values()) == 2
    for pid, command in processes.items():
        status = dict(
            line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        )
        assert int(status["SigIgn"], 16) & mask == 0, command
        if "http.server" in command:
            assert int(status["SigBlk"], 16) == 0
            assert status["Umask"] == "0022"


def test_secrets_are_for_their_owner_only(cluster: EmbeddedCluster) -> None:
    assert cluster.layout.state.stat().st_mode & 0o077 == 0
    secrets = [*cluster.layout.pki.glob("*.key"), *cluster.layout.config.glob("*.kubeconfig")]
    assert len(secrets) >= 9
    assert {file.stat().st_mode & 0o777 for file in (*secrets, cluster.kubeconfig)} == {0o600}


def test_nftables_and_another_sync_period() -> None:
    settings = ClusterSettings(proxy_mode="nftables", min_sync_period_ms=100)
    cluster = start_embedded(settings, why="a test", log=print)
    try:
        web = deploy_web(cluster, replicas=1)
        source = cluster.source_addresses[0]
        assert eventually(lambda: fetch(cluster.node_address, web.port, source) == 200, within_s=5)
        web.api.close()
        assert any("minSyncPeriod 100 ms" in line for line in cluster.facts().deviations)
        assert NAME in web.pods()[0].metadata.name
    finally:
        cluster.close()


def test_its_components_share_its_processor_time_which_can_go_first(
    cluster: EmbeddedCluster, web: Web
) -> None:
    found = cgroups.hierarchies()
    pure_v2 = cgroups.flavour(found) == "v2"
    root = next(each.root for each in found if pure_v2 or "cpu" in each.controllers)
    own = root / cgroups.PARENT / cluster.name
    node_pid = int(cluster.layout.node_pid.read_text())
    running = own_processes(node_pid)
    for part, name in (
        (cgroups.Part.NODE, "kubelet"),
        (cgroups.Part.NODE, "containerd"),
        (cgroups.Part.CONTROL_PLANE, "apiserver"),
        (cgroups.Part.CONTROL_PLANE, "etcd"),
    ):
        members = map(int, (own / cgroups.SYSTEM / part / "cgroup.procs").read_text().split())
        named = {pid: running.get(pid, "") for pid in members}
        assert any(name in command for command in named.values()), named
    weight = own / ("cpu.weight" if pure_v2 else "cpu.shares")
    before = int(weight.read_text())
    with cluster.hasten():
        assert int(weight.read_text()) == before * cgroups.HASTENED
    assert int(weight.read_text()) == before
