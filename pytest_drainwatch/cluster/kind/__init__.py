"""A Kubernetes in Docker containers: kind's, through pytest-kind's fixture where pytest runs."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_drainwatch.cluster import ClusterSettings, Log, Tidy
    from pytest_drainwatch.cluster.kind.cluster import Given, KindCluster

# Gives the cluster that pytest-kind's fixture makes.
Bring = Callable[[], "Given"]


def has_pytest_kind() -> bool:
    """Whether pytest-kind is installed; it is found and not imported."""
    return find_spec("pytest_kind") is not None


def start_kind(
    settings: ClusterSettings,
    *,
    why: str,
    log: Log,
    logs_dir: Path | None = None,
    bring: Bring | None = None,
    tidy: Tidy | None = None,
) -> KindCluster:
    """Return when the cluster is whole: the one that *bring* gives, else one of our own.

    Raises:
        ClusterError: see its message; a cluster of our own is removed again.
    """
    from pytest_drainwatch.cluster.kind.cluster import reach_kind
    from pytest_drainwatch.cluster.kind.making import make

    given = make(settings, log=log) if bring is None else bring()
    try:
        # Trials write below the run's folder, of which the logs' folder is one.
        folder = logs_dir.parent.absolute() if logs_dir is not None else None
        return reach_kind(given, settings, why=why, log=log, folder=folder, tidy=tidy)
    except BaseException:
        if given.end is not None:
            given.end()
        raise
