"""The node's private view of the file system.

Everything a component writes outside of the cluster's own folders lands on file
systems that end with the node's mount namespace.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_SHARED = 1 << 20

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

_PR_SET_PDEATHSIG = 1

# An overlay, not a tmpfs: a Python or a source tree below these must stay readable.
# /opt because containerd makes a folder there.
_OVERLAID = ("/var/lib", "/var/log", "/opt")

# The kubelet and kube-proxy write these, and they belong to the whole machine: give
# them files that already hold what they want.
MASKED_SYSCTLS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """mount(2). Raises OSError with the target in it."""
    result = _libc.mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()
    )
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount: {os.strerror(number)}", target)


def unshare(flags: int) -> None:
    """unshare(2); `os.unshare` came with Python 3.12."""
    if _libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"unshare: {os.strerror(number)}")


def setns(descriptor: int, kind: int) -> None:
    """setns(2); `os.setns` came with Python 3.12."""
    if _libc.setns(descriptor, kind) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"setns: {os.strerror(number)}")


def die_with_parent(signal: int) -> None:
    """Have the kernel send *signal* to this process when its parent's thread ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0)


def build_view(keep: Sequence[Path]) -> None:
    """Turn this process's new mount namespace into the node's.

    Args:
        keep: folders that stay the host's own, wherever they lie.
    """
    mount("", "/", flags=MS_REC | MS_PRIVATE)
    held = [(os.open(folder, os.O_PATH | os.O_DIRECTORY), folder) for folder in keep]
    cgroups = os.open("/sys/fs/cgroup", os.O_PATH | os.O_DIRECTORY)
    # Descriptors are reached through the old /proc until the new one is in place.
    mount("tmpfs", "/run", "tmpfs", data="mode=755")
    for index, lower in enumerate(_OVERLAID):
        if Path(lower).is_dir():
            _overlay(lower, Path(f"/run/overlay/{index}"))
    for descriptor, folder in held:
        folder.mkdir(parents=True, exist_ok=True)
        mount(f"/proc/self/fd/{descriptor}", str(folder), flags=MS_BIND | MS_REC)
        os.close(descriptor)
    # A sysfs of the node's own network namespace, with the machine's cgroups in it.
    _fresh_sysfs(cgroups)
    for needed in ("/run/netns", "/run/lock", "/run/tmp", "/var/lib/kubelet"):
        Path(needed).mkdir(parents=True, exist_ok=True)
    mount("tmpfs", "/var/lib/kubelet", "tmpfs", data="mode=755")
    mount("proc", "/proc", "proc")
    for index, (name, value) in enumerate(MASKED_SYSCTLS.items()):
        target = Path("/proc/sys") / name
        if target.exists():
            file = Path(f"/run/sysctl-{index}")
            file.write_text(value + "\n")
            mount(str(file), str(target), flags=MS_BIND)
    # Shared among themselves, as Kubernetes expects of a node; the host sees none of it.
    mount("", "/", flags=MS_REC | MS_SHARED)


def _overlay(folder: str, scratch: Path) -> None:
    upper, work = scratch / "upper", scratch / "work"
    upper.mkdir(parents=True)
    work.mkdir()
    options = f"lowerdir={folder},upperdir={upper},workdir={work}"
    mount("overlay", folder, "overlay", data=options)


def _fresh_sysfs(cgroups: int) -> None:
    mount("sysfs", "/sys", "sysfs")
    mount(f"/proc/self/fd/{cgroups}", "/sys/fs/cgroup", flags=MS_BIND | MS_REC)
    os.close(cgroups)
