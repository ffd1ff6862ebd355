"""What must not happen while nobody points at anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.page.browser import made
from tests.page.browser.conftest import Open
from tests.page.browser.test_trial_view import DRAIN, middle, ready

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

LOW = {"width": 1400, "height": 420}


def drawn(tab: Tab) -> None:
    tab.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_a_page_that_scrolls_beneath_a_pointer_tells_nothing(open_page: Open) -> None:
    tab = ready(open_page(made.page(), DRAIN, viewport=LOW, reduced_motion="reduce"))
    tab.locator(".target").first.scroll_into_view_if_needed()
    x, y = middle(tab, ".target")
    tab.evaluate("scrollTo(0, 0)")
    tab.mouse.move(x, 200)
    drawn(tab)
    before = tab.locator(".target").first.bounding_box()
    assert before is not None
    tab.evaluate("(by) => scrollBy(0, by)", before["y"] + before["height"] / 2 - 200)
    drawn(tab)
    # Browsers send this by themselves after a while.
    tab.locator(".target").first.dispatch_event(
        "pointerenter", {"clientX": x, "clientY": 200, "pointerType": "mouse"}
    )
    assert tab.locator(".tip:visible").count() == 0
    tab.mouse.move(x + 1, 400)
    x, y = middle(tab, ".target")
    tab.mouse.move(x, y)
    assert tab.locator(".tip:visible").count() == 1
