"""The page about existing clusters lists the rights and the checks of today."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.conftest import DOCS, Load

PACKAGE = Path(__file__).resolve().parents[2] / "pytest_drainwatch"


def test_the_page_is_generated_from_todays_rights(load: Load) -> None:
    written = (DOCS / "existing.md").read_text()
    assert written == load("make_existing").page(), "docs/existing.md is out of date: make docs"


def test_every_check_that_it_names_is_made() -> None:
    page = (DOCS / "existing.md").read_text().partition("## Rights")[0]
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", page)) - {"evacuate-node"}
    code = "".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    assert named >= {"rights-granted", "image-pulled", "service-reachable"}
    assert {name for name in named if f'"{name}"' not in code} == set()
