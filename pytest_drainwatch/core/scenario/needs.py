"""What a scenario asks of the cluster that it runs on."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from enum import StrEnum

from pytest_drainwatch.core.scenario.values import (
    ScenarioError,
    become,
    check_kind,
    check_within,
)


class ProxyMode(StrEnum):
    """kube-proxy's mode."""

    IPTABLES = "iptables"
    NFTABLES = "nftables"
    IPVS = "ipvs"  # off by default from Kubernetes 1.40 on, removed in 1.43


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNeeds:
    """Settings of the cluster that the question is about; None: whatever the run has.

    ``kube_version`` is a minor version ("1.34"), ``min_sync_period_ms`` kube-proxy's
    minSyncPeriod, which is 1000 by default. ``nodes`` counts those that take pods.
    """

    kube_version: str | None = None
    proxy_mode: ProxyMode | None = None
    min_sync_period_ms: int | None = None
    nodes: int | None = None

    def __post_init__(self) -> None:
        # 1.30 as a number would be 1.3.
        check_kind("kube_version", self.kube_version, str, None)
        if self.proxy_mode is not None:
            become(self, "proxy_mode", ProxyMode)

    def check(self) -> None:
        """Refuse values that cannot be. Raises :class:`ScenarioError`."""
        version = self.kube_version
        if version is not None and not re.fullmatch(r"\d+\.\d+", version):
            raise ScenarioError(f"kube_version is {version!r}, expected a minor version: '1.37'")
        if self.min_sync_period_ms is not None:
            check_within("min_sync_period_ms", self.min_sync_period_ms, 0, 3_600_000)
        if self.nodes is not None:
            check_within("nodes", self.nodes, 1, 5000)

    def config(self) -> dict[str, object]:
        """What is asked for, as it stands in a report."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def in_words(
    kube_version: str | None,
    proxy_mode: str | None,
    min_sync_period_ms: int | None,
    nodes: int | None = None,
) -> str:
    """What a cluster is or must be, as far as it is known; empty if nothing is."""
    words = [
        f"Kubernetes {kube_version}" if kube_version else "",
        f"kube-proxy {proxy_mode}" if proxy_mode else "",
        "" if min_sync_period_ms is None else f"minSyncPeriod {min_sync_period_ms} ms",
        "" if nodes in (None, 1) else f"{nodes} nodes",
    ]
    return ", ".join(filter(None, words))
