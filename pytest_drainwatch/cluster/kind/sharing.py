"""One kind cluster for several processes: the first makes it, the last one removes it.

Workers of xdist each have pytest-kind's fixture, and each would create and delete the same
cluster. Who is one of its users holds a shared lock on a file; the kernel lets go of it
with the process, however that ends, so nobody is counted who is gone. Who leaves and wants the
cluster kept leaves a mark beside it, for the last one.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded.directories import state_dir, writing_to_state
from pytest_drainwatch.cluster.embedded.locks import locked


class Share:
    """This process's share of the kind cluster *name*, among this user's processes."""

    def __init__(self, name: str) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
            raise ClusterError(
                f"{name!r} is no name of a kind cluster: expected letters, digits, dots and"
                " dashes. Choose another one: --cluster-name NAME"
            )
        folder = state_dir() / "kind"
        with writing_to_state():
            folder.mkdir(parents=True, exist_ok=True)
        self._door = folder / f"{name}.lock"
        self._users = folder / f"{name}.users"
        self._kept = folder / f"{name}.keep"
        self._held: int | None = None

    @contextmanager
    def door(self, on_wait: Callable[[], None]) -> Iterator[None]:
        """Only one at a time makes, joins, leaves or removes the cluster."""
        with locked(self._door, on_wait=on_wait):
            yield

    def join(self) -> None:
        """Be one of its users from now on. To be called within `door`."""
        if self._held is None:
            self._held = os.open(self._users, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if self._alone():
                self._kept.unlink(missing_ok=True)  # nobody is left who wished that
            fcntl.flock(self._held, fcntl.LOCK_SH)

    def leave(self, *, keep: bool = False) -> bool:
        """Be none any more; whether the cluster is to be removed now.

        It is if nobody else is one of its users, and none that left wanted it kept. To be called
        within `door`.
        """
        if self._held is None:
            return False
        try:
            if keep:
                self._kept.touch()
            if not self._alone():
                return False
            kept = self._kept.exists()
            self._kept.unlink(missing_ok=True)
            return not kept
        finally:
            os.close(self._held)
            self._held = None

    def _alone(self) -> bool:
        """Whether nobody else is one of its users."""
        assert self._held is not None
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
