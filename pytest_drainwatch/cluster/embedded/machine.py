"""What this machine offers: rights, programs, plugins."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded import cgroups

_CNI_FOLDERS = ("/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni")
_CNI_PLUGINS = ("bridge", "host-local", "portmap", "loopback")
# File systems known to take an overlay's upper layer; on others images go to memory.
_OVERLAY_BASES = frozenset({"ext4", "xfs", "btrfs", "tmpfs", "zfs", "f2fs"})
_IPVS = Path("/proc/net/ip_vs")
_CAP_SYS_RESOURCE = 24
_CAPS_NEEDED = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}

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
# Debian package → programs any of which will do: what this project's own tests need besides.
TEST_PROGRAMS = {
    "tcpdump": ("tcpdump",),
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "haproxy": ("haproxy",),
}
CNI_PACKAGE = "containernetworking-plugins"


def check() -> None:
    """Raise ClusterError unless an embedded cluster can run here."""
    check_rights()
    check_python()
    check_programs()
    check_cgroups()


def check_rights() -> None:
    """Raise ClusterError unless this is Linux and this process may make namespaces."""
    others = (
        "use a kind cluster (--dw-cluster=kind) or an existing one"
        " (--dw-cluster=existing --dw-kubeconfig FILE)"
    )
    if sys.platform != "linux":
        raise ClusterError(
            f"the embedded cluster needs Linux, this is {sys.platform}: expected Linux; {others}"
        )
    if os.geteuid() != 0:
        raise ClusterError(
            f"the embedded cluster needs root, this is user id {os.geteuid()}: expected 0."
            f" Run it with sudo -E, or {others}"
        )
    lacking = [name for name, bit in _CAPS_NEEDED.items() if not _has_capability(bit)]
    if lacking:
        raise ClusterError(
            f"root here lacks {', '.join(lacking)} (a container?): expected the rights to make"
            f" namespaces and links. Start the container with --privileged, or {others}"
        )


def check_python() -> None:
    """Raise ClusterError unless what signs certificates can be imported."""
    if importlib.util.find_spec("cryptography") is None:
        raise ClusterError(
            "the Python package cryptography is missing: expected it beside pytest-drainwatch."
            f" Install it: {sys.executable} -m pip install 'pytest-drainwatch[embedded]'"
        )


def check_programs() -> None:
    """Raise ClusterError unless the programs and CNI plugins that a node runs are there."""
    # Whoever has the probe's root file system already needs no tool to make it.
    if missing := [name for name in missing_programs() if name != "mmdebstrap"]:
        raise ClusterError(
            f"programs are missing: {', '.join(missing)}. Expected them on PATH."
            " Install them: drainwatch setup"
        )


def check_cgroups() -> None:
    """Raise ClusterError unless cgroups can be made."""
    found = cgroups.hierarchies()
    if not found:
        raise ClusterError(
            "no cgroup file system is mounted: expected one below /sys/fs/cgroup."
            " Try: mount -t cgroup2 none /sys/fs/cgroup"
        )
    for hierarchy in found:
        if not os.access(hierarchy.root, os.W_OK):
            raise ClusterError(
                f"{hierarchy.root} is read-only: expected to make cgroups there."
                " In a container start it with --privileged"
            )


def missing_packages() -> list[str]:
    """Debian's names of the packages that bring what is missing, each once."""
    packages = {PROGRAMS[name] for name in PROGRAMS if find_program(name) is None}
    if _find_cni() is None:
        packages.add(CNI_PACKAGE)
    return sorted(packages)


def missing_test_packages() -> list[str]:
    """The same for what this project's own tests need besides."""
    return [
        package for package, any_of in TEST_PROGRAMS.items() if not any(map(find_program, any_of))
    ]


def missing_programs() -> list[str]:
    """Names of needed programs that are not on PATH, and `CNI plugins` if those are."""
    missing = [name for name in PROGRAMS if find_program(name) is None]
    if _find_cni() is None:
        missing.append("CNI plugins")
    return missing


def find_program(name: str) -> str | None:
    """Where *name* is; the sbin folders count even if a user's PATH leaves them out."""
    return shutil.which(name, path=search_path())


def search_path() -> str:
    """Where programs are looked for."""
    return f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin"


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
    return not _has_capability(_CAP_SYS_RESOURCE)


def filters_bridges() -> bool:
    """Whether packets between pods on one bridge pass the packet filter (br_netfilter).

    Loading the module would change this machine, so it is taken as it is.
    """
    return Path("/proc/sys/net/bridge").exists()


def lacks_ipvs() -> str | None:
    """Why kube-proxy cannot run in ipvs mode here; None: as far as one can see, it can.

    Loading the module would change this machine, so it is taken as it is.
    """
    missing, remedy = [], []
    if not _IPVS.exists():
        missing.append(f"the kernel has no ip_vs loaded (no {_IPVS})")
        remedy.append("modprobe ip_vs")
    if find_program("ipset") is None:
        missing.append("the program ipset is not on PATH")
        remedy.append("apt-get install ipset")
    if not missing:
        return None
    return (
        f"kube-proxy cannot run in ipvs mode: {' and '.join(missing)}. Expected both."
        f" Try: {' && '.join(remedy)}; or ask for nftables, since ipvs mode is deprecated:"
        " off by default in Kubernetes 1.40, removed in 1.43"
    )


def carries_overlays(folder: Path) -> bool:
    """Whether an overlay's upper layer may lie in *folder*, as containerd needs.

    Inside of a container the folder lies on an overlay itself, which the kernel refuses.
    """
    best, kind = "", ""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        point = before.split()[4]
        if folder.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, after.split()[0]
    return kind in _OVERLAY_BASES


def _has_capability(bit: int) -> bool:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> bit & 1)
    return False


def _find_cni() -> Path | None:
    for folder in map(Path, _CNI_FOLDERS):
        if all((folder / plugin).exists() for plugin in _CNI_PLUGINS):
            return folder
    return None
