"""Fixtures of helper modules, for every file here."""

from __future__ import annotations

from tests.cluster.existing import admin, team
from tests.cluster.runs import running

__all__ = ["admin", "running", "team"]
