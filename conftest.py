"""The root conftest: the plugin itself comes through its entry point."""

from __future__ import annotations
