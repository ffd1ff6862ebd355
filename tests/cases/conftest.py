"""The loopback rig for cases that need no cluster, and runs of their own."""

from __future__ import annotations

from tests.cluster.runs import running
from tests.loopback.conftest import rig

__all__ = ["rig", "running"]
