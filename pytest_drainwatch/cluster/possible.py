"""Whether there can be a cluster as it is asked for, before anybody tries to start it."""

from __future__ import annotations

from pytest_drainwatch.cluster import (
    PROXY_MODES,
    ClusterError,
    ClusterSettings,
    NotOnThisMachine,
)


def check_settings(settings: ClusterSettings) -> None:
    """Raise ClusterError for settings that no cluster, or none on this machine, can have.

    What an existing cluster is can only be seen once it is reached.

    Raises:
        NotOnThisMachine: this machine's kernel lacks what the embedded cluster would need.
        ClusterError: nobody has such a cluster.
    """
    mode, period_ms = settings.proxy_mode, settings.min_sync_period_ms
    if mode not in PROXY_MODES:
        raise ClusterError(
            f"unknown kube-proxy mode {mode!r}: expected one of {', '.join(PROXY_MODES)}"
        )
    if period_ms < 0:
        raise ClusterError(f"minSyncPeriod is {period_ms} ms: expected 0 or more")
    if period_ms == 0 and PROXY_MODES[mode]:
        # Measured: /configz then says 1s.
        raise ClusterError(
            f"minSyncPeriod is 0 ms, which kube-proxy in mode {mode} reads as its default of"
            f" {PROXY_MODES[mode]} ms: expected 1 or more (--dw-min-sync-period 1ms)"
        )
    if settings.nodes < 1:
        raise ClusterError(f"{settings.nodes} nodes are asked for: expected 1 or more (--dw-nodes)")
    if settings.provider == "embedded":
        from pytest_drainwatch.cluster.embedded.addresses import MOST_NODES

        if settings.nodes > MOST_NODES:
            raise ClusterError(
                f"{settings.nodes} nodes are asked for, and an embedded cluster has {MOST_NODES} at"
                f" most: expected 1 to {MOST_NODES} (--dw-nodes), or a cluster that has so many"
                " (--dw-cluster=existing)"
            )
    if settings.provider == "embedded" and mode == "ipvs":
        from pytest_drainwatch.cluster.embedded import machine

        if reason := machine.lacks_ipvs():
            raise NotOnThisMachine(reason)
