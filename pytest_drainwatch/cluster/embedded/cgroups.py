"""The cluster's own cgroup root, in whatever hierarchies this machine has.

Cgroup folders outlive every process and namespace, so the node makes them and the
reaper, outside, removes them.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

PARENT = "drainwatch"
# A node's own components, beside its pods.
SYSTEM = "system"
# In units of what an ordinary group has; a kernel takes up to 256 (v1) and 100 (v2) of them.
# All clusters together stay one such group: with more of it the workers' own threads stalled.
ORDINARY, HASTENED = 1, 64
# In a cluster of many a node has processors of its own: whoever ends a pod there does not
# wait for those who see to its replacement.
_NODE_WEIGHT = 16
# What kubelet needs; a kernel may offer more, which are left as they are.
_V2_CONTROLLERS = ("cpuset", "cpu", "io", "memory", "hugetlb", "pids")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """One mounted cgroup file system."""

    root: Path
    version: int
    controllers: frozenset[str] = frozenset()


def hierarchies(mountinfo: str | None = None) -> tuple[Hierarchy, ...]:
    """The cgroup file systems of this process's mount namespace."""
    text = Path("/proc/self/mountinfo").read_text() if mountinfo is None else mountinfo
    found: dict[Path, Hierarchy] = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        root = Path(before.split()[4])
        kind, _, options = after.split()[:3]
        if kind == "cgroup2":
            found[root] = Hierarchy(root=root, version=2)
        elif kind == "cgroup":
            found[root] = Hierarchy(root=root, version=1, controllers=frozenset(options.split(",")))
    return tuple(found.values())


def flavour(found: tuple[Hierarchy, ...]) -> str | None:
    """`v1`, `v2`, `hybrid` (v1 with a bare v2 beside it) or `None` without any."""
    versions = {hierarchy.version for hierarchy in found}
    return {frozenset({1}): "v1", frozenset({2}): "v2", frozenset({1, 2}): "hybrid"}.get(
        frozenset(versions)
    )


def create(cgroup: str, found: tuple[Hierarchy, ...]) -> None:
    """Make *cgroup*, ready to hold pods, in every hierarchy.

    Raises:
        OSError: a folder or a controller is refused.
    """
    pure_v2 = flavour(found) == "v2"
    for hierarchy in found:
        for folder in _down(hierarchy.root, cgroup):
            if pure_v2:
                # A child has only the controllers that its parent hands down.
                _hand_down(folder.parent)
            folder.mkdir(exist_ok=True)
            if hierarchy.version == 1 and "cpuset" in hierarchy.controllers:
                # In v1 an empty cpuset takes no process at all.
                for name in ("cpuset.cpus", "cpuset.mems"):
                    own = folder / name
                    if not own.read_text().strip():
                        own.write_text((folder.parent / name).read_text())
        if pure_v2:
            _hand_down(hierarchy.root / cgroup.lstrip("/"))


class Part(StrEnum):
    """Which of a node's own components."""

    NODE = "node"  # what every node has
    CONTROL_PLANE = "control-plane"


def join(cgroup: str, part: Part, found: tuple[Hierarchy, ...], process: int = 0) -> None:
    """Put a process (0: the calling one), and what it will start, among a node's components.

    Without that each of them would be scheduled beside the whole of all pods of all clusters.

    Raises:
        OSError: a folder or the process is refused.
    """
    pure_v2 = flavour(found) == "v2"
    for hierarchy in _with_cpu(found):
        for folder in _down(hierarchy.root / cgroup.lstrip("/"), f"{SYSTEM}/{part}"):
            if pure_v2:
                _hand_down(folder.parent)
            folder.mkdir(exist_ok=True)
        weight = _NODE_WEIGHT if part is Part.NODE else ORDINARY
        weigh(f"{cgroup}/{SYSTEM}/{part}", weight, (hierarchy,))
        (folder / "cgroup.procs").write_text(str(process))


def weigh(cgroup: str, weight: int, found: tuple[Hierarchy, ...]) -> None:
    """Give *cgroup* this share of processor time, against an ordinary group's one.

    Raises:
        OSError: it is not there, or not ours.
    """
    for hierarchy in _with_cpu(found):
        name, unit = ("cpu.shares", 1024) if hierarchy.version == 1 else ("cpu.weight", 100)
        (hierarchy.root / cgroup.lstrip("/") / name).write_text(str(weight * unit))


def _with_cpu(found: tuple[Hierarchy, ...]) -> list[Hierarchy]:
    pure_v2 = flavour(found) == "v2"
    return [each for each in found if pure_v2 or "cpu" in each.controllers]


def remove(cgroup: str, found: tuple[Hierarchy, ...], *, patience_s: float = 5.0) -> list[Path]:
    """Remove *cgroup* everywhere and return the folders that would not go.

    Processes that are still being torn down keep their folder busy, hence the patience.
    The shared parent goes too if no other cluster is in it.
    """
    deadline = time.monotonic() + patience_s
    while True:
        left = [path for hierarchy in found if (path := _remove_tree(hierarchy.root, cgroup))]
        if not left or time.monotonic() > deadline:
            break
        time.sleep(0.01)
    for hierarchy in found:
        with contextlib.suppress(OSError):
            (hierarchy.root / PARENT).rmdir()
    return left


def _down(root: Path, cgroup: str) -> list[Path]:
    parts = cgroup.strip("/").split("/")
    return [root.joinpath(*parts[: index + 1]) for index in range(len(parts))]


def _hand_down(folder: Path) -> None:
    offered = (folder / "cgroup.controllers").read_text().split()
    active = (folder / "cgroup.subtree_control").read_text().split()
    missing = [name for name in _V2_CONTROLLERS if name in offered and name not in active]
    if not missing:
        return
    try:
        (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in missing))
    except OSError as error:
        raise OSError(
            error.errno,
            f"{folder} does not hand down {', '.join(missing)} ({error.strerror}): in a container"
            " its root holds processes. Start the container with --cgroupns=host",
        ) from error


def _remove_tree(root: Path, cgroup: str) -> Path | None:
    top = root / cgroup.lstrip("/")
    for folder, _, _ in os.walk(top, topdown=False):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
    return top if top.exists() else None
