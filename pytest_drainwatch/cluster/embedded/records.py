"""Which clusters this machine has: running ones, and what dead ones left.

Each has a folder with a lock in it that its reaper and node hold. A folder whose lock
is free is a leftover, whatever its record says.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pytest_drainwatch.cluster import ClusterError, Log
from pytest_drainwatch.cluster.embedded import reaper, slots
from pytest_drainwatch.cluster.embedded.directories import state_dir, writing_to_state
from pytest_drainwatch.cluster.embedded.layout import Layout
from pytest_drainwatch.cluster.embedded.locks import locked, try_lock
from pytest_drainwatch.cluster.embedded.plan import read_plan

_POLL_S = 0.02
_DOWN_TIMEOUT_S = 20.0
_LOGS_KEPT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A running cluster, as other processes may know it.

    Attributes:
        created: wall time, seconds since the epoch.
        owner: process id of the one that it ends with; `None` once detached.
        reaper: process id of its reaper.
    """

    name: str
    created: float
    owner: int | None
    reaper: int
    kube_version: str
    proxy_mode: str
    node_address: str
    kubeconfig: str
    logs: str
    nodes: int = 1

    def write(self, layout: Layout) -> None:
        partial = layout.record.with_suffix(".part")
        partial.write_text(json.dumps(asdict(self), indent=1) + "\n")
        partial.replace(layout.record)


def clusters_dir() -> Path:
    return state_dir() / "clusters"


def new_layout(name: str, logs: Path | None) -> tuple[Layout, int]:
    """Make the folders of a cluster and lock them; the descriptor is the lock.

    Raises:
        ClusterError: a cluster of that name is running, or a folder can't be made.
    """
    # A folder of its own below the caller's: several clusters may share that one.
    logs = (logs or state_dir() / "logs").absolute() / name
    layout = Layout(state=clusters_dir() / name, logs=logs)
    with writing_to_state():
        with _no_other():
            layout.state.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = try_lock(layout.lock)
        if lock is not None:
            try:
                _make_folders(layout)
            except OSError:
                layout.remove_state()
                os.close(lock)
                raise
    if lock is None:
        raise ClusterError(
            f"a cluster named {name} is running: expected a new name."
            f" Stop it (drainwatch cluster down --name {name}) or choose another --name"
        )
    return layout, lock


def _make_folders(layout: Layout) -> None:
    layout.make()
    for stale in layout.logs.iterdir():
        if stale.is_dir() and not stale.is_symlink():
            shutil.rmtree(stale)
        else:
            stale.unlink()


def running() -> list[Record]:
    """Clusters that live now, by name."""
    found = []
    for state in _states():
        if _is_held(state):
            # Between its lock and its record a cluster is not there yet.
            with contextlib.suppress(OSError, ValueError, TypeError):
                found.append(_read(state))
    return found


def leftovers() -> list[str]:
    """Names of clusters of which only remains are there."""
    return [s.name for s in _states() if (s / "lock").exists() and not _is_held(s)]


def sweep(log: Log) -> None:
    """Remove what clusters left that were killed together with their reaper; name each."""
    with writing_to_state(), _no_other():
        for state in _states():
            try:
                lock = try_lock(state / "lock", create=False)
            except FileNotFoundError:
                # The lock goes last: its reaper is, or was, about to remove the folder.
                Layout(state=state, logs=state).remove_state()
                continue
            if lock is None:
                continue
            try:
                log(f"removing what cluster {state.name} left behind when it was killed")
                _clear(state, log)
            finally:
                os.close(lock)
        _prune_logs()


def detached(layout: Layout) -> None:
    """Note that the cluster no longer ends with its owner."""
    replace(_read(layout.state), owner=None).write(layout)


def stop(name: str) -> None:
    """End the detached cluster *name*, and return when nothing of it is left.

    Raises:
        ClusterError: there is none, it is somebody's, or it does not end.
    """
    record = next((record for record in running() if record.name == name), None)
    if record is None:
        raise ClusterError(
            f"no cluster named {name} is running: expected one of"
            f" {', '.join(r.name for r in running()) or 'none'}. See: drainwatch cluster list"
        )
    if record.owner is not None and Path(f"/proc/{record.owner}").exists():
        raise ClusterError(
            f"cluster {name} belongs to process {record.owner} and ends with it: expected one"
            " started by `drainwatch cluster up`. End that process instead"
        )
    reaper.ask_to_stop(record.reaper)
    deadline = time.monotonic() + _DOWN_TIMEOUT_S
    while _is_held(clusters_dir() / name) or (clusters_dir() / name).exists():
        if time.monotonic() > deadline:
            raise ClusterError(
                f"cluster {name} still runs {_DOWN_TIMEOUT_S:.0f} s after it was told to stop:"
                f" expected its reaper (process {record.reaper}) to end it."
                f" See {record.logs}/node.log"
            )
        time.sleep(_POLL_S)


@contextlib.contextmanager
def _no_other() -> Iterator[None]:
    """Keep a sweep from taking a folder that is being made for a leftover."""
    with locked(state_dir() / "lock", on_wait=lambda: None):
        yield


def _states() -> list[Path]:
    folder = clusters_dir()
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _is_held(state: Path) -> bool:
    try:
        lock = try_lock(state / "lock", create=False)
    except FileNotFoundError:
        return False
    if lock is None:
        return True
    os.close(lock)
    return False


def _read(state: Path) -> Record:
    layout = Layout(state=state, logs=state)
    return Record(**json.loads(layout.record.read_text()))


def _clear(state: Path, log: Log) -> None:
    layout = Layout(state=state, logs=state)
    with contextlib.suppress(OSError, ValueError, TypeError):
        plan = read_plan(layout.plan)
        with slots.nobodys(plan.link) as link:
            left = reaper.clear(plan, link=link)
        for path in left:
            log(f"  {path} can't be removed: something still runs in it")
        if left:
            return
    layout.remove_state()


def _prune_logs() -> None:
    folder = state_dir() / "logs"
    if not folder.is_dir():
        return
    live = {state.name for state in _states()}
    old = [path for path in folder.iterdir() if path.name not in live]
    for path in sorted(old, key=lambda path: path.stat().st_mtime)[:-_LOGS_KEPT]:
        shutil.rmtree(path, ignore_errors=True)
