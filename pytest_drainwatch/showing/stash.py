"""Where the run keeps its screen; apart, so that to ask for it loads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_drainwatch.showing.screen import Screen

SCREEN: pytest.StashKey[Screen] = pytest.StashKey()
