"""Trials on one cluster take turns: two at once would measure each other.

A cluster that a worker started for itself is its alone. One that was there before is
everybody's, so whoever measures on it holds a lock of this machine, named after the API
server. The kernel lets go of it with its last holder, however that ends.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pytest_drainwatch.api import ApiUnavailable, connect
from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.cluster.embedded.directories import state_dir
from pytest_drainwatch.cluster.embedded.locks import locked


class TurnError(Exception):
    """There can be no turns on this machine; the text says what to do."""


# What this process holds: a test that measures in its body may hold a trial's namespace open.
_held: Counter[Path] = Counter()


@contextmanager
def turn(cluster: Cluster, *, waiting: Callable[[str], None]) -> Iterator[None]:
    """Have the cluster for one trial; says by ``waiting`` if somebody else has it first.

    An interrupt ends the wait. Raises :class:`TurnError` if the lock cannot be made.
    """
    path = None if cluster.provider == "embedded" else _lock_of(cluster)
    if path is None or _held[path]:
        yield
        return
    with ExitStack() as stack:
        try:
            stack.enter_context(
                locked(path, on_wait=lambda: waiting(f"wait for a turn on cluster {cluster.name}"))
            )
        except OSError as error:
            raise TurnError(
                f"the lock of cluster {cluster.name} cannot be had: {error}. Expected to write to "
                f"{path.parent}: ls -ld {path.parent}; or name another place with DW_STATE=FOLDER"
            ) from error
        _held[path] += 1
        stack.callback(_held.subtract, [path])
        yield


def _lock_of(cluster: Cluster) -> Path | None:
    """The file of an API server's lock; None if there is none: no trial can be held on it."""
    try:
        api = connect(cluster.kubeconfig, cluster.context)
    except ApiUnavailable:
        return None
    server = str(api.client.configuration.host).rstrip("/").lower()
    api.close()
    name = hashlib.sha256(server.encode()).hexdigest()[:16]
    return state_dir() / "turns" / f"{name}.lock"
