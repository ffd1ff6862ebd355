"""Everything that a mouse reaches, the Tab key reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.page.browser import made
from tests.page.browser.conftest import Open

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

MOST_STOPS = 120
# Radio buttons and things with tabindex -1 are reached by arrows, from a neighbour.
_REACHABLE = """
() => {
  const found = document.querySelectorAll(
    "a[href], button:not(:disabled), input, select, summary, [tabindex='0']");
  const visible = [...found].filter((one) => one.tabIndex >= 0 && one.checkVisibility());
  visible.forEach((one, index) => { one.dataset.stop = index; });
  return visible.length;
}
"""
_SHOWN = """
(() => {
  const style = getComputedStyle(document.activeElement);
  return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
})()
"""
_HERE = "document.activeElement.dataset.stop ?? null"


@pytest.mark.parametrize("route", ["#/", "#/trial/drain-00%2Fr00"])
def test_tab_reaches_everything_in_order_and_shows_where(route: str, open_page: Open) -> None:
    tab = open_page(made.page(), route)
    tab.locator("main h1").wait_for()
    walks_through(tab)


def walks_through(tab: Tab) -> None:
    """Fails unless Tab goes through all that can be used, in its order."""
    stops = tab.evaluate(_REACHABLE)
    assert 5 < stops < MOST_STOPS
    reached = _walk(tab)
    assert reached == [str(n) for n in range(stops)]


def _walk(tab: Tab) -> list[str]:
    """The stops in the order of Tab, until it leaves the page; each must show its focus."""
    reached: list[str] = []
    for _ in range(MOST_STOPS):
        tab.keyboard.press("Tab")
        stop = tab.evaluate(_HERE)
        if stop is None or stop in reached:
            break
        reached.append(stop)
        assert tab.evaluate(_SHOWN), tab.evaluate("document.activeElement.outerHTML")
    return reached
