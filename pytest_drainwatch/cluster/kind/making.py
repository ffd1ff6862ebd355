"""A kind cluster of our own, for a run that has no pytest and so no fixture of pytest-kind."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from pytest_drainwatch.cluster import ClusterError, ClusterSettings, Log
from pytest_drainwatch.cluster.embedded.directories import state_dir, writing_to_state
from pytest_drainwatch.cluster.embedded.locks import locked, try_lock
from pytest_drainwatch.cluster.kind.cluster import Given
from pytest_drainwatch.cluster.kind.programs import Kind, check_docker, find_kind
from pytest_drainwatch.cluster.kind.shape import Shape

_PREFIX = "drainwatch-"
# Held for as long as the run that made the cluster lives.
_HELD = ".held"


def make(settings: ClusterSettings, *, log: Log) -> Given:
    """Make a cluster as *settings* say; its Kubernetes is the one of kind's own node image.

    Clusters that killed runs left are removed first.

    Raises:
        ClusterError: kind or Docker is missing, or the cluster could not be made; then nothing
            is left of it.
    """
    kind = find_kind()
    check_docker()
    name = f"{_PREFIX}{uuid.uuid4().hex[:8]}"
    folder = state_dir() / "kind"
    with writing_to_state():
        folder.mkdir(parents=True, exist_ok=True)
        held = [_hold(kind, folder, name, log)]
    kubeconfig = _kubeconfig(folder, name)

    def leave() -> None:
        (folder / f"{name}{_HELD}").unlink(missing_ok=True)
        while held:
            os.close(held.pop())

    def end() -> None:
        kind.delete(name, kubeconfig)
        kubeconfig.unlink(missing_ok=True)
        leave()

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
        leave()
        raise
    return Given(name=name, kubeconfig=kubeconfig, kind=kind, end=end, leave=leave)


def _kubeconfig(folder: Path, name: str) -> Path:
    return folder / f"{name}.kubeconfig"


def _hold(kind: Kind, folder: Path, name: str, log: Log) -> int:
    """Say that *name* is in use; remove what nobody uses any more."""
    with locked(folder / f"{_PREFIX.rstrip('-')}.lock", on_wait=lambda: None):
        for mark in sorted(folder.glob(f"{_PREFIX}*{_HELD}")):
            _remove_if_left(kind, mark, log)
        held = try_lock(folder / f"{name}{_HELD}")
        assert held is not None, "the name is new"
        return held


def _remove_if_left(kind: Kind, mark: Path, log: Log) -> None:
    name = mark.name.removesuffix(_HELD)
    try:
        descriptor = try_lock(mark, create=False)
    except FileNotFoundError:  # its run has just ended
        return
    if descriptor is None:
        return
    try:
        kubeconfig = _kubeconfig(mark.parent, name)
        if name in kind.clusters():
            log(f"removing kind cluster {name}, left by a run that is gone")
            kind.delete(name, kubeconfig)
        kubeconfig.unlink(missing_ok=True)
        mark.unlink(missing_ok=True)
    except ClusterError as error:  # the next run tries again
        log(f"kind cluster {name}, left by a run that is gone, could not be removed: {error}")
    finally:
        os.close(descriptor)
