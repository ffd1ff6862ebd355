"""Where the embedded cluster keeps what it builds and what it runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """Binaries and images: costly to make, safe to delete. `DW_CACHE` overrides it."""
    return _directory("DW_CACHE", "XDG_CACHE_HOME", ".cache")


def state_dir() -> Path:
    """Running clusters, slots and logs. `DW_STATE` overrides it."""
    return _directory("DW_STATE", "XDG_STATE_HOME", ".local/state")


def _directory(own: str, xdg: str, default: str) -> Path:
    if given := os.environ.get(own):
        return Path(given).absolute()
    base = os.environ.get(xdg)
    return (Path(base) if base else Path.home() / default).absolute() / "pytest-drainwatch"
