"""Any cluster that a kubeconfig leads to. Nothing of it is started or changed here."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pytest_drainwatch.api import Api, ApiUnavailable, connect, explain, failures
from pytest_drainwatch.cluster import (
    PROXY_MODES,
    ClusterError,
    ClusterFacts,
    ClusterSettings,
    Seat,
)
from pytest_drainwatch.cluster.network import NodeNetwork

_REQUEST_TIMEOUT_S = 10.0
# As Go writes durations.
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|h|m|s))+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNIT_MS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}

T = TypeVar("T")


class ExistingCluster:
    """Somebody else's cluster. See `pytest_drainwatch.cluster.Cluster`."""

    provider = "existing"
    # The route decides: which of the harness's addresses reach the node is not known here.
    source_addresses: tuple[str, ...] = ()

    def __init__(
        self,
        settings: ClusterSettings,
        kubeconfig: Path,
        *,
        name: str,
        node_address: str,
        why: str,
        facts: ClusterFacts,
    ) -> None:
        self._settings = settings
        self._facts = facts
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

    def enter_pod(self, uid: str) -> Seat:
        raise ClusterError(
            f"cluster {self.name} is not ours, so the network of its pod {uid} cannot be entered"
            " from here. Expected access 'nodeport' there, or a cluster of our own for 'clusterip':"
            " --dw-cluster=embedded"
        )

    def facts(self) -> ClusterFacts:
        return self._facts

    def node_network(self, sources: Collection[str]) -> NodeNetwork | None:
        """None: somebody else's nodes are not entered."""
        return None

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
    return ExistingCluster(
        settings, kubeconfig, name=name, node_address=address, why=why, facts=_facts(api)
    )


def _facts(api: Api) -> ClusterFacts:
    """What can be read of them: a trial that asks for nothing special needs none."""
    mode, period_ms = _read(lambda: proxy_configuration(api)) or (None, None)
    return ClusterFacts(
        provider=ExistingCluster.provider,
        kube_version=_read(lambda: _minor_version(api)),
        proxy_mode=mode,
        min_sync_period_ms=period_ms,
    )


def _read(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except Exception:  # an odd answer is no answer
        return None


def _minor_version(api: Api) -> str | None:
    found = api.version.get_code(_request_timeout=_REQUEST_TIMEOUT_S)
    match = re.match(r"v(\d+\.\d+)\.", str(found.git_version))
    return match[1] if match else None


def proxy_configuration(api: Api) -> tuple[str | None, int | None]:
    """kube-proxy's mode and minSyncPeriod (ms) by its own ConfigMap, as kubeadm writes it.

    None is what it leaves to kube-proxy, or does not say in a form that is known. The API
    client's errors pass.
    """
    import yaml

    found = api.core.read_namespaced_config_map(
        "kube-proxy", "kube-system", _request_timeout=_REQUEST_TIMEOUT_S
    )
    try:
        settings = yaml.safe_load(found.data["config.conf"])
        mode = str(settings.get("mode") or "")
        section = settings.get(mode) or {}
        text = str(section.get("minSyncPeriod") or "0s")
    except (yaml.YAMLError, KeyError, TypeError, AttributeError):
        return None, None
    if not mode:
        return None, None
    if mode not in PROXY_MODES or not _DURATION.fullmatch(text):
        return mode, None
    parts = _DURATION_PART.findall(text)
    # kube-proxy takes 0 for "not said".
    return mode, round(sum(float(n) * _UNIT_MS[u] for n, u in parts)) or PROXY_MODES[mode]


def _internal_address(node: Any) -> str | None:
    for address in node.status.addresses or ():
        if address.type == "InternalIP":
            return str(address.address)
    return None


def default_kubeconfig() -> Path:
    """Where kubectl looks first: the first file of KUBECONFIG, else ~/.kube/config."""
    first = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    return Path(first or "~/.kube/config").expanduser()
