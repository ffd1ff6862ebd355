"""A cluster that was there before, reached by kubeconfig."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_drainwatch import App, Behavior, Flows, Scenario
from pytest_drainwatch import trial as conductor
from pytest_drainwatch.cluster import Cluster, ClusterError, ClusterSettings, open_cluster
from pytest_drainwatch.core.interval import NS_PER_S
from tests.cluster.harness import Silent, never

pytestmark = pytest.mark.cluster

QUICK = Scenario(
    app=App(behavior=Behavior.EXIT_NOW, grace_period_s=3),
    flows=Flows(tcp=2, udp=2),
    settle_ns=NS_PER_S,
)


def settings_of(cluster: Cluster) -> ClusterSettings:
    return ClusterSettings(
        provider="existing",
        kubeconfig=cluster.kubeconfig,
        probe_image=cluster.ensure_probe_image(),
    )


def test_a_trial_on_an_existing_cluster(dw_cluster: Cluster, tmp_path: Path) -> None:
    existing = open_cluster(settings_of(dw_cluster), why="asked for", log=lambda _: None)
    trial = conductor.run_trial(existing, QUICK, folder=tmp_path, keep=never, progress=Silent())
    assert trial.tcp.mechanisms == {"rst": 2}
    environment = trial.report.environment
    assert environment.provider == "existing"
    # What this provider cannot know is null with a warning, not a default.
    assert environment.min_sync_period_ms is None
    assert any("minSyncPeriod" in warning for warning in environment.warnings)


def test_an_existing_cluster_needs_an_image_reference(dw_cluster: Cluster, tmp_path: Path) -> None:
    unnamed = replace(settings_of(dw_cluster), probe_image=None)
    existing = open_cluster(unnamed, why="asked for", log=lambda _: None)
    with pytest.raises(conductor.TrialVoid, match="--dw-probe-image"):
        conductor.run_trial(existing, QUICK, folder=tmp_path, keep=never, progress=Silent())


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
