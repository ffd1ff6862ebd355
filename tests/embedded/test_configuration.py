"""Flags and files say what was asked for, and nothing is changed in silence."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_drainwatch.cluster.embedded import preparation
from pytest_drainwatch.cluster.embedded.addresses import Block
from pytest_drainwatch.cluster.embedded.configuration import NodeConfiguration
from pytest_drainwatch.cluster.embedded.layout import Layout
from pytest_drainwatch.cluster.embedded.plan import Component, Gate, NodePlan, Plan, read_plan

CONFIGURATION = NodeConfiguration(
    layout=Layout(state=Path("/state"), logs=Path("/logs")),
    binary=Path("/bin/kubenode"),
    node_address="198.18.0.8",
    node_name="dw-node-0",
    pods="10.244.0.0/24",
    cgroup="/drainwatch/one",
    proxy_mode="iptables",
    min_sync_period_ms=1000,
    cni_bin=Path("/usr/lib/cni"),
    restrict_oom=False,
    images=(Path("/cache/pause-1.tar"), Path("/cache/probe-2.tar")),
)

FURTHER = replace(
    CONFIGURATION,
    layout=CONFIGURATION.layout.of_node(1),
    node_address="198.18.0.9",
    node_name="dw-node-0-2",
    pods="10.244.1.0/24",
    api="198.18.0.8",
    nodes=3,
)


def component(name: str) -> Component:
    return next(c for c in CONFIGURATION.components() if c.name == name)


@pytest.mark.parametrize("mode", ["iptables", "nftables", "ipvs"])
def test_proxy_runs_with_the_asked_mode_and_period(mode: str) -> None:
    asked = replace(CONFIGURATION, proxy_mode=mode, min_sync_period_ms=250)
    document = json.loads(asked.files()["kube-proxy.json"])
    assert (document["mode"], document[mode]) == (
        mode,
        {"minSyncPeriod": "250ms", "syncPeriod": "30000ms"},
    )
    assert set(document["conntrack"]) == {"maxPerCore"}, "conntrack timeouts stay Kubernetes' own"


def test_only_a_changed_period_is_a_deviation() -> None:
    assert not any("minSyncPeriod" in line for line in CONFIGURATION.deviations())
    changed = replace(CONFIGURATION, min_sync_period_ms=1).deviations()
    assert any("minSyncPeriod 1 ms, not 1000 ms" in line for line in changed)


def test_a_period_is_compared_with_the_default_of_its_own_mode() -> None:
    ipvs = replace(CONFIGURATION, proxy_mode="ipvs")
    assert any("minSyncPeriod 1000 ms, not 0 ms" in line for line in ipvs.deviations())
    as_it_comes = replace(ipvs, min_sync_period_ms=0).deviations()
    assert not any("minSyncPeriod" in line for line in as_it_comes)


@pytest.mark.parametrize("restricted", [True, False])
def test_containerd_lowers_no_score_where_it_may_not(restricted: bool) -> None:
    asked = replace(CONFIGURATION, restrict_oom=restricted)
    document = tomllib.loads(asked.files()["containerd.toml"])
    cri = document["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["restrict_oom_score_adj"] is restricted
    assert any("oom_score" in line for line in asked.deviations()) is restricted
    assert document["root"] == "/state/containerd"
    assert document["state"].startswith("/run/"), "on a file system that ends with the node"


def test_what_components_lack_is_a_deviation() -> None:
    argv = {component.name: component.argv for component in CONFIGURATION.components()}
    named = "\n".join(CONFIGURATION.deviations())
    for name in ("kube-controller-manager", "kube-scheduler"):
        assert "--secure-port=0" in argv[name]
    assert "kube-controller-manager, kube-scheduler: no port" in named
    assert not any("requestheader" in flag for flag in argv["kube-apiserver"])
    assert "no aggregated APIs" in named
    heartbeat, election = (
        next(int(f.partition("=")[2]) for f in argv["etcd"] if f.startswith(flag))
        for flag in ("--heartbeat-interval", "--election-timeout")
    )
    assert election >= 5 * heartbeat, "etcd refuses to start else"
    assert f"heartbeat {heartbeat} ms, election timeout {election} ms" in named


def test_kubelet_stays_below_its_own_cgroup_and_checks_who_calls() -> None:
    document = json.loads(CONFIGURATION.files()["kubelet.json"])
    assert document["cgroupRoot"] == "/drainwatch/one"
    assert document["authentication"]["anonymous"] == {"enabled": False}
    assert document["authorization"] == {"mode": "Webhook"}


def test_no_flag_turns_verification_off_or_changes_a_feature() -> None:
    flags = [flag for c in CONFIGURATION.components() for flag in c.argv]
    forbidden = ("insecure", "token-auth", "feature-gates", "anonymous-auth=true", "AlwaysAllow")
    assert not [flag for flag in flags for word in forbidden if word in flag]
    assert "--authorization-mode=Node,RBAC" in flags


def test_etcd_listens_on_loopback_only() -> None:
    urls = [flag for flag in component("etcd").argv if "://" in flag]
    assert len(urls) == 3
    assert all("=http://127.0.0.1:" in url for url in urls)


def test_components_wait_for_what_they_need() -> None:
    gates = {c.name: set(c.gates) for c in CONFIGURATION.components()}
    assert gates["etcd"] == set()
    assert gates["kube-apiserver"] == {Gate.ETCD}
    assert Gate.CONTAINERD in gates["kubelet"], "it gives up without a runtime"
    assert gates["kube-controller-manager"] == {Gate.API_READY}
    assert Gate.CONTAINERD in gates["import-probe-2"]


def test_only_imports_may_end() -> None:
    passing = [c.name for c in CONFIGURATION.components() if c.passing]
    assert passing == ["import-pause-1", "import-probe-2"]


def test_plan_survives_its_file(tmp_path: Path) -> None:
    plan = Plan(
        state="/state",
        logs="/logs",
        link="dwh0",
        sources=("198.18.0.1/28",),
        cgroup="/drainwatch/one",
        nodes=tuple(node_plan(index) for index in range(2)),
    )
    plan.write(tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan


@pytest.mark.parametrize("text", ['{"components": []}', "[]", '{"sources": [], "nodes": [{}]}'])
def test_a_plan_of_another_version_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(ValueError, match="no plan of this version"):
        read_plan(tmp_path / "plan.json")


def node_plan(index: int) -> NodePlan:
    return preparation.node_plan(
        CONFIGURATION.layout.of_node(index),
        Block(slot=0),
        index,
        cgroup=f"/drainwatch/one/{index}",
        kept=(Path("/state"),),
        components=CONFIGURATION.components() if index == 0 else FURTHER.components(),
        certificates=Path("/state/pki"),
        nodes=3,
    )


def test_every_node_knows_the_way_to_the_pods_of_all_others() -> None:
    plan = node_plan(1)
    assert (plan.name, plan.address) == ("dw-node-0-2", "198.18.0.9/28")
    assert plan.pod_range == "10.244.1.0/24"
    assert plan.routes == (("10.244.0.0/24", "198.18.0.8"), ("10.244.2.0/24", "198.18.0.10"))
    assert (node_plan(0).api, plan.api) == ("127.0.0.1", "198.18.0.8")


def test_a_further_node_has_no_control_plane_and_waits_for_that_of_the_first() -> None:
    names = {component.name for component in FURTHER.components()}
    assert names == {"containerd", "kubelet", "kube-proxy", "import-pause-1", "import-probe-2"}
    assert not node_plan(1).waits_for(Gate.ETCD)
    assert node_plan(0).waits_for(Gate.ETCD)


def test_only_a_cluster_of_several_nodes_says_how_many() -> None:
    assert not any("nodes on one machine" in line for line in CONFIGURATION.deviations())
    assert any(line.startswith("3 nodes on one machine") for line in FURTHER.deviations())
