"""Unpacked images, made once and shared by every cluster that starts later.

Unpacking the probe's root file system costs a quarter of a cluster's whole start-up
work. Here a containerd of its own does it once; each cluster then begins with hard links
to the result, which nobody writes to: containers write to layers above.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
import uuid
from pathlib import Path

from pytest_drainwatch.cluster import ClusterError, Log
from pytest_drainwatch.cluster.embedded import (
    cgroups,
    diagnosis,
    machine,
    preparation,
    records,
    runtime,
    slots,
)
from pytest_drainwatch.cluster.embedded.directories import cache_dir
from pytest_drainwatch.cluster.embedded.image import Image
from pytest_drainwatch.cluster.embedded.layout import Layout
from pytest_drainwatch.cluster.embedded.lifeline import Lifeline
from pytest_drainwatch.cluster.embedded.locks import locked
from pytest_drainwatch.cluster.embedded.plan import Component, Gate

_STORES_KEPT = 3
_TIMEOUT_S = 60.0
_POLL_S = 0.02
# containerd's own books change while it runs; all else of a store is never written again.
_BOOKS = (".db", ".bolt")


def image_store(images: tuple[Image, ...], log: Log) -> Path | None:
    """A folder to begin a containerd's root from, which has *images*, unpacked.

    `None` where a folder of the cache can't hold one.

    Raises:
        ClusterError: containerd did not take an image.
    """
    if not machine.carries_overlays(cache_dir()):
        return None
    key = hashlib.sha256(repr((_containerd(), images)).encode()).hexdigest()[:16]
    store = cache_dir() / "stores" / key
    if not store.exists():
        waiting = "waiting for another process that unpacks images"
        with locked(store.with_suffix(".lock"), on_wait=lambda: log(waiting)):
            if not store.exists():
                log("unpacking images (once, about 3 s)")
                _make(images, store)
                _prune(store.parent)
    return store


def begin_from(store: Path, layout: Layout) -> bool:
    """Give a cluster's containerd everything in *store* to begin with.

    `False` if that can't be: across file systems, where images go to memory, or if the
    store is removed at this very moment.
    """
    if not machine.carries_overlays(layout.state):
        return False
    root = layout.containerd
    try:
        root.mkdir(parents=True, exist_ok=True)
        for folder, folders, files in os.walk(store):
            target = root / Path(folder).relative_to(store)
            target.mkdir(exist_ok=True)
            _copy_ownership(Path(folder), target)
            for name in (*folders, *files):
                source = Path(folder, name)
                if source.is_symlink() or (name in files and not name.endswith(_BOOKS)):
                    os.link(source, target / name, follow_symlinks=False)
                elif name in files:
                    shutil.copy2(source, target / name)
    except OSError:
        shutil.rmtree(root, ignore_errors=True)
        return False
    return True


def _copy_ownership(source: Path, target: Path) -> None:
    status = source.stat()
    os.chown(target, status.st_uid, status.st_gid)
    target.chmod(status.st_mode & 0o7777)


def _make(images: tuple[Image, ...], store: Path) -> None:
    name = f"images-{uuid.uuid4().hex[:8]}"
    layout, lock = records.new_layout(name, None)
    partial = store.with_suffix(".part")
    locks = [lock]
    try:
        slot = slots.acquire()
        locks.append(slot.lock)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        config = layout.config / "containerd.toml"
        config.write_text(
            runtime.containerd_configuration(
                partial,
                cni_config=layout.config / "cni",
                cni_bin=machine.cni_bin(),
                restrict_oom=machine.lacks_sys_resource(),
            )
        )
        components = (
            Component(name="containerd", argv=("containerd", "--config", str(config))),
            *(
                Component(
                    name=runtime.import_name(image.archive),
                    argv=runtime.import_command(runtime.SOCKET, image.archive),
                    gates=(Gate.CONTAINERD,),
                    passing=True,
                )
                for image in images
            ),
        )
        kept = (layout.state, layout.logs, partial, *(image.archive.parent for image in images))
        cgroup = f"/{cgroups.PARENT}/{name}"
        node = preparation.node_plan(
            layout,
            slot.block,
            0,
            cgroup=cgroup,
            kept=kept,
            components=components,
            certificates=layout.pki,
        )
        preparation.cluster_plan(layout, slot.block, cgroup=cgroup, nodes=[node]).write(layout.plan)
        lifeline = Lifeline(layout, locks)
    except BaseException:
        layout.remove_state()
        raise
    finally:
        for descriptor in locks:
            os.close(descriptor)
    try:
        _wait(images, layout, lifeline)
    finally:
        lifeline.end()
    # Killed, not asked to stop: its books are as safe as after a crash, that is, whole.
    partial.replace(store)


def _wait(images: tuple[Image, ...], layout: Layout, lifeline: Lifeline) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    wanted = [layout.done / runtime.import_name(image.archive) for image in images]
    while not all(file.exists() for file in wanted):
        if layout.ended.exists() or not lifeline.alive or time.monotonic() > deadline:
            raise ClusterError(f"images could not be unpacked: {diagnosis.cause_of_death(layout)}")
        time.sleep(_POLL_S)


def _prune(folder: Path) -> None:
    stores = [path for path in folder.iterdir() if path.is_dir() and not path.suffix]
    for old in sorted(stores, key=lambda path: path.stat().st_mtime)[:-_STORES_KEPT]:
        with contextlib.suppress(OSError):
            shutil.rmtree(old)


def _containerd() -> tuple[str, int, int]:
    """What changes when another containerd is installed; asking it would take longer."""
    program = machine.find_program("containerd") or "containerd"
    status = Path(program).stat()
    return program, status.st_size, status.st_mtime_ns
