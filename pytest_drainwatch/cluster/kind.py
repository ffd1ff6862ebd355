"""kind: a place kept for the provider that uses pytest-kind's `kind_cluster` fixture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_drainwatch.cluster import ClusterError

if TYPE_CHECKING:
    from pytest_drainwatch.cluster import Cluster, ClusterSettings

# While this is False, the automatic choice passes kind by.
AVAILABLE = False


def start_kind(settings: ClusterSettings, *, why: str) -> Cluster:
    """Raise ClusterError: the provider is not part of this release."""
    raise ClusterError(
        f"the kind provider ({why}) is not part of this release: it comes through pytest-kind's"
        " `kind_cluster` fixture. Expected embedded or existing; a kind cluster that already runs"
        " can be used with --dw-cluster=existing --dw-context kind-NAME"
    )
