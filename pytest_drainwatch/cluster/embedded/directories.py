"""Where the embedded cluster keeps what it builds and what it runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from pytest_drainwatch.cluster import ClusterError


def cache_dir() -> Path:
    """Binaries and images: costly to make, safe to delete. `DW_CACHE` overrides it."""
    return _directory("DW_CACHE", "XDG_CACHE_HOME", ".cache")


def state_dir() -> Path:
    """Running clusters, slots and logs. `DW_STATE` overrides it."""
    return _directory("DW_STATE", "XDG_STATE_HOME", ".local/state")


@contextlib.contextmanager
def writing_to_cache() -> Iterator[None]:
    """Turn what the operating system refuses into a ClusterError that says where."""
    try:
        yield
    except OSError as error:
        raise ClusterError(
            f"the cache {cache_dir()} can't be written: {error}. Expected a folder with 4 GB free"
            " for binaries and images. Make room, or name another with DW_CACHE=FOLDER"
        ) from error


@contextlib.contextmanager
def writing_to_state() -> Iterator[None]:
    """As `writing_to_cache`, for the state directory and the logs."""
    try:
        yield
    except OSError as error:
        raise ClusterError(
            f"the cluster's files can't be written: {error}. Expected to write below {state_dir()}"
            " and to the logs. Name another place with DW_STATE=FOLDER"
        ) from error


def _directory(own: str, xdg: str, default: str) -> Path:
    if given := os.environ.get(own):
        return Path(given).absolute()
    base = os.environ.get(xdg)
    try:
        return (Path(base) if base else Path.home() / default).absolute() / "pytest-drainwatch"
    except RuntimeError as error:
        raise ClusterError(
            f"there is no place for files of our own: {error}. Expected a user with a home"
            f" directory. Name a folder with {own}=FOLDER"
        ) from error
