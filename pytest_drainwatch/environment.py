"""Facts about where a trial runs; what cannot be read is None, with a warning."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from pytest_drainwatch import __version__
from pytest_drainwatch.api import REQUEST_TIMEOUT, Api, explain
from pytest_drainwatch.cluster import Cluster

CNI_BY_DAEMONSET = ("kindnet", "calico-node", "cilium", "kube-flannel-ds", "aws-node", "weave-net")


def xdist_workers() -> int:
    """How many pytest processes share this machine: each may hold a trial of its own."""
    count = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "")
    return max(1, int(count)) if count.isdecimal() else 1


def gather(api: Api, cluster: Cluster, probe_image: str) -> dict[str, object]:
    """The environment record of a recording's header.

    ``warnings`` names what is null and why: "the Kubernetes version could not be read: …".
    """
    warnings: list[str] = []

    def read(what: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:  # an odd answer must not void a trial that can be measured
            warnings.append(f"{what} could not be read: {explain(error)}")
            return None

    facts = cluster.facts()
    version = read("the Kubernetes version", lambda: _version(api))
    nodes = read("the nodes", lambda: _nodes(api))
    proxy_mode = facts.proxy_mode or read("kube-proxy's mode", lambda: _proxy_mode(api))
    cni = read("the CNI", lambda: _cni(api, cluster.provider))
    if facts.min_sync_period_ms is None:
        warnings.append("kube-proxy's minSyncPeriod is not known")
    return {
        "kubernetes_version": version,
        "node_count": None if nodes is None else len(nodes),
        "nodes": nodes,
        "kube_proxy_mode": proxy_mode,
        "min_sync_period_ms": facts.min_sync_period_ms,
        "cni": cni,
        "provider": cluster.provider,
        "provider_why": cluster.why,
        "probe_image": probe_image or None,
        "drainwatch_version": __version__,
        "git_commit": git_commit(),
        "os": platform.system().lower(),
        "arch": platform.machine(),
        "cpus": os.cpu_count(),
        "python_version": platform.python_version(),
        "wall_clock_start": wall_clock(),
        "warnings": warnings,
        "deviations": list(facts.deviations),
    }


def wall_clock() -> str:
    """Now, as RFC 3339 in UTC."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


@cache
def git_commit() -> str:
    """The commit of the instrument itself, ``-dirty`` if changed, ``unknown`` if installed."""
    home = Path(__file__).resolve().parent
    if not (home.parent / ".git").exists():
        return "unknown"
    try:
        commit = _git(home, "rev-parse", "--short", "HEAD")
        dirty = _git(home, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return commit + ("-dirty" if dirty else "")


def _git(home: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(home), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    return done.stdout.strip()


def _version(api: Api) -> str:
    return str(api.version.get_code(_request_timeout=REQUEST_TIMEOUT).git_version)


def _nodes(api: Api) -> list[dict[str, object]]:
    found = api.core.list_node(_request_timeout=REQUEST_TIMEOUT).items
    return [
        {
            "name": node.metadata.name,
            "container_runtime": node.status.node_info.container_runtime_version,
            "kubelet_version": node.status.node_info.kubelet_version,
            "os_image": node.status.node_info.os_image,
            "architecture": node.status.node_info.architecture,
            "kernel_version": node.status.node_info.kernel_version,
        }
        for node in sorted(found, key=lambda node: str(node.metadata.name))
    ]


def _proxy_mode(api: Api) -> str:
    from pytest_drainwatch.cluster.existing import proxy_configuration

    mode, _ = proxy_configuration(api)
    return mode or "unspecified (the platform's default)"


def _cni(api: Api, provider: str) -> str | None:
    if provider == "embedded":
        return "bridge (containernetworking-plugins)"
    found = api.apps.list_namespaced_daemon_set("kube-system", _request_timeout=REQUEST_TIMEOUT)
    names = {item.metadata.name for item in found.items}
    known = [cni for cni in CNI_BY_DAEMONSET if cni in names]
    return f"{'+'.join(known)} (identified by DaemonSet name)" if known else None
