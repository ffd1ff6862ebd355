"""`drainwatch doctor`: what this machine has and lacks, each with the next command."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded import binary, cgroups, inotify, machine, records
from pytest_drainwatch.cluster.embedded.directories import cache_dir, state_dir
from pytest_drainwatch.cluster.embedded.rootfs import cached_root_filesystem

_SETUP = "drainwatch setup"
_GIB = 1 << 30
_DISK_NEEDED = 2 * _GIB
_MEMORY_NEEDED = 1 * _GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the list. `remedy` is the next command, for what is not `good`."""

    name: str
    good: bool
    seen: str
    remedy: str = ""

    def line(self) -> str:
        mark = "✓" if self.good else "✗"
        remedy = "" if self.good or not self.remedy else f"  →  {self.remedy}"
        return f"{mark} {self.name}: {self.seen}{remedy}"


def examine(versions: Sequence[str]) -> tuple[Check, ...]:
    """Look at everything that an embedded cluster needs; starts and changes nothing."""
    rights = _attempt("rights", "root on Linux", machine.check_rights)
    if not rights.good:
        return (rights,)  # the rest would be noise
    return (
        rights,
        *_programs(),
        _attempt("Python packages", "cryptography", machine.check_python),
        *map(_kubenode, versions),
        _root_filesystem(),
        _attempt(
            "cgroups", cgroups.flavour(cgroups.hierarchies()) or "none", machine.check_cgroups
        ),
        _disk(),
        _memory(),
        _inotify(),
        _leftovers(),
    )


def _attempt(name: str, seen: str, check: Callable[[], None]) -> Check:
    try:
        check()
    except ClusterError as error:
        return Check(name=name, good=False, seen=str(error))
    return Check(name=name, good=True, seen=seen)


def _programs() -> Iterator[Check]:
    for name in machine.PROGRAMS:
        found = machine.find_program(name)
        yield Check(name=name, good=bool(found), seen=found or "not on PATH", remedy=_SETUP)
    missing = "CNI plugins" in machine.missing_programs()
    seen = "not found" if missing else str(machine.cni_bin())
    yield Check(name="CNI plugins", good=not missing, seen=seen, remedy=_SETUP)


def _kubenode(version: str) -> Check:
    name = f"Kubernetes {version}"
    if version not in binary.versions():
        known = ", ".join(binary.versions())
        return Check(name=name, good=False, seen=f"not known here, expected one of {known}")
    recipe = binary.kubenode_recipe(version)
    if binary.cached(recipe).exists():
        return Check(name=name, good=True, seen=str(binary.cached(recipe)))
    try:
        go = str(binary.find_go(recipe.go))
    except ClusterError as error:
        return Check(name=name, good=False, seen=f"not built yet, and {error}")
    return Check(name=name, good=False, seen=f"not built yet ({go} can)", remedy=_SETUP)


def _root_filesystem() -> Check:
    layer = cached_root_filesystem()
    seen = str(layer.path) if layer else "not made yet"
    return Check(name="probe root file system", good=layer is not None, seen=seen, remedy=_SETUP)


def _disk() -> Check:
    free = min(shutil.disk_usage(_existing(path)).free for path in (cache_dir(), state_dir()))
    return Check(
        name="disk",
        good=free >= _DISK_NEEDED,
        seen=f"{free / _GIB:.1f} GiB free, {_DISK_NEEDED // _GIB} needed",
        remedy="make room, or name other places with DW_CACHE and DW_STATE",
    )


def _memory() -> Check:
    available = 0
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            available = int(line.split()[1]) * 1024
    return Check(
        name="memory",
        good=available >= _MEMORY_NEEDED,
        seen=f"{available / _GIB:.1f} GiB available, {_MEMORY_NEEDED // _GIB} needed per cluster",
        remedy="end something",
    )


def _inotify() -> Check:
    most, held = inotify.limit(), inotify.held()
    known = f"of {most} instances ({inotify.SYSCTL})" if most is not None else "instances"
    return Check(
        name="inotify",
        good=most is None or held + inotify.cluster() <= most,
        seen=f"{held} {known} held, {inotify.cluster()} needed per cluster",
        remedy=inotify.REMEDY,
    )


def _leftovers() -> Check:
    alive = [record.name for record in records.running()]
    dead = records.leftovers()
    seen = f"{len(alive)} running" + (f" ({', '.join(alive)})" if alive else "")
    if dead:
        # Not a fault: the next start removes them.
        seen += f"; left by dead ones, removed at the next start: {', '.join(dead)}"
    return Check(name="clusters", good=True, seen=seen)


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path if os.access(path, os.R_OK) else Path("/")
