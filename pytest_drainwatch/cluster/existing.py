"""Any cluster that a kubeconfig leads to. Nothing of it is started or changed here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_drainwatch.api import ApiUnavailable, connect, explain, failures
from pytest_drainwatch.cluster import ClusterError, ClusterFacts, ClusterSettings

_REQUEST_TIMEOUT_S = 10.0


class ExistingCluster:
    """Somebody else's cluster. See `pytest_drainwatch.cluster.Cluster`."""

    provider = "existing"
    # The route decides: which of the harness's addresses reach the node is not known here.
    source_addresses: tuple[str, ...] = ()

    def __init__(
        self, settings: ClusterSettings, kubeconfig: Path, *, name: str, node_address: str, why: str
    ) -> None:
        self._settings = settings
        self.name = name
        self.node_address = node_address
        self.why = why
        self.kubeconfig = kubeconfig
        self.context = settings.context

    def ensure_probe_image(self) -> str:
        if self._settings.probe_image is None:
            raise ClusterError(
                f"no probe image is known for the existing cluster {self.name}: expected a"
                " reference that its nodes can pull. Build probe_image/ and push it, then give"
                " --dw-probe-image REGISTRY/NAME:TAG"
            )
        return self._settings.probe_image

    def agent_command(self, argv: Sequence[str]) -> list[str]:
        return list(argv)

    def facts(self) -> ClusterFacts:
        return ClusterFacts(provider=self.provider)

    def check(self) -> None:
        """Whether it lives is for the watch to see: there is no process to look at."""

    def close(self) -> None:
        """Nothing: it was there before."""

    def detach(self) -> None:
        """Nothing: it stays anyway."""


def reach_existing(settings: ClusterSettings, *, why: str) -> ExistingCluster:
    """Find the node address of the cluster that *settings* name.

    Raises:
        ClusterError: the kubeconfig is missing or wrong, the API server does not answer or
            refuses, or no node has an internal address.
    """
    kubeconfig = settings.kubeconfig or default_kubeconfig()
    if not kubeconfig.is_file():
        raise ClusterError(
            f"there is no kubeconfig at {kubeconfig}: expected a file. Name it with"
            " --dw-kubeconfig FILE, or let a cluster be started: --dw-cluster=embedded"
        )
    name = settings.context or f"of {kubeconfig}"
    try:
        api = connect(kubeconfig, settings.context)
        nodes = api.core.list_node(_request_timeout=_REQUEST_TIMEOUT_S).items
    except ApiUnavailable as error:
        raise ClusterError(str(error)) from error
    except failures() as error:
        raise ClusterError(
            f"cluster {name} can't be asked for its nodes: {explain(error)}. Expected an API"
            f" server that answers and allows it. Try: kubectl --kubeconfig {kubeconfig}"
            f"{f' --context {settings.context}' if settings.context else ''} get nodes"
        ) from error
    address = next(filter(None, map(_internal_address, nodes)), None)
    if address is None:
        raise ClusterError(
            f"none of the {len(nodes)} nodes of cluster {name} has an InternalIP: expected one"
            " where NodePorts answer. See: kubectl get nodes -o wide"
        )
    return ExistingCluster(settings, kubeconfig, name=name, node_address=address, why=why)


def _internal_address(node: Any) -> str | None:
    for address in node.status.addresses or ():
        if address.type == "InternalIP":
            return str(address.address)
    return None


def default_kubeconfig() -> Path:
    """Where kubectl looks first: the first file of KUBECONFIG, else ~/.kube/config."""
    first = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    return Path(first or "~/.kube/config").expanduser()
