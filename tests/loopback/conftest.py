"""The rig as a fixture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loopback.rig import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Probes and agents that end with the test."""
    made = Rig(tmp_path)
    try:
        yield made
    finally:
        made.close()
