"""A cluster as anybody sees it who has a kubeconfig, and what is in its namespaces."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch import (
    App,
    Behavior,
    Flows,
    Scenario,
)
from pytest_drainwatch import trial as conductor
from pytest_drainwatch.api import Api, connect
from pytest_drainwatch.cluster import Cluster, ClusterSettings
from pytest_drainwatch.cluster.opening import open_cluster
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.recording import loads
from pytest_drainwatch.trial import TrialVoid
from tests.cluster.harness import Silent, never

QUICK = Scenario(
    app=App(behavior=Behavior.EXIT_NOW, grace_period_s=3),
    flows=Flows(tcp=2, udp=2),
    settle_ns=NS_PER_S,
)
_numbers = count(1)
FOR_QUICK = ("--trigger", "delete", "--access", "nodeport", "--controller", "deployment")


def settings_of(cluster: Cluster, **other: Any) -> ClusterSettings:
    return ClusterSettings(
        provider="existing",
        kubeconfig=cluster.kubeconfig,
        probe_image=cluster.ensure_probe_image(),
        **other,
    )


def existing(cluster: Cluster, **other: Any) -> Cluster:
    """The same cluster as anybody sees it who has the kubeconfig."""
    wanted = replace(settings_of(cluster), **other)
    return open_cluster(wanted, why="asked for", log=lambda _: None)


def void(cluster: Cluster, folder: Path, scenario: Scenario = QUICK, **how: Any) -> str:
    """Why a trial was void."""
    with pytest.raises(TrialVoid) as caught:
        conductor.run_trial(cluster, scenario, folder=folder, keep=never, progress=Silent(), **how)
    assert not (folder / "report.json").exists()
    return str(caught.value)


def checks_of(folder: Path) -> dict[str, Observation]:
    seen = loads((folder / "recording.jsonl").read_text()).observations
    return {str(o.data["name"]): o for o in seen if o.event is Event.PREFLIGHT_CHECK}


def namespaces(api: Api) -> set[str]:
    """Those that are there and are not on their way out."""
    items = api.core.list_namespace().items
    return {item.metadata.name for item in items if item.metadata.deletion_timestamp is None}


@pytest.fixture
def admin(dw_cluster: Cluster) -> Iterator[Api]:
    api = connect(dw_cluster.kubeconfig, dw_cluster.context)
    before = namespaces(api)
    yield api
    assert namespaces(api) == before, "a namespace was left, or taken"
    api.close()


@pytest.fixture
def team(admin: Api) -> Iterator[str]:
    """Somebody's namespace with somebody's things in it, which are left as they are."""
    name = f"team-{next(_numbers)}"
    admin.core.create_namespace({"metadata": {"name": name}})
    try:
        admin.core.create_namespaced_service(
            name, {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
        )
        admin.core.create_namespaced_config_map(name, {"metadata": {"name": "settings"}})
        yield name
    finally:
        admin.core.delete_namespace(name)


def things_in(api: Api, name: str) -> set[tuple[str, str]]:
    """What is in a namespace, by kind and name, but for what Kubernetes puts into each."""
    core, apps = api.core, api.apps
    lists = {
        "service": core.list_namespaced_service,
        "configmap": core.list_namespaced_config_map,
        "pod": core.list_namespaced_pod,
        "deployment": apps.list_namespaced_deployment,
        "statefulset": apps.list_namespaced_stateful_set,
        "daemonset": apps.list_namespaced_daemon_set,
        "replicaset": apps.list_namespaced_replica_set,
        "slice": api.discovery.list_namespaced_endpoint_slice,
    }
    return {
        (kind, item.metadata.name)
        for kind, call in lists.items()
        for item in call(name).items
        if item.metadata.name != "kube-root-ca.crt"
    }


def until_only(api: Api, name: str, expected: set[tuple[str, str]]) -> None:
    """Wait until the garbage collector has done its part."""
    deadline = time.monotonic() + 20
    while (found := things_in(api, name)) != expected:
        assert time.monotonic() < deadline, found - expected
        time.sleep(0.2)
