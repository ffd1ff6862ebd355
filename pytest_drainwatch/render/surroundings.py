"""The cluster of a trial in a line; of a simulated one what the model took it for."""

from __future__ import annotations

from pytest_drainwatch.core.document import Report


def where(report: Report) -> str:
    """Its versions, and when it was measured."""
    told = report.environment
    if report.simulated:
        return cluster(told.kubernetes_version, told.kube_proxy_mode, simulated=True)
    return (
        f"Kubernetes {told.kubernetes_version} ({told.provider}), kube-proxy "
        f"{told.kube_proxy_mode}, {told.wall_clock_start}"
    )


def cluster(version: object, mode: object, *, simulated: bool) -> str:
    """Its versions alone. A model has none, and may take it for one of no version."""
    told = (("Kubernetes", version), ("kube-proxy", mode))
    if not simulated:
        return ", ".join(f"{what} {value}" for what, value in told)
    assumed = (f"as if {what} {value}" for what, value in told if value is not None)
    return ", ".join(["no cluster", *assumed])
