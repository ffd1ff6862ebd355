"""The page about the tables lists the columns that are written."""

from __future__ import annotations

from tests.docs.conftest import DOCS, Load


def test_the_page_is_generated_from_todays_columns(load: Load) -> None:
    written = (DOCS / "csv.md").read_text()
    assert written == load("make_csv").page(), "docs/csv.md is out of date: make docs"
