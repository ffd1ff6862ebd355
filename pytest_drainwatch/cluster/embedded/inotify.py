"""inotify instances: of the few things that a cluster takes, the first that a machine runs out of.

The kernel counts them per user (`fs.inotify.max_user_instances`, often 128). A component
that gets none dies, or no longer sees its files change, so it is asked for beforehand.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from pytest_drainwatch.cluster import ClusterError

# Measured by `python -m bench.startup` on cgroup v1: kubelet 6, kube-apiserver 3, one each for
# kube-controller-manager, kube-proxy and containerd. On v2 containerd has one more for each
# running container (not measured): of three pods there are six, with their sandboxes.
COMPONENTS, PODS_ON_V2 = 12, 6
OF_A_FURTHER_NODE = 8  # kubelet, kube-proxy and containerd
_V2 = Path("/sys/fs/cgroup/cgroup.controllers")
SYSCTL = "fs.inotify.max_user_instances"
REMEDY = f"sudo sysctl {SYSCTL}=512"
_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")


def cluster(nodes: int = 1) -> int:
    """How many one cluster of so many nodes takes."""
    pods = PODS_ON_V2 if _V2.exists() else 0
    return COMPONENTS + OF_A_FURTHER_NODE * (nodes - 1) + pods


def limit() -> int | None:
    """How many one user may have; `None` where the kernel does not say."""
    try:
        return int(_LIMIT.read_text())
    except (OSError, ValueError):
        return None


def held(proc: Path = Path("/proc")) -> int:
    """How many this user's processes hold, as far as they let us look."""
    found = 0
    for process in proc.iterdir():
        if not process.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # they come and go
            if process.stat().st_uid == os.geteuid():
                found += of_process(process)
    return found


def of_process(process: Path) -> int:
    """How many one process holds, by its folder in /proc. Raises OSError if that is closed."""
    return sum(map(_is_inotify, (process / "fd").iterdir()))


def check(starting: int = 0, nodes: int = 1) -> None:
    """Raise ClusterError unless this user may have as many as one more cluster takes.

    *starting* others are about to take theirs; what they have already is counted twice, so
    the last few of a machine may be refused where they would just have fitted.
    """
    most, now = limit(), held()
    needed = (takes := cluster(nodes)) + cluster() * starting
    if most is not None and now + needed > most:
        beside = f", with {starting} more being started" if starting else ""
        raise ClusterError(
            f"this user's processes hold {now} of {most} inotify instances ({SYSCTL}), and a"
            f" cluster takes {takes}{beside}: expected room for {needed}. End other"
            " clusters (drainwatch cluster list), start fewer at once (pytest -n), or raise the"
            f" limit: {REMEDY}"
        )


def _is_inotify(descriptor: Path) -> bool:
    try:
        return str(descriptor.readlink()) in ("anon_inode:inotify", "anon_inode:[inotify]")
    except OSError:
        return False
