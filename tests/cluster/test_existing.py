"""A cluster that was there before: reached by kubeconfig, its Service by whatever leads there."""

from __future__ import annotations

import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_drainwatch import (
    Access,
    Service,
)
from pytest_drainwatch import trial as conductor
from pytest_drainwatch.api import Api
from pytest_drainwatch.cluster import Cluster, ClusterError, ClusterSettings
from pytest_drainwatch.cluster.embedded.cluster import EmbeddedCluster
from pytest_drainwatch.cluster.opening import open_cluster
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import loads
from pytest_drainwatch.placement import Address, Placement
from pytest_drainwatch.workload import manifests
from tests.cluster.accounts import account, expired, kubeconfig
from tests.cluster.existing import (
    QUICK,
    existing,
    void,
)
from tests.cluster.harness import Silent, never

pytestmark = pytest.mark.cluster


def accounts_token(dw_cluster: Cluster, case: str) -> tuple[str, str]:
    """A bearer token that is not valid, and what is said of it."""
    assert isinstance(dw_cluster, EmbeddedCluster)
    key = dw_cluster.layout.pki / "sa.key"
    return {
        "expired": (expired(key, "anybody"), "; the token expired "),
        "garbage": ("no-token-at-all", "HTTP 401"),
        "none": ("", "HTTP 401"),
    }[case]


@pytest.mark.parametrize("case", ["expired", "garbage", "none"])
def test_a_token_that_is_not_valid_is_said_before_anything_else(
    case: str, dw_cluster: Cluster, tmp_path: Path
) -> None:
    bearer, expected = accounts_token(dw_cluster, case)
    with pytest.raises(ClusterError) as caught:
        existing(dw_cluster, kubeconfig=kubeconfig(dw_cluster, tmp_path, bearer))
    said = str(caught.value)
    assert "preflight check 'credentials-accepted' failed" in said
    assert expected in said
    assert "auth whoami" in said
    assert not bearer or bearer not in said


@pytest.mark.slow
def test_a_token_of_an_account_that_is_gone(dw_cluster: Cluster, tmp_path: Path) -> None:
    with account(dw_cluster, tmp_path, "gone", []) as runner:
        existing(dw_cluster, kubeconfig=runner.kubeconfig)
    said: list[str] = []
    deadline = time.monotonic() + 20  # the API server remembers what it has just verified
    while not said and time.monotonic() < deadline:
        try:
            existing(dw_cluster, kubeconfig=runner.kubeconfig)
        except ClusterError as error:
            said.append(str(error))
        time.sleep(0.5)
    assert "'credentials-accepted' failed" in said[0]


@pytest.mark.slow
def test_an_image_that_cannot_be_pulled_is_named_soon(
    dw_cluster: Cluster, admin: Api, tmp_path: Path
) -> None:
    image = "127.0.0.1:9/drainwatch/none:1"
    began = time.monotonic()
    said = void(existing(dw_cluster, probe_image=image), tmp_path)
    assert time.monotonic() - began < 40
    assert "preflight check 'image-pulled' failed" in said
    assert f"{image} is there, and may be pulled" in said
    assert "ImagePull" in said
    assert "--dw-probe-image REF" in said
    assert "--dw-pull-secret NAME" in said


def test_a_service_that_does_not_answer_is_named(
    dw_cluster: Cluster, admin: Api, tmp_path: Path
) -> None:
    nobody = Placement(address=Address(host="127.0.0.1"))
    said = void(existing(dw_cluster), tmp_path, placement=nobody)
    assert "preflight check 'service-reachable' failed" in said
    assert "tcp 127.0.0.1 port" in said
    assert "Connection refused" in said
    assert "nc -vz 127.0.0.1 3" in said
    assert "--dw-address HOST" in said


DROP = """
table inet dw_firewall {
    chain in {
        type filter hook prerouting priority -350; policy accept;
        meta l4proto { tcp, udp } th dport 30000-32767 drop
    }
}
"""


@pytest.mark.slow
def test_a_firewall_before_the_node_ports_is_named(
    dw_cluster: Cluster, admin: Api, tmp_path: Path
) -> None:
    assert isinstance(dw_cluster, EmbeddedCluster)
    node = dw_cluster.layout.node_pid.read_text().strip()
    there = ["nsenter", "--target", node, "--net"]
    subprocess.run([*there, "nft", "-f", "-"], input=DROP, text=True, check=True)
    try:
        said = void(existing(dw_cluster), tmp_path)
    finally:
        subprocess.run([*there, "nft", "delete", "table", "inet", "dw_firewall"], check=True)
    assert "preflight check 'service-reachable' failed" in said
    assert f"tcp {dw_cluster.node_address} port 3" in said
    assert "timed out" in said
    assert "node ports are 30000-32767" in said


def test_a_name_that_leads_nowhere_is_named(
    dw_cluster: Cluster, admin: Api, tmp_path: Path
) -> None:
    nobody = Placement(address=Address(host="nobody.invalid"))
    said = void(existing(dw_cluster), tmp_path, placement=nobody)
    assert "preflight check 'address-known' failed" in said
    assert "nobody.invalid cannot be resolved" in said


@pytest.mark.slow
def test_a_load_balancers_address_is_waited_for_and_used(
    dw_cluster: Cluster, admin: Api, tmp_path: Path
) -> None:
    """The test is the controller that makes load balancers: here the node is one."""
    balanced = replace(QUICK, service=Service(access=Access.LOAD_BALANCER))

    over = threading.Event()
    ingress = [{"ip": dw_cluster.node_address}]

    def balance() -> None:
        while not over.wait(0.1):
            for made in admin.core.list_service_for_all_namespaces().items:
                if made.spec.type == "LoadBalancer" and not made.status.load_balancer.ingress:
                    admin.core.patch_namespaced_service_status(
                        made.metadata.name,
                        made.metadata.namespace,
                        {"status": {"loadBalancer": {"ingress": ingress}}},
                    )

    controller = threading.Thread(target=balance, daemon=True)
    controller.start()
    try:
        trial = conductor.run_trial(
            existing(dw_cluster), balanced, folder=tmp_path, keep=never, progress=Silent()
        )
    finally:
        over.set()
        controller.join(10)
    assert trial.tcp.mechanisms == {"rst": 2}
    (way,) = [
        o
        for o in loads((tmp_path / "recording.jsonl").read_text()).observations
        if o.event is Event.WAY_CHOSEN
    ]
    assert (way.data["address"], way.data["tcp_port"]) == (
        dw_cluster.node_address,
        manifests.TCP_PORT,
    )


def test_a_load_balancer_that_nobody_makes_is_named(
    dw_cluster: Cluster, admin: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_drainwatch.outside.LOAD_BALANCER_TIMEOUT_S", 1.0)
    balanced = replace(QUICK, service=Service(access=Access.LOAD_BALANCER))
    said = void(existing(dw_cluster), tmp_path, balanced)
    assert "preflight check 'address-known' failed" in said
    assert "it has no ingress address" in said
    assert "describe service drainwatch-probe" in said


def test_an_existing_cluster_needs_an_image_reference(dw_cluster: Cluster, tmp_path: Path) -> None:
    said = void(existing(dw_cluster, probe_image=None), tmp_path)
    assert "--dw-probe-image" in said


def test_an_api_server_that_refuses_names_the_command_to_try(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, users: [{name: u, user: {}}],"
        " contexts: [{name: c, context: {cluster: c, user: u}}],"
        " clusters: [{name: c, cluster: {server: 'https://127.0.0.1:9'}}]}"
    )
    wanted = ClusterSettings(provider="existing", kubeconfig=config)
    with pytest.raises(ClusterError, match=f"kubectl --kubeconfig {config} get nodes"):
        open_cluster(wanted, why="asked for", log=lambda _: None)
