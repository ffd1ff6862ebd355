"""What a kind cluster is to be like, in kind's own configuration."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pytest_drainwatch.cluster import PROXY_MODES

_API_VERSION = "kind.x-k8s.io/v1alpha4"
_KUBE_PROXY = "kubeproxy.config.k8s.io/v1alpha1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What was asked for; None: as kind makes it.

    Attributes:
        image: the node image, which decides the version of Kubernetes.
        nodes: how many nodes take pods. With more than one the control plane is one more
            node, which kind taints.
        proxy_mode: kube-proxy's mode, one of `PROXY_MODES`.
        min_sync_period_ms: kube-proxy's minSyncPeriod.
    """

    image: str | None = None
    nodes: int | None = None
    proxy_mode: str | None = None
    min_sync_period_ms: int | None = None

    def config(self) -> str | None:
        """kind's configuration (JSON is YAML); None if it needs none."""
        if self == Shape(image=self.image):
            return None
        workers = self.nodes if self.nodes is not None and self.nodes > 1 else 0
        document: dict[str, Any] = {
            "kind": "Cluster",
            "apiVersion": _API_VERSION,
            "nodes": [{"role": "control-plane"}, *[{"role": "worker"}] * workers],
        }
        if self.proxy_mode is not None:
            document["networking"] = {"kubeProxyMode": self.proxy_mode}
        if self.min_sync_period_ms is not None:
            document["kubeadmConfigPatches"] = [json.dumps(self._kube_proxy())]
        return json.dumps(document)

    def _kube_proxy(self) -> dict[str, Any]:
        # The section of the mode is the one that kube-proxy reads.
        mode = self.proxy_mode or next(iter(PROXY_MODES))
        return {
            "kind": "KubeProxyConfiguration",
            "apiVersion": _KUBE_PROXY,
            mode: {"minSyncPeriod": f"{self.min_sync_period_ms}ms"},
        }
