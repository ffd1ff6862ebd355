"""Trials on one cluster take turns: two at once would measure each other.

A cluster that a worker started for itself is its alone. One that was there before is
everybody's, so whoever measures on it holds a lock: a file below this user's DW_STATE, named
after what the cluster itself is called by no other, the UID of its namespace kube-system.
The kernel lets go of it with its last holder, however that ends. Other users and other
machines have locks of their own, and are not kept away.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pytest_drainwatch.api import REQUEST_TIMEOUT, ApiUnavailable, connect, explain, failures
from pytest_drainwatch.cluster import Cluster, ClusterError
from pytest_drainwatch.cluster.embedded.directories import state_dir
from pytest_drainwatch.cluster.embedded.locks import try_lock
from pytest_drainwatch.core.interval import NS_PER_S

# A wait is said aloud after so long, and then again every so often.
SAID_AFTER_S = 5.0
SAID_EVERY_S = 60.0
# Who has had one turn for so long hangs, and would keep everybody waiting for ever.
LONGEST_S = 3600.0


class TurnError(Exception):
    """There can be no turn; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who has the turn, in its own words; ``since_ns`` is this machine's CLOCK_MONOTONIC."""

    pid: int
    test: str
    since_ns: int


# What this process holds: a test that measures in its body may hold a trial's namespace open.
_held: set[Path] = set()


@contextmanager
def turn(
    cluster: Cluster,
    *,
    waiting: Callable[[str], None],
    line: Callable[[str], None] | None = None,
    test: str = "drainwatch run",
) -> Iterator[None]:
    """Have the cluster for one trial of ``test``.

    Says by ``waiting`` if somebody else has it first, and by ``line`` who that is if the wait
    is no short one. An interrupt ends the wait. Raises :class:`TurnError` if the lock cannot
    be made, or one holder does not let go of it for LONGEST_S.
    """
    path = None if cluster.provider == "embedded" else _lock_of(cluster)
    if path is None or path in _held:
        yield
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = try_lock(path)
        if descriptor is None:
            waiting(f"wait for a turn on cluster {cluster.name}")
            descriptor = _waited_for(path, cluster.name, line or waiting)
    except OSError as error:
        raise TurnError(
            f"the lock of cluster {cluster.name} cannot be had: {error}. Expected to write to "
            f"{path.parent}: ls -ld {path.parent}; or name another place with DW_STATE=FOLDER"
        ) from error
    try:
        _sign(descriptor, Holder(pid=os.getpid(), test=test, since_ns=time.monotonic_ns()))
        _held.add(path)
        yield
    finally:
        _held.discard(path)
        _sign(descriptor, None)
        os.close(descriptor)


def _lock_of(cluster: Cluster) -> Path | None:
    """The file of a cluster's lock; None if there is none: no trial can be held on it.

    Its namespace kube-system is the same by whatever name or address it is reached; only
    where that may not be read the API server's URL stands for it.
    """
    try:
        api = connect(cluster.kubeconfig, cluster.context)
    except ApiUnavailable:
        return None
    server = str(api.client.configuration.host).rstrip("/").lower()
    try:
        found = api.core.read_namespace("kube-system", _request_timeout=REQUEST_TIMEOUT)
        name = str(found.metadata.uid)
    except failures() as error:
        if getattr(error, "status", None) not in (401, 403, 404):
            raise TurnError(
                f"cluster {cluster.name} cannot be asked which one it is: {explain(error)}. "
                f"Expected an answer from {server}: kubectl --kubeconfig {cluster.kubeconfig} "
                "get namespace kube-system"
            ) from error
        name = server
    finally:
        api.close()
    try:
        place = state_dir()
    except (ClusterError, OSError) as error:
        raise TurnError(f"no place for the lock of cluster {cluster.name}: {error}") from error
    return place / "turns" / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.lock"


def _waited_for(path: Path, cluster: str, line: Callable[[str], None]) -> int:
    """The lock's descriptor, when it is our turn."""
    began = said_at = time.monotonic()
    patience_s = SAID_AFTER_S
    claim = _Claim(path)
    try:
        while not claim.granted(patience_s - (time.monotonic() - said_at)):
            said_at, patience_s = time.monotonic(), SAID_EVERY_S
            _say(path, cluster, said_at - began, line)
        return claim.descriptor
    except BaseException:
        claim.drop()
        raise


def _say(path: Path, cluster: str, waited_s: float, line: Callable[[str], None]) -> None:
    """Who keeps us waiting. Raises :class:`TurnError` if that one is not going to end."""
    holder = _signed(path)
    if holder is None:
        who, has_it_s, look = "another process", waited_s, f"fuser -v {path}"
    else:
        who = f"process {holder.pid} ({holder.test})"
        has_it_s = (time.monotonic_ns() - holder.since_ns) / NS_PER_S
        look = f"ps -fp {holder.pid}"
    if has_it_s > LONGEST_S:
        raise TurnError(
            f"no turn on cluster {cluster}: {who} has had it for {has_it_s:.0f} s, and "
            f"{LONGEST_S:.0f} s are the most. Look at it: {look}; when it is gone the next turn "
            "begins"
        )
    line(
        f"waiting for a turn on cluster {cluster}, {waited_s:.0f} s so far: {who} measures on it "
        f"({look})"
    )


def _sign(descriptor: int, holder: Holder | None) -> None:
    """Write into the lock who has it: for people to read, so nothing depends on it."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        if holder is not None:
            os.pwrite(descriptor, json.dumps(asdict(holder)).encode(), 0)


def _signed(path: Path) -> Holder | None:
    """Who has the lock; None if that cannot be read: it may have changed hands just now."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return Holder(pid=int(told["pid"]), test=str(told["test"]), since_ns=int(told["since_ns"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


class _Claim:
    """A place in the kernel's queue for a lock: a thread stands there, so that ours can speak.

    To ask again and again instead would never be served while others stand in the queue.
    """

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._guard = threading.Lock()
        self._over = threading.Event()
        self._dropped = False
        self._error: OSError | None = None
        threading.Thread(target=self._stand, name="drainwatch-turn", daemon=True).start()

    def granted(self, patience_s: float) -> bool:
        """Whether it is our turn; waits for it so long. Raises OSError if it cannot come."""
        over = self._over.wait(max(0.0, patience_s))
        if self._error is not None:
            raise self._error
        return over

    def drop(self) -> None:
        """Give the place up, or the lock if it came meanwhile."""
        with self._guard:
            self._dropped = True
            if self._over.is_set():
                os.close(self.descriptor)

    def _stand(self) -> None:
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        except OSError as error:
            self._error = error
        with self._guard:
            if self._dropped:
                os.close(self.descriptor)
            else:
                self._over.set()
