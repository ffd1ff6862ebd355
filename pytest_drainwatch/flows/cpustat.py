"""``cpu.stat`` of this process's cgroup and of those above it, cgroup v1 and v2."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc/self")


@dataclass(frozen=True, slots=True)
class Throttled:
    """Since the cgroup was made: nanoseconds summed over its CPUs, and quota periods."""

    throttled_ns: int
    periods: int


class CpuStat:
    """One ``cpu.stat``, held open: reading it again costs one system call."""

    def __init__(self, path: Path, version: str) -> None:
        """Raises OSError if it cannot be opened."""
        self.version = version
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> Throttled | None:
        """What it says; None if it says nothing about throttling, or is gone."""
        try:
            return parse(os.pread(self._fd, 4096, 0).decode("ascii", "replace"))
        except OSError:
            return None

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)


def parse(text: str) -> Throttled | None:
    """Both dialects: ``throttled_usec`` (v2) and ``throttled_time`` in ns (v1)."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if value.strip().isdigit():
            found[name] = int(value)
    periods = found.get("nr_throttled")
    if periods is None:
        return None
    if "throttled_usec" in found:
        return Throttled(found["throttled_usec"] * 1000, periods)
    if "throttled_time" in found:
        return Throttled(found["throttled_time"], periods)
    return None


def cpu_stats(proc: Path = PROC) -> tuple[CpuStat, ...]:
    """Those that tell of throttling, the process's own first; empty if none can be found.

    A quota may also be set on a cgroup above the process's own (a pod's, above its
    container's), so those count as well, as far up as this mount namespace shows them.
    """
    opened = []
    try:
        folders = _folders(proc)
    except ValueError:  # not in the format that we know: then throttling cannot be seen
        folders = []
    for folder, version in folders:
        try:
            stat = CpuStat(folder / "cpu.stat", version)
        except OSError:
            continue
        if stat.read() is None:
            stat.close()
        else:
            opened.append(stat)
    return tuple(opened)


def _folders(proc: Path) -> list[tuple[Path, str]]:
    """Where to look, and in which hierarchy. Raises ValueError for what is no such file."""
    try:
        memberships = (proc / "cgroup").read_text(errors="surrogateescape").splitlines()
        mounts = (proc / "mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return []
    controllers = {
        name: (number, path)
        for number, names, path in (line.split(":", 2) for line in memberships)
        for name in names.split(",")
    }
    # The cpu controller is in one hierarchy only: a v1 one of its own, or the unified one.
    v1, version = "cpu" in controllers, "v1" if "cpu" in controllers else "v2"
    membership = controllers.get("cpu" if v1 else "")
    if membership is None:
        return []
    own = Path(membership[1])
    for line in mounts:
        left, _, right = line.partition(" - ")
        root, mounted = (_unescaped(field) for field in left.split()[3:5])
        kind, _, options = right.split(" ", 2)  # the source between them may be empty
        if kind != ("cgroup" if v1 else "cgroup2"):
            continue
        if v1 and "cpu" not in options.split(","):
            continue
        try:
            below = own.relative_to(root)
        except ValueError:
            continue  # mounted from elsewhere in the tree
        top = Path(mounted)
        return [(top / part, version) for part in (below, *below.parents)]
    return []


def _unescaped(field: str) -> str:
    """mountinfo writes a blank as ``\\040``."""
    return field.replace("\\040", " ")
