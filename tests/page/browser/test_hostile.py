"""Whatever a name or a text holds is text."""

from __future__ import annotations

from typing import Any, cast

from pytest_drainwatch.render.page.data import Page
from tests.page.browser import made
from tests.page.browser.conftest import Open
from tests.page.browser.made import run_of

EVIL = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>\u2028'\"&lt;"
# What the script looks up; all else is somebody's text.
CLOSED = {"proto", "outcome", "mechanism", "tone", "state", "lane", "key", "role", "results"}


def hostile(value: Any, name: str = "", lane: bool = False) -> Any:
    """The same page with every text made evil, alike ones alike, so that references still hold."""
    if isinstance(value, dict):
        is_lane = "marks" in value and "bands" in value
        return {key: hostile(one, key, is_lane) for key, one in value.items()}
    if name in CLOSED or (lane and name == "id"):
        return value
    if isinstance(value, list | tuple):
        return [hostile(one, name) for one in value]
    return value + EVIL if isinstance(value, str) else value


def page() -> Page:
    plain = made.page(repeats=5)
    run = run_of(plain)
    run["comparison"], run["missing"] = made.compared(), made.missing()
    run["complete"], run["incomplete_because"] = False, ["a reason"]
    run["not_pooled"] = ["a difference"]
    run["scenarios"][0]["disagreements"] = ["a disagreement"]
    first = plain["trials"][0]
    first["marks"], first["notes"], first["left_out"] = ["a mark"], ["a note"], ["rows"]
    return cast(Page, hostile(plain))


def test_names_are_text_in_the_view_of_a_run(open_page: Open) -> None:
    tab = open_page(page())
    for summary in tab.locator("summary").all():
        summary.click()
    assert tab.evaluate("window.hacked") is None
    assert tab.locator("img").count() == 0
    for text in ("drain-00", "a reason", "a difference", "a disagreement", "no flow could be"):
        assert any(EVIL in each for each in tab.get_by_text(text).all_text_contents()), text


def test_names_are_text_in_the_view_of_a_trial(open_page: Open) -> None:
    evil = page()
    tab = open_page(evil)
    tab.locator("[data-trial]").first.click()
    tab.locator(".trial").wait_for()
    for summary in tab.locator("summary").all():
        if summary.is_visible():
            summary.click()
    assert tab.evaluate("window.hacked") is None
    assert tab.locator("img").count() == 0
    text = tab.locator("main").text_content() or ""
    for said in ("A pod was deleted.", "a mark", "a note"):
        assert said + EVIL in text, said


def test_without_scripts_texts_are_text_too(open_page: Open) -> None:
    tab = open_page(page(), java_script_enabled=False)
    assert tab.locator("noscript img, noscript script").count() == 0
    assert f"A pod was deleted.{EVIL}" in tab.locator("noscript").first.inner_text()
