"""WHERE a trial runs: the one small interface behind which every cluster hides.

A trial needs six things of a cluster and no more: a kubeconfig, an address where
NodePorts answer, addresses to connect from, the probe image, a way to start the
flow agent, and the facts that belong in a report. Whoever offers these is a cluster.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

PROVIDERS = ("embedded", "kind", "existing")
PROXY_MODES = ("iptables", "nftables")

Log = Callable[[str], None]


class ClusterError(Exception):
    """A cluster could not be started, reached or used.

    The message says what happened, what was expected and the next command to type.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """What a scenario asks of its cluster. Hashable: pools are keyed by it.

    Attributes:
        provider: one of `PROVIDERS`, already chosen (see `choose_provider`).
        kube_version: minor version of Kubernetes, for the embedded cluster.
        proxy_mode: kube-proxy's mode, one of `PROXY_MODES`, for the embedded cluster.
        min_sync_period_ms: kube-proxy's minSyncPeriod; 1000 is Kubernetes' own default.
        kube_bin: a ready kubenode binary to use instead of building one.
        kubeconfig: for an existing cluster; `None` is kubectl's own default.
        context: for an existing cluster; `None` is the kubeconfig's current context.
        probe_image: an image reference that an existing cluster can pull.
    """

    provider: str = "embedded"
    kube_version: str = "1.37"
    proxy_mode: str = "iptables"
    min_sync_period_ms: int = 1000
    kube_bin: Path | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    probe_image: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What only the cluster's provider knows; the rest a report asks the API for.

    `None` is "not known", never a default.

    Attributes:
        provider: one of `PROVIDERS`.
        proxy_mode: kube-proxy's mode.
        min_sync_period_ms: kube-proxy's minSyncPeriod.
        cgroup: `v1`, `v2` or `hybrid`.
        deviations: every setting in which this cluster differs from Kubernetes'
            defaults, each a sentence that names the setting and the reason.
    """

    provider: str
    proxy_mode: str | None = None
    min_sync_period_ms: int | None = None
    cgroup: str | None = None
    deviations: tuple[str, ...] = ()


class Cluster(Protocol):
    """A running cluster. `close` may be called more than once."""

    @property
    def name(self) -> str: ...

    @property
    def provider(self) -> str: ...

    @property
    def why(self) -> str:
        """Why this provider was chosen, for the header and the report."""
        ...

    @property
    def kubeconfig(self) -> Path: ...

    @property
    def context(self) -> str | None: ...

    @property
    def node_address(self) -> str:
        """Where NodePorts answer, reachable from the harness."""
        ...

    @property
    def source_addresses(self) -> tuple[str, ...]:
        """Addresses of the harness to connect from; empty: let the system choose."""
        ...

    def ensure_probe_image(self) -> str:
        """Make the probe image known to the cluster and return its reference.

        Raises:
            ClusterError: the image can't be built, loaded or named.
        """
        ...

    def agent_command(self, argv: Sequence[str]) -> list[str]:
        """The local command line that runs *argv* where `node_address` answers."""
        ...

    def facts(self) -> ClusterFacts: ...

    def check(self) -> None:
        """Raise ClusterError if the cluster has died since it was opened."""
        ...

    def close(self) -> None: ...

    def detach(self) -> None:
        """Leave the cluster running when this process ends, instead of closing it."""
        ...


def choose_provider(
    requested: str = "auto", *, kubeconfig: Path | None = None, context: str | None = None
) -> tuple[str, str]:
    """Return the provider to use and, in a few words, why.

    Raises:
        ClusterError: *requested* is unknown, or nothing on this machine can be used.
    """
    if requested in PROVIDERS:
        return requested, "asked for"
    if requested != "auto":
        raise ClusterError(
            f"unknown cluster provider {requested!r}: expected auto, {', '.join(PROVIDERS)}"
        )
    if kubeconfig is not None or context is not None:
        return "existing", "a kubeconfig or context was given"
    from pytest_drainwatch.cluster import kind

    seen_kind = shutil.which("kind") is not None and _docker_answers()
    if seen_kind and kind.AVAILABLE:
        return "kind", "a Docker daemon answers and kind is on PATH"
    if sys.platform == "linux" and os.geteuid() == 0:
        return "embedded", "root on Linux" + ("" if seen_kind else ", no Docker with kind")
    raise ClusterError(
        f"no cluster to run on: {_who_we_are()}. Expected one of: root on Linux for the embedded"
        " cluster (sudo -E pytest …), a Docker daemon with kind on PATH (--dw-cluster=kind),"
        " or an existing cluster (--dw-cluster=existing --dw-kubeconfig FILE)"
    )


def open_cluster(
    settings: ClusterSettings, *, why: str, log: Log, logs_dir: Path | None = None
) -> Cluster:
    """Start or reach the cluster that *settings* describe.

    Args:
        settings: what is asked for; `settings.provider` must be chosen already.
        why: the reason for the provider, shown to people.
        log: takes one line of progress at a time.
        logs_dir: the folder in which the cluster makes one of its own name for the logs of
            its components, kept when it ends; `None` is a folder of the state directory.

    Raises:
        ClusterError: it could not be started or reached.
    """
    if settings.proxy_mode not in PROXY_MODES:
        raise ClusterError(
            f"unknown kube-proxy mode {settings.proxy_mode!r}: expected {' or '.join(PROXY_MODES)}"
        )
    if settings.min_sync_period_ms < 0:
        raise ClusterError(f"minSyncPeriod is {settings.min_sync_period_ms} ms: expected 0 or more")
    match settings.provider:
        case "embedded":
            from pytest_drainwatch.cluster.embedded.cluster import start_embedded

            return start_embedded(settings, why=why, log=log, logs_dir=logs_dir)
        case "existing":
            from pytest_drainwatch.cluster.existing import reach_existing

            return reach_existing(settings, why=why)
        case "kind":
            from pytest_drainwatch.cluster.kind import start_kind

            return start_kind(settings, why=why)
    raise ClusterError(
        f"unknown cluster provider {settings.provider!r}: expected {', '.join(PROVIDERS)}"
    )


def _who_we_are() -> str:
    if sys.platform != "linux":
        return f"this is {sys.platform}, not Linux"
    return f"user id {os.geteuid()} is not root, and no Docker daemon with kind was found"


def _docker_answers() -> bool:
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not host.startswith("unix://"):
        return True  # a remote daemon: kind itself will say if it is not there
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
            daemon.settimeout(1)
            daemon.connect(host.removeprefix("unix://"))
            daemon.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return daemon.recv(16).startswith(b"HTTP/1.")
    except OSError:
        return False
