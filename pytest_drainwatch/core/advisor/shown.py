"""Durations as the advisor's texts show them."""

from __future__ import annotations

from pytest_drainwatch.core.simulation.command import exact


def seconds(ns: int) -> str:
    """ "5 s", "1.5 s": exact, without zeros that say nothing."""
    return f"{'-' if ns < 0 else ''}{exact(abs(ns))} s"
