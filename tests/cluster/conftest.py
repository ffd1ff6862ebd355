"""Runs of their own as a fixture."""

from __future__ import annotations

from tests.cluster.runs import running

__all__ = ["running"]
