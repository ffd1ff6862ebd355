"""The watch over pages sees what pages must not do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.page.browser.watched import Watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser

POLICY = (
    "<meta http-equiv='Content-Security-Policy' "
    "content=\"default-src 'none'; script-src 'unsafe-inline'\">"
)


@pytest.mark.parametrize(
    ("html", "seen"),
    [
        ("<p>well behaved</p>", ""),
        ("<script>console.info('chatter')</script>", "console info: chatter"),
        ("<script>throw new Error('broken')</script>", "thrown: broken"),
        ("<img src='http://192.0.2.1/spy.png'>", "asked for http://192.0.2.1/spy.png"),
        (f"{POLICY}<img src='http://192.0.2.1/spy.png'>", "violates img-src: http://192.0.2.1"),
        (f"{POLICY}<p style='color: red'>styled</p>", "violates style-src-attr: inline"),
    ],
)
def test_what_a_page_does_is_seen(html: str, seen: str, browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(f"<!doctype html><meta charset='utf-8'>{html}")
    with Watched(browser) as watched:
        watched.open(file)
        watched.settle()
    troubles = watched.troubles
    if seen:
        assert any(seen in trouble for trouble in troubles), troubles
    else:
        assert troubles == []
