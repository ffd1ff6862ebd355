"""Opens pages from disk in a headless Chromium, and lets none of them do what it must not.

Whatever a page says on the console, throws, asks the network for, or tries against its own
content security policy fails the test that opened it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from bench.browser import HOW_TO_GET, chromium, find_chromium
from pytest_drainwatch.pages.assemble import assemble
from pytest_drainwatch.render.page.data import Page
from tests.page.browser.watched import WIDE, Watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab


USUAL = {"color_scheme": "light", "reduced_motion": "no-preference"}


class Open(Protocol):
    """Opens a page at a route such as ``#/trial/x``; further arguments are the browser's:
    viewport, color_scheme, reduced_motion, has_touch, …
    """

    def __call__(self, page: Page | str, route: str = "", **context: Any) -> Tab: ...


# For a package, not a session: while a browser is open no other test may run an event loop.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    # Where a cluster was asked for, as CI does, a missing browser is an error.
    if find_chromium() is None and not os.environ.get("DW_CLUSTER"):
        pytest.skip(f"chromium is not installed: {HOW_TO_GET}")
    with chromium() as found:
        yield found


@pytest.fixture(scope="package")
def common(browser: Browser) -> Iterator[Watched]:
    """The tab of all tests that ask for nothing special: a new one takes longer than a test."""
    with Watched(browser) as tab:
        yield tab


@pytest.fixture
def open_page(browser: Browser, common: Watched, tmp_path: Path) -> Iterator[Open]:
    """Opens pages, one after the other; each must be without troubles in the end."""
    troubles: list[str] = []
    with ExitStack() as own:
        seen: list[Watched] = []

        def settled() -> None:
            if seen:
                seen[-1].settle()
                troubles.extend(seen[-1].troubles)

        def open_it(page: Page | str, route: str = "", **asked: Any) -> Tab:
            settled()
            file = tmp_path / f"page-{len(seen)}.html"
            text = page if isinstance(page, str) else assemble(page)
            file.write_text(text, encoding="utf-8")
            media = {name: asked.pop(name, usual) for name, usual in USUAL.items()}
            viewport = asked.pop("viewport", WIDE)
            shown = own.enter_context(Watched(browser, **asked)) if asked else common
            shown.tab.emulate_media(**media)
            shown.tab.set_viewport_size(viewport)
            shown.open(file, route)
            seen.append(shown)
            return shown.tab

        yield open_it
        settled()
    assert troubles == []
