"""The map of the house has every room, and every file in the one page that lists them."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.conftest import DOCS, Load

ROOT = DOCS.parent
PACKAGE = ROOT / "pytest_drainwatch"
MAP = (
    (ROOT / "CONTRIBUTING.md")
    .read_text(encoding="utf-8")
    .partition("## The map of the house")[2]
    .partition("\n## ")[0]
)


@pytest.fixture(scope="module")
def generator(load: Load) -> ModuleType:
    return load("make_house")


def named() -> set[str]:
    """What the first column of the map names."""
    rows = re.findall(r"^\| (`.*?) \|", MAP, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([\w./]+)`", row)}


def test_the_page_is_generated_from_todays_docstrings(generator: ModuleType) -> None:
    written = (DOCS / "house.md").read_text(encoding="utf-8")
    assert written == generator.page(), "docs/house.md is out of date: make docs"


def test_a_file_without_a_reason_is_refused(generator: ModuleType, tmp_path: Path) -> None:
    nameless = tmp_path / "nameless.py"
    nameless.write_text("x = 1\n")
    with pytest.raises(ValueError, match=r"nameless\.py: no docstring"):
        generator.reason(nameless)


def test_the_map_has_every_room_and_every_file_outside_of_rooms(generator: ModuleType) -> None:
    rooms = {f"{room.relative_to(PACKAGE)}/" for room in generator.rooms() if room != PACKAGE}
    files = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py", "__main__.py"}
    missing = (rooms | files) - named()
    assert not missing, f"not in the map of CONTRIBUTING.md: {sorted(missing)}"


def test_the_map_names_only_what_there_is() -> None:
    gone = {n for n in named() if not (PACKAGE / n).exists() and not (ROOT / n).exists()}
    assert not gone, f"in the map of CONTRIBUTING.md and not there: {sorted(gone)}"
