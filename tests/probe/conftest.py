"""The rig, for its probes."""

from __future__ import annotations

from tests.loopback.conftest import rig

__all__ = ["rig"]
