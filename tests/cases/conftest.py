"""The loopback rig, for the cases that need a real probe and no cluster."""

from __future__ import annotations

from tests.loopback.conftest import rig

__all__ = ["rig"]
