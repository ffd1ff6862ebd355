"""Which cluster suits a scenario: what is opened for it, and whether one that is there will do."""

from __future__ import annotations

from dataclasses import replace

from pytest_drainwatch.cluster import PROXY_MODES, Cluster, ClusterError, ClusterSettings
from pytest_drainwatch.cluster.opening import choose_provider
from pytest_drainwatch.core.scenario import ClusterNeeds, Scenario
from pytest_drainwatch.settings import Settings


def cluster_settings(settings: Settings, needs: ClusterNeeds) -> tuple[ClusterSettings, str]:
    """What to open, and why that. Raises ClusterError if nothing on this machine can be used.

    Only an embedded cluster is made as each scenario needs it. A run has one kind cluster, made
    as the options say; what it and others are is :func:`refuse`'s matter.
    """
    provider, why = choose_provider(
        settings.cluster, kubeconfig=settings.kubeconfig, context=settings.context
    )
    wanted = ClusterSettings(
        provider=provider,
        kind_image=settings.kind_image,
        kube_bin=settings.kube_bin,
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        probe_image=settings.probe_image,
        allow_context=settings.allow_context,
    )
    if provider == "existing":
        return wanted, why
    if provider == "kind":
        needs = settings.apply(Scenario()).cluster
    mode = str(needs.proxy_mode or wanted.proxy_mode)
    period_ms = needs.min_sync_period_ms
    made = replace(
        wanted,
        kube_version=needs.kube_version or wanted.kube_version,
        proxy_mode=mode,
        min_sync_period_ms=PROXY_MODES[mode] if period_ms is None else period_ms,
        nodes=needs.nodes or wanted.nodes,
    )
    return made, why


def refuse(cluster: Cluster, needs: ClusterNeeds) -> None:
    """Raise ClusterError unless ``cluster`` is known to be what is needed."""
    if needs == ClusterNeeds():
        return
    facts = cluster.facts()
    for what, asked, found, option in (
        ("Kubernetes", needs.kube_version, facts.kube_version, "kube-version"),
        ("kube-proxy mode", needs.proxy_mode, facts.proxy_mode, "proxy-mode"),
        (
            "kube-proxy minSyncPeriod (ms)",
            needs.min_sync_period_ms,
            facts.min_sync_period_ms,
            "min-sync-period",
        ),
        ("nodes that take pods:", needs.nodes, facts.nodes, "nodes"),
    ):
        if asked is not None and asked != found:
            seen = f"has {found}" if found is not None else "does not say what it has"
            raise ClusterError(
                f"asked for {what} {asked}, and cluster {cluster.name} {seen}. Expected a cluster"
                f" that is what the question is about: {_made_so(cluster, option, asked)}, or"
                f" ask about this one (no --dw-{option}, no such need in the scenario)"
            )


def _made_so(cluster: Cluster, option: str, asked: object) -> str:
    """How one comes to a cluster that is as asked for."""
    made = "let one be made (--dw-cluster=embedded)"
    if cluster.provider != "kind":
        return made
    told = "--kind-image kindest/node:v…" if option == "kube-version" else f"--dw-{option} {asked}"
    unit = "ms" if option == "min-sync-period" else ""
    return (
        f"{made}, or kind's anew and so ({told}{unit}; kind delete cluster --name {cluster.name})"
    )
