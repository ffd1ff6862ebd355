"""Opening the cluster that the settings ask for, and sweeping what a dead run left in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_drainwatch.api import ApiUnavailable, connect, failures
from pytest_drainwatch.cluster import (
    Cluster,
    ClusterSettings,
    choose_provider,
    open_cluster,
)
from pytest_drainwatch.options import Settings
from pytest_drainwatch.workload.namespace import sweep


def cluster_settings(settings: Settings) -> tuple[ClusterSettings, str]:
    """What to open, and why that. Raises ClusterError if nothing on this machine can be used."""
    provider, why = choose_provider(
        settings.cluster, kubeconfig=settings.kubeconfig, context=settings.context
    )
    wanted = ClusterSettings(
        provider=provider,
        kube_version=settings.kube_version,
        kube_bin=settings.kube_bin,
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        probe_image=settings.probe_image,
    )
    return wanted, why


@contextmanager
def opened_cluster(
    settings: Settings, logs: Path, log: Callable[[str], None], *, keep: Callable[[], bool]
) -> Iterator[Cluster]:
    """A cluster for as long as the context lasts, longer if ``keep()``. Raises ClusterError."""
    wanted, why = cluster_settings(settings)
    cluster = open_cluster(wanted, why=why, log=log, logs_dir=logs)
    try:
        if wanted.provider != "embedded":  # which starts empty
            with suppress(ApiUnavailable, *failures()):
                for name in sweep(connect(cluster.kubeconfig, cluster.context)):
                    log(f"removed namespace {name}, left by a run that is gone")
        yield cluster
    finally:
        if keep():
            cluster.detach()
            log(f"kept: export KUBECONFIG={cluster.kubeconfig}")
        else:
            cluster.close()
