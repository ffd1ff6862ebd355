"""Real clusters from the pool: by kube-proxy's own words as asked for; a seat in a pod; the end."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from pytest_drainwatch import environment
from pytest_drainwatch.api import connect, failures
from pytest_drainwatch.cluster import Cluster, ClusterError, ClusterSettings, Seat
from pytest_drainwatch.cluster.embedded import records, runtime
from pytest_drainwatch.cluster.embedded.cluster import EmbeddedCluster
from pytest_drainwatch.cluster.opening import open_cluster
from pytest_drainwatch.core.scenario import ClusterNeeds, ProxyMode
from pytest_drainwatch.pool import ClusterPool
from pytest_drainwatch.settings import Settings
from pytest_drainwatch.suiting import refuse
from pytest_drainwatch.workload import client, manifests
from pytest_drainwatch.workload.place import Place
from tests.embedded.live.host import cgroups
from tests.embedded.live.workload import NAME, Web, deploy_web

pytestmark = pytest.mark.cluster

NFTABLES = ClusterNeeds(proxy_mode=ProxyMode.NFTABLES, min_sync_period_ms=10_000)
WITHIN_S = 40.0
FETCH = """
import http.client, sys
address, port, source = sys.argv[1], int(sys.argv[2]), sys.argv[3]
web = http.client.HTTPConnection(address, port, timeout=2, source_address=(source, 0))
web.request("GET", "/from-" + source)
sys.exit(0 if web.getresponse().status == 404 else 1)
"""


@pytest.fixture(scope="module", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    if os.geteuid() != 0:
        pytest.skip("embedded clusters need root")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DW_STATE", str(tmp_path_factory.mktemp("state")))
        yield


def pool_of(folder: Path, said: list[str] | None = None) -> ClusterPool:
    log = print if said is None else said.append
    return ClusterPool(Settings(cluster="embedded"), folder, log, keep=lambda: False)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    folder = tmp_path_factory.mktemp("logs")
    with pool_of(folder) as pool, pool.lease(NFTABLES) as leased:
        assert isinstance(leased, EmbeddedCluster)
        yield leased


@pytest.fixture(scope="module")
def web(cluster: EmbeddedCluster) -> Iterator[Web]:
    deployed = deploy_web(cluster, replicas=1)
    yield deployed
    deployed.api.close()


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def ask_proxy(cluster: EmbeddedCluster, path: str) -> str:
    """What kube-proxy says of itself, on its own loopback."""
    code = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:10249/{path}').read().decode())"
    node = cluster.layout.node_pid.read_text().strip()
    return subprocess.run(
        ["nsenter", f"--net=/proc/{node}/ns/net", "--", "python3", "-c", code],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_kube_proxy_runs_in_the_mode_and_with_the_period_that_was_asked_for(
    cluster: EmbeddedCluster,
) -> None:
    assert ask_proxy(cluster, "proxyMode") == "nftables"
    (settings,) = json.loads(ask_proxy(cluster, "configz")).values()
    assert settings["nftables"]["minSyncPeriod"] == "10s"
    assert "Using nftables Proxier" in cluster.layout.log("kube-proxy").read_text()


def test_facts_and_the_environment_record_say_the_same(cluster: EmbeddedCluster) -> None:
    facts = cluster.facts()
    assert (facts.kube_version, facts.proxy_mode, facts.min_sync_period_ms) == (
        ClusterSettings().kube_version,
        "nftables",
        10_000,
    )
    api = connect(cluster.kubeconfig, cluster.context)
    try:
        record = environment.gather(api, cluster, "image")
    finally:
        api.close()
    assert (record["kube_proxy_mode"], record["min_sync_period_ms"]) == ("nftables", 10_000)
    assert "kube-proxy: minSyncPeriod 10000 ms, not 1000 ms" in str(record["deviations"])


def run_in(seat: Seat, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(seat.command(argv), capture_output=True, text=True, check=False)


def test_from_a_seat_in_a_pod_every_address_reaches_a_cluster_ip_as_itself(
    cluster: EmbeddedCluster, web: Web
) -> None:
    api = connect(cluster.kubeconfig, cluster.context)
    api.core.create_namespace(manifests.namespace("dw-seat", "a test"))
    try:
        uid = client.apply(api, Place(namespace="dw-seat"), cluster.ensure_probe_image())
        pod = api.core.read_namespaced_pod(manifests.CLIENT, "dw-seat")
        assert pod.metadata.uid == uid
        assert manifests.SELECTOR.items().isdisjoint(pod.metadata.labels.items())
        seat = cluster.enter_pod(uid)
        assert seat.addresses[0] == pod.status.pod_ip
        assert len(set(seat.addresses)) == 3
        assert all(address in seat.note for address in seat.addresses)
        service = api.core.read_namespaced_service(NAME, "default").spec
        words = [service.cluster_ip, str(service.ports[0].port)]
        for source in seat.addresses:
            fetch = ["python3", "-c", FETCH, *words, source]
            assert eventually(lambda fetch=fetch: run_in(seat, fetch).returncode == 0), source  # type: ignore[misc]
        # The server saw three clients: each has an ICMP allowance of its own.
        log = api.core.read_namespaced_pod_log(web.pods()[0].metadata.name, "default")
        for source in seat.addresses:
            assert f"{source} - - " in log
            assert f"/from-{source}" in log
        _is_freed_with_its_pod(cluster, api, seat)
        with pytest.raises(ClusterError, match=f"no process of pod {uid} runs"):
            cluster.enter_pod(uid)
    finally:
        api.core.delete_namespace("dw-seat")
        api.close()


def _is_freed_with_its_pod(cluster: EmbeddedCluster, api: object, seat: Seat) -> None:
    node = cluster.layout.node_pid.read_text().strip()
    store = Path(f"/proc/{node}/root{runtime.IPAM}/{runtime.NETWORK}")
    assert {*seat.addresses} <= {file.name for file in store.iterdir()}
    api.core.delete_namespaced_pod(manifests.CLIENT, "dw-seat")  # type: ignore[attr-defined]
    assert eventually(lambda: seat.addresses[1] not in {file.name for file in store.iterdir()})
    assert not {*seat.addresses} & {file.name for file in store.iterdir()}


def test_a_pod_that_does_not_start_is_named(cluster: EmbeddedCluster) -> None:
    api = connect(cluster.kubeconfig, cluster.context)
    try:
        with pytest.raises(failures()):
            client.apply(api, Place(namespace="no-such-namespace"), "image")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(client, "READY_TIMEOUT_S", 1.0)
            with pytest.raises(client.ClientFailed, match="default/drainwatch-client is Pending"):
                client.apply(api, Place(namespace="default"), "docker.io/drainwatch/none:1")
        api.core.delete_namespaced_pod(manifests.CLIENT, "default")
    finally:
        api.close()


def test_somebody_elses_cluster_has_no_seat_and_is_not_taken_for_another(
    cluster: EmbeddedCluster,
) -> None:
    existing = open_cluster(
        ClusterSettings(provider="existing", kubeconfig=cluster.kubeconfig), why="", log=print
    )
    assert existing.facts().kube_version == ClusterSettings().kube_version
    refuse(existing, ClusterNeeds(kube_version=ClusterSettings().kube_version))
    with pytest.raises(ClusterError, match=r"asked for Kubernetes 1\.34, and .* has 1\.37"):
        refuse(existing, ClusterNeeds(kube_version="1.34"))
    # This node's kube-proxy has no ConfigMap, so its mode is not known to a stranger.
    with pytest.raises(ClusterError, match=r"mode nftables, and .* does not say what it has"):
        refuse(existing, NFTABLES)
    with pytest.raises(ClusterError, match="--dw-cluster=embedded"):
        existing.enter_pod("any")


@pytest.mark.alone  # three clusters beside a neighbour's: inotify instances run out
def test_the_pool_shares_makes_room_and_leaves_nothing(tmp_path: Path) -> None:
    others = {record.name for record in records.running()}

    def alive() -> set[str]:
        return {record.name for record in records.running()} - others

    asked = [ClusterNeeds(min_sync_period_ms=ms) for ms in (100, 200, 300)]
    with pool_of(tmp_path) as pool:
        assert alive() == set()
        with pool.lease(asked[0]) as first, pool.lease(asked[0]) as same:
            assert same is first
        with pool.lease(asked[1]) as second, pool.lease(asked[0]) as again:
            assert again is first
            assert alive() == {first.name, second.name}
        with pool.lease(asked[2]) as third:
            _answers(third)
            assert alive() == {first.name, third.name}
        ours = [first.name, second.name, third.name]
        assert any(third.name in path for path in cgroups())
    assert alive() == set()
    assert not [path for path in cgroups() if any(name in path for name in ours)]


def _answers(cluster: Cluster) -> None:
    api = connect(cluster.kubeconfig, cluster.context)
    try:
        assert api.core.list_node().items
    finally:
        api.close()
