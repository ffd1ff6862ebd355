"""A report -> what broke, by how much, what brought it about, and what to try (pure)."""

from pytest_drainwatch.render.advice.finding import Finding
from pytest_drainwatch.render.advice.findings import findings

__all__ = ["Finding", "findings"]
