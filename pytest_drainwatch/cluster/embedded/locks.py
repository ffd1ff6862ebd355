"""File locks, which the kernel lets go of with their last holder."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path


def try_lock(path: Path, *, create: bool = True) -> int | None:
    """A descriptor that holds *path* exclusively, or `None` if someone else does.

    Raises:
        FileNotFoundError: it is not there and *create* is false.
    """
    made = os.O_CREAT if create else 0
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | made, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def is_held(path: Path) -> bool:
    """Whether somebody holds *path*; one that is not there is held by nobody."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Shared: who only looks must not look like a holder to others.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextlib.contextmanager
def locked(path: Path, *, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold *path* exclusively; call *on_wait* once if someone else has it first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
