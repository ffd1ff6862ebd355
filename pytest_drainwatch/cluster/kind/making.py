"""A kind cluster of our own, for a run that has no pytest and so no fixture of pytest-kind."""

from __future__ import annotations

import uuid

from pytest_drainwatch.cluster import ClusterSettings, Log
from pytest_drainwatch.cluster.embedded.directories import state_dir, writing_to_state
from pytest_drainwatch.cluster.kind.cluster import Given
from pytest_drainwatch.cluster.kind.programs import check_docker, find_kind
from pytest_drainwatch.cluster.kind.shape import Shape


def make(settings: ClusterSettings, *, log: Log) -> Given:
    """Make a cluster as *settings* say; its Kubernetes is the one of kind's own node image.

    Raises:
        ClusterError: kind or Docker is missing, or the cluster could not be made; then nothing
            is left of it.
    """
    kind = find_kind()
    check_docker()
    name = f"drainwatch-{uuid.uuid4().hex[:8]}"
    folder = state_dir() / "kind"
    with writing_to_state():
        folder.mkdir(parents=True, exist_ok=True)
    kubeconfig = folder / f"{name}.kubeconfig"

    def end() -> None:
        kind.delete(name, kubeconfig)
        kubeconfig.unlink(missing_ok=True)

    shape = Shape(
        image=settings.kind_image,
        nodes=settings.nodes,
        proxy_mode=settings.proxy_mode,
        min_sync_period_ms=settings.min_sync_period_ms,
    )
    log(f"making kind cluster {name}")
    try:
        kind.create(name, kubeconfig, shape)
    except BaseException:
        kind.clear(name, kubeconfig)
        kubeconfig.unlink(missing_ok=True)
        raise
    return Given(name=name, kubeconfig=kubeconfig, kind=kind, end=end)
