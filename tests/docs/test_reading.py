"""The page about the page names its keys and its lanes, and shows pictures that are made."""

from __future__ import annotations

import re

from docs.make_screenshots import SHOTS
from pytest_drainwatch.render.page import windows
from tests.docs.conftest import DOCS

PAGE = (DOCS / "reading-the-page.md").read_text(encoding="utf-8")
ASSETS = DOCS.parent / "pytest_drainwatch" / "pages" / "assets"


def test_each_key_is_told() -> None:
    keys = re.search(r"const KEYS = \[(.*?)\];", (ASSETS / "main.js").read_text("utf-8"), re.S)
    assert keys
    for shown in re.findall(r'\["([^"]+)"', keys[1]):
        for key in shown.split(" "):
            assert re.search(rf"`{re.escape(key)}`|\b{re.escape(key)}\b", PAGE), key


def test_each_picture_is_one_that_is_made() -> None:
    shown = re.findall(r"\]\(screenshots/([\w-]+)\.png\)", PAGE)
    assert len(shown) == 5
    assert set(shown) <= {shot.name for shot in SHOTS}


def test_each_window_is_told_by_the_pages_word_and_by_the_reports() -> None:
    for window in (windows.ADVERTISED, windows.READY, windows.FALLBACK, windows.DEAD):
        assert f"*{window.name}*" in PAGE
        assert f"`{window.term}`" in PAGE
