"""The page about the tables lists the columns that are written."""

from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_generated_from_todays_columns() -> None:
    spec = importlib.util.spec_from_file_location("make_csv", DOCS / "make_csv.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    written = (DOCS / "csv.md").read_text()
    assert written == generator.page(), "docs/csv.md is out of date: make docs"
