"""Which cluster a run gets, and starting or reaching it."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_drainwatch.cluster import (
    PROVIDERS,
    Cluster,
    ClusterError,
    ClusterSettings,
    Log,
    Tidy,
)
from pytest_drainwatch.cluster.possible import check_settings

if TYPE_CHECKING:
    from pytest_drainwatch.cluster.kind import Bring


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
    if seen_kind and kind.has_pytest_kind():
        return "kind", "a Docker daemon answers, and there are kind and pytest-kind"
    if sys.platform == "linux" and os.geteuid() == 0:
        lacking = "no pytest-kind" if seen_kind else "no Docker with kind"
        return "embedded", f"root on Linux, {lacking}"
    raise ClusterError(
        f"no cluster to run on: {_who_we_are()}. Expected one of: root on Linux for the embedded"
        " cluster (sudo -E pytest …), a Docker daemon with kind on PATH and pytest-kind"
        " (--dw-cluster=kind),"
        " or an existing cluster (--dw-cluster=existing --dw-kubeconfig FILE)"
    )


def open_cluster(
    settings: ClusterSettings,
    *,
    why: str,
    log: Log,
    logs_dir: Path | None = None,
    bring: Bring | None = None,
    tidy: Tidy | None = None,
) -> Cluster:
    """Start or reach the cluster that *settings* describe.

    Args:
        settings: what is asked for; `settings.provider` must be chosen already.
        why: the reason for the provider, shown to people.
        log: takes one line of progress at a time.
        logs_dir: the folder in which the cluster makes one of its own name for the logs of
            its components, kept when it ends; `None` is a folder of the state directory.
        bring: gives the cluster of pytest-kind's fixture; `None`: one of our own is made.
        tidy: see `Tidy`; asked once of a cluster that may have been there before.

    Raises:
        ClusterError: it could not be started or reached.
    """
    check_settings(settings)
    match settings.provider:
        case "embedded":
            from pytest_drainwatch.cluster.embedded.cluster import start_embedded

            return start_embedded(settings, why=why, log=log, logs_dir=logs_dir)
        case "existing":
            from pytest_drainwatch.cluster.existing import reach_existing

            return reach_existing(settings, why=why, tidy=tidy)
        case "kind":
            from pytest_drainwatch.cluster.kind import start_kind

            return start_kind(settings, why=why, log=log, logs_dir=logs_dir, bring=bring, tidy=tidy)
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
