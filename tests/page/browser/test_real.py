"""The pages of real trials, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_drainwatch.pages.gather import Asked, page_of
from pytest_drainwatch.render.page.data import Page
from tests.page.browser.conftest import Open
from tests.page.browser.test_trial_view import ready
from tests.page.browser.watched import PHONE

SAMPLE = Path(__file__).parents[3] / "results" / "sample" / "kubernetes-1.37"
ARMS = ("A-exit-now-delete", "B-drain-delete", "C-ignore-delete", "D-drain-evict", "E-drain-scale")


@pytest.fixture(scope="module")
def sample() -> Page:
    return page_of([SAMPLE], Asked())


def test_the_run_of_the_sample(sample: Page, open_page: Open) -> None:
    tab = open_page(sample)
    assert tab.locator("[data-trial]").count() == 25
    rows = tab.locator(".overview tbody tr").all_inner_texts()
    assert [row.split()[0] for row in rows] == list(ARMS)
    assert "50 cut off: reset" in rows[0]
    assert "50 closed cleanly" in rows[1]
    for summary in tab.locator("summary").all():
        summary.click()
    assert tab.locator("article .measure").count() > 5 * 10


@pytest.mark.parametrize("arm", ARMS)
def test_every_arm_says_in_the_browser_what_it_says_in_the_data(
    arm: str, sample: Page, open_page: Open
) -> None:
    tab = ready(open_page(sample, f"#/trial/{arm}%2Fr00"))
    text = tab.locator("main").inner_text()
    told = next(one for one in sample["trials"] if one["id"] == f"{arm}/r00")
    for said in told["says"]:
        assert said in text
    assert told["hurt"] is not None
    assert told["hurt"]["text"] in text
    assert tab.locator(".flow-row").count() == len(told["flows"])
    tab.get_by_role("button", name="Show me").click()
    assert tab.locator(".target:focus").get_attribute("data-key") == told["hurt"]["band"]


def test_a_trial_of_the_sample_on_a_phone(sample: Page, open_page: Open) -> None:
    tab = ready(open_page(sample, "#/trial/A-exit-now-delete%2Fr00", viewport=PHONE))
    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
