"""What this machine offers: rights, programs, plugins."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from pytest_drainwatch.cluster import ClusterError

_CNI_FOLDERS = ("/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni")
_CNI_PLUGINS = ("bridge", "host-local", "portmap", "loopback")
_CAP_SYS_RESOURCE = 24

# Program → the Debian package that brings it.
PROGRAMS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "nft": "nftables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "mmdebstrap": "mmdebstrap",
}
CNI_PACKAGE = "containernetworking-plugins"


def check() -> None:
    """Raise ClusterError unless an embedded cluster can run here."""
    if sys.platform != "linux":
        raise ClusterError(
            f"the embedded cluster needs Linux, this is {sys.platform}: use a kind cluster"
            " (--dw-cluster=kind) or an existing one (--dw-cluster=existing --dw-kubeconfig FILE)"
        )
    if os.geteuid() != 0:
        raise ClusterError(
            f"the embedded cluster needs root, this is user id {os.geteuid()}: run it with"
            " sudo -E, or use a kind cluster (--dw-cluster=kind) or an existing one"
            " (--dw-cluster=existing --dw-kubeconfig FILE)"
        )
    if missing := missing_programs():
        raise ClusterError(
            f"programs are missing: {', '.join(missing)}. Expected them on PATH."
            " Install them: drainwatch setup"
        )


def missing_programs() -> list[str]:
    """Names of needed programs that are not on PATH, and `CNI plugins` if those are."""
    missing = [name for name in PROGRAMS if find_program(name) is None]
    if _find_cni() is None:
        missing.append("CNI plugins")
    return missing


def find_program(name: str) -> str | None:
    """Where *name* is; the sbin folders count even if a user's PATH leaves them out."""
    path = os.environ.get("PATH", os.defpath)
    return shutil.which(name, path=f"{path}:/usr/local/sbin:/usr/sbin:/sbin")


def cni_bin() -> Path:
    """The folder of the CNI plugins.

    Raises:
        ClusterError: none of the usual folders has them all.
    """
    if (folder := _find_cni()) is None:
        raise ClusterError(
            f"no CNI plugins ({', '.join(_CNI_PLUGINS)}) in {', '.join(_CNI_FOLDERS)}."
            " Install them: drainwatch setup"
        )
    return folder


def lacks_sys_resource() -> bool:
    """Whether this process may not lower an oom_score_adj (FACTS M4)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return not int(line.split()[1], 16) >> _CAP_SYS_RESOURCE & 1
    return True


def _find_cni() -> Path | None:
    for folder in map(Path, _CNI_FOLDERS):
        if all((folder / plugin).exists() for plugin in _CNI_PLUGINS):
            return folder
    return None
