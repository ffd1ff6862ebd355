"""Light and dark: told apart, and both readable."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from tests.page.browser import made
from tests.page.browser.conftest import Open

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

TEXT, SHAPE = 4.5, 3.0  # WCAG 2.2 AA: contrast of text, and of what carries a meaning
TONES = ("good", "warn", "bad", "neutral", "unknown")
_COLOUR = """
(name) => {
  const probe = document.body.appendChild(document.createElement("span"));
  probe.style.color = `var(--${name})`;
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.fillStyle = getComputedStyle(probe).color;
  canvas.fillRect(0, 0, 1, 1);
  probe.remove();
  return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
}
"""


def luminance(tab: Tab, name: str) -> float:
    """Relative luminance of a variable's colour, 0 black to 1 white."""
    rgb = [each / 255 for each in cast(list[int], tab.evaluate(_COLOUR, name))]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(tab: Tab, one: str, other: str) -> float:
    low, high = sorted(luminance(tab, name) for name in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_follows_the_system_and_has_contrast(theme: str, open_page: Open) -> None:
    tab = open_page(made.page(), color_scheme=theme)
    assert (luminance(tab, "bg") > 0.5) == (theme == "light")
    for text in ("fg", "muted", "accent"):
        assert contrast(tab, text, "bg") >= TEXT, text
        assert contrast(tab, text, "panel") >= TEXT, text
    for tone in TONES:
        assert contrast(tab, tone, "bg") >= SHAPE, tone


def test_switched_by_hand_against_the_system_and_kept_between_views(open_page: Open) -> None:
    tab = open_page(made.page(), color_scheme="light")
    tab.get_by_role("button", name="Use dark colours").click()
    assert luminance(tab, "bg") < 0.5
    tab.locator("[data-trial]").first.click()
    tab.locator(".trial").wait_for()
    assert luminance(tab, "bg") < 0.5
    tab.get_by_role("button", name="Use light colours").click()
    assert luminance(tab, "bg") > 0.5


def test_switched_by_a_key(open_page: Open) -> None:
    tab = open_page(made.page(), "#/trial/drain-00%2Fr00", color_scheme="dark")
    assert luminance(tab, "bg") < 0.5
    tab.keyboard.press("d")
    assert luminance(tab, "bg") > 0.5


def test_paper_is_white(open_page: Open) -> None:
    tab = open_page(made.page(), "#/trial/drain-00%2Fr00", color_scheme="dark")
    tab.emulate_media(media="print")
    assert luminance(tab, "bg") > 0.5
    assert not tab.locator(".toolbar").is_visible()
    tab.emulate_media(media="screen")
