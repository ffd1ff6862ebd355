"""docs/integration.md names every property that there is, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_drainwatch.telling.told import NAMES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "integration.md"
OF_A_RUN = {"run", "summary", "page", "kubernetes", "cluster", "build"}


def test_every_property_is_named_and_no_other() -> None:
    named = set(re.findall(r"`dw\.(\w+)`", PAGE.read_text(encoding="utf-8")))
    assert named == NAMES | OF_A_RUN
