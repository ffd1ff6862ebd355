"""The view of a trial: its words, and a picture that can be moved and asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from pytest_drainwatch.render.page.data import Page
from tests.page.browser import made
from tests.page.browser.conftest import Open
from tests.page.browser.made import MS, S
from tests.page.browser.watched import PHONE

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

DRAIN = "#/trial/drain-00%2Fr00"


@pytest.fixture
def tab(open_page: Open) -> Tab:
    """A drain trial, nothing moving by itself."""
    return ready(open_page(made.page(), DRAIN, reduced_motion="reduce"))


def ready(tab: Tab) -> Tab:
    tab.locator(".lanes[data-shown]").wait_for()
    return tab


def span(tab: Tab) -> tuple[float, float]:
    """What stretch of time is shown, in microseconds, once what was asked for is drawn."""
    tab.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    lo, hi = tab.locator(".lanes").evaluate("(lanes) => lanes.dataset.shown").split()
    return float(lo), float(hi)


def width(tab: Tab) -> float:
    lo, hi = span(tab)
    return hi - lo


def pressed(tab: Tab, *keys: str) -> tuple[float, float]:
    for key in keys:
        tab.keyboard.press(key)
    return span(tab)


def evidence(tab: Tab) -> str:
    return tab.get_by_role("dialog", name="Evidence").inner_text()


def middle(tab: Tab, selector: str) -> tuple[float, float]:
    box = tab.locator(selector).first.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_says_first_what_happened_and_what_hurt(tab: Tab) -> None:
    text = tab.locator("main").inner_text()
    assert text.index("A pod was deleted.") < text.index("Time since the trigger")
    assert text.index("new connections were refused for 1.06 s") < text.index("Time since")
    assert "test passed" in tab.locator("h1").inner_text()


def test_show_me_goes_to_the_window_that_hurt(tab: Tab) -> None:
    tab.get_by_role("button", name="Show me").click()
    lo, hi = span(tab)
    assert -2 * S < lo < 60 * MS < 1_120 * MS < hi < 4 * S


def test_show_me_brings_it_into_a_low_window_and_points_at_nothing(open_page: Open) -> None:
    low = {"width": 1280, "height": 500}
    tab = ready(open_page(made.page(), DRAIN, reduced_motion="reduce", viewport=low))
    tab.get_by_role("button", name="Show me").click()
    span(tab)
    box = tab.locator(".target[data-key='new:failing']").bounding_box()
    assert box is not None
    assert 0 < box["y"] < low["height"] - box["height"]
    tab.wait_for_timeout(150)  # what lies under the resting pointer now has been told of it
    assert not tab.locator(".tip").is_visible()


def test_nobody_hurt_no_box(open_page: Open) -> None:
    page = made.page()
    page["trials"][0]["hurt"] = None
    tab = ready(open_page(page, DRAIN))
    assert tab.locator(".hurt").count() == 0


def test_warnings_stand_above_everything(open_page: Open) -> None:
    page = made.page()
    page["trials"][0]["marks"] = ["degraded: the machine stalled for 300 ms"]
    text = ready(open_page(page, DRAIN)).locator("main").inner_text()
    assert text.index("the machine stalled for 300 ms") < text.index("A pod was deleted.")


def test_keys_zoom_pan_and_fit(tab: Tab) -> None:
    fitted = span(tab)
    assert fitted == made.SPAN
    lo, hi = pressed(tab, "+", "+")
    assert hi - lo < 0.5 * (fitted[1] - fitted[0])
    assert (lo + hi) / 2 == pytest.approx((fitted[0] + fitted[1]) / 2, abs=2)
    moved = pressed(tab, "ArrowRight")
    assert moved[0] > lo
    assert moved[1] - moved[0] == pytest.approx(hi - lo, abs=2)
    assert pressed(tab, "ArrowLeft") == pytest.approx((lo, hi), abs=2)
    assert pressed(tab, "-", "-", "-")[0] < lo
    assert pressed(tab, "0") == fitted


def test_wheel_over_the_axis_zooms_where_the_pointer_is(tab: Tab) -> None:
    x, y = middle(tab, "[data-lane=axis] .plot")
    before = span(tab)
    centre = (before[0] + before[1]) / 2
    tab.mouse.move(x, y)
    tab.mouse.wheel(0, -300)
    after = span(tab)
    assert after[1] - after[0] < 0.8 * (before[1] - before[0])
    assert (after[0] + after[1]) / 2 == pytest.approx(centre, rel=0.01)
    tab.mouse.wheel(0, 600)
    assert width(tab) > after[1] - after[0]


def test_wheel_with_shift_pans(tab: Tab) -> None:
    pressed(tab, "+", "+")
    before = span(tab)
    tab.mouse.move(*middle(tab, "[data-lane=tcp] [data-part=flows]"))
    tab.mouse.wheel(200, 0)
    after = span(tab)
    assert after[0] > before[0]
    assert after[1] - after[0] == pytest.approx(before[1] - before[0], abs=2)


def test_a_double_click_zooms_in_where_it_is(tab: Tab) -> None:
    before = span(tab)
    tab.mouse.dblclick(*middle(tab, "[data-lane=axis] .plot"))
    after = span(tab)
    assert after[1] - after[0] == pytest.approx((before[1] - before[0]) / 3, rel=0.01)
    assert sum(after) == pytest.approx(sum(before), rel=0.02)


def test_time_never_leaves_what_was_recorded(tab: Tab) -> None:
    for move in ("pan(-1e9)", "pan(1e9)", "zoom(1e-9)", "zoom(1e9)"):
        tab.evaluate(f"dw.trial.picture().view.{move}")
        lo, hi = span(tab)
        assert -13 * S < lo < hi < 32 * S
    assert hi - lo >= 20, "closer than this nothing is known"


def test_dragging_moves_time_and_opens_nothing(tab: Tab) -> None:
    before = pressed(tab, "+", "+")
    x, y = middle(tab, "[data-lane=tcp] [data-part=flows]")
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x - 80, y, steps=4)
    tab.mouse.up()
    assert span(tab)[0] > before[0]
    assert tab.get_by_role("dialog", name="Evidence").count() == 0


@pytest.mark.parametrize(
    ("button", "shows"),
    [
        ("The first second after the trigger", (0, S)),
        ("From the trigger to the end", (0, 30 * S)),
        ("The whole recording", (-12 * S, 31 * S)),
    ],
)
def test_buttons_show_what_they_say(button: str, shows: tuple[int, int], tab: Tab) -> None:
    pressed(tab, "+", "+", "+", "ArrowRight")
    tab.get_by_role("button", name=button).click()
    lo, hi = span(tab)
    assert lo <= shows[0]
    assert hi >= shows[1]
    assert hi - lo < 1.4 * (shows[1] - shows[0])


def test_evidence_behind_an_event_by_keyboard(tab: Tab) -> None:
    tab.locator(".target[data-key=sigterm_received]").focus()
    tab.keyboard.press("Enter")
    text = evidence(tab)
    assert "detail of sigterm_received" in text
    assert "+46.430 ms" in text
    tab.keyboard.press("Escape")
    assert tab.get_by_role("dialog", name="Evidence").count() == 0
    assert tab.evaluate("document.activeElement.dataset.key") == "sigterm_received"


def test_evidence_behind_a_window_by_mouse(tab: Tab) -> None:
    tab.locator(".target[data-key='new:failing']").click()
    text = evidence(tab)
    assert "54 of 512 failed" in text
    assert "from the first that failed to the last" in text


def test_pointing_tells_in_passing(tab: Tab) -> None:
    tab.locator(".target[data-key=trigger_issued]").hover()
    tip = tab.locator(".tip")
    assert "detail of trigger_issued" in tip.inner_text()
    tab.mouse.move(1, 1)
    assert not tip.is_visible()


def test_a_click_on_a_flow_tells_its_story(tab: Tab) -> None:
    box = tab.locator("[data-lane=udp] [data-part=flows]").bounding_box()
    assert box is not None
    tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    text = evidence(tab)
    assert "udp-000" in text
    assert "was answered by pod A, and then its story ended" in text
    assert "no answer" in text
    assert "pod B" in text


def test_flows_are_walked_with_arrows(tab: Tab) -> None:
    tab.locator("[data-lane=tcp] [data-part=flows]").focus()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    assert "tcp-000" in evidence(tab)


def test_flows_as_a_list_can_be_searched(tab: Tab) -> None:
    rows = tab.locator(".flow-row")
    assert rows.count() == 4
    tab.get_by_role("searchbox", name="Search flows").fill("udp-0002")
    assert rows.count() == 1
    assert "udp-0002" in rows.inner_text()
    tab.get_by_role("searchbox", name="Search flows").fill("no such flow")
    assert rows.count() == 0


def test_tables_say_what_the_picture_shows(tab: Tab) -> None:
    text = tab.locator(".events").inner_text()
    for said in ("the pod is deleted", "SIGTERM", "new connections fail: 54 of 512 failed"):
        assert said in text


def test_keys_are_told_on_request(tab: Tab) -> None:
    tab.keyboard.press("?")
    dialog = tab.get_by_role("dialog", name="Keys")
    assert "zoom in, zoom out" in dialog.inner_text()
    tab.keyboard.press("Escape")
    assert not dialog.is_visible()


def test_keys_typed_into_a_field_are_text(tab: Tab) -> None:
    before = span(tab)
    tab.get_by_role("searchbox", name="Search flows").focus()
    assert pressed(tab, "+", "0", "n", "?") == before
    assert tab.get_by_role("searchbox", name="Search flows").input_value() == "+0n?"
    assert tab.url.endswith(DRAIN)


def test_escape_empties_a_field(tab: Tab) -> None:
    field = tab.get_by_role("searchbox", name="Search flows")
    field.fill("udp")
    field.press("Escape")
    assert field.input_value() == ""


def test_previous_and_next_trial(tab: Tab) -> None:
    tab.keyboard.press("n")
    tab.locator("[data-trial-id='drain-00/r01']").wait_for()
    tab.keyboard.press("n")
    tab.locator("[data-trial-id='exit-now-01/r00']").wait_for()
    tab.keyboard.press("p")
    tab.locator("[data-trial-id='drain-00/r01']").wait_for()
    tab.go_back()
    tab.locator("[data-trial-id='exit-now-01/r00']").wait_for()
    tab.keyboard.press("r")
    tab.locator(".run").wait_for()


def test_a_page_of_one_trial_opens_it(open_page: Open) -> None:
    page = made.page(scenarios=1, repeats=1)
    page["run"] = None
    tab = ready(open_page(page))
    assert "A pod was deleted." in tab.locator("main").inner_text()


def test_trials_without_a_run_are_listed(open_page: Open) -> None:
    page = made.page()
    page["run"] = None
    tab = open_page(page)
    tab.get_by_role("link", name="exit-now-01/r01").click()
    tab.locator("[data-trial-id='exit-now-01/r01']").wait_for()


def test_the_title_and_the_focus_follow_the_view(open_page: Open) -> None:
    tab = open_page(made.page())
    assert tab.title() == "made by hand"
    tab.locator("[data-trial='drain-00/r01']").press("Enter")
    tab.locator(".trial").wait_for()
    assert "drain-00/r01" in tab.title()
    assert tab.evaluate("document.activeElement.tagName") == "H1"


@pytest.mark.parametrize("route", ["#/trial/no-such", "#/trial/%E0%A4%A", "#/trial/drain-00"])
def test_a_trial_that_is_not_there_is_said_to_be(route: str, open_page: Open) -> None:
    tab = open_page(made.page(), route)
    assert "No such trial" in tab.locator("main").inner_text()


def test_what_is_not_known_is_said(open_page: Open) -> None:
    page = made.page()
    band = page["trials"][0]["lanes"][-1]["bands"][0]
    band["closes"] = None
    tab = ready(open_page(page, DRAIN))
    tab.locator(".target[data-key='new:failing']").click()
    assert "not known" in evidence(tab)


def test_a_trial_of_nothing_but_words(open_page: Open) -> None:
    page = made.page(scenarios=1, repeats=1)
    only = page["trials"][0]
    only["flows"], only["lanes"], only["attempts"], only["responders"] = [], [], [], []
    only["hurt"], only["figures"] = None, []
    tab = ready(open_page(page, DRAIN))
    assert "A pod was deleted." in tab.locator("main").inner_text()


def test_nothing_is_wider_than_a_phone(open_page: Open) -> None:
    tab = ready(open_page(made.page(), DRAIN, viewport=PHONE, has_touch=True))
    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    tab.locator(".target[data-key='new:failing']").tap()
    assert "54 of 512 failed" in evidence(tab)
    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_two_fingers_zoom(open_page: Open) -> None:
    tab = ready(open_page(made.page(), DRAIN, reduced_motion="reduce"))
    before = width(tab)
    tab.locator("[data-lane=tcp] [data-part=flows]").evaluate(
        """(plot) => {
          const box = plot.getBoundingClientRect();
          const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
          const send = (type, pointerId, dx) => plot.dispatchEvent(new PointerEvent(type, {
            pointerId, clientX: x + dx, clientY: y, bubbles: true, pointerType: "touch" }));
          send("pointerdown", 7, -20);
          send("pointerdown", 8, 20);
          send("pointermove", 7, -100);
          send("pointermove", 8, 100);
          send("pointerup", 7, -100);
          send("pointerup", 8, 100);
        }"""
    )
    assert width(tab) < 0.5 * before


def test_the_picture_is_drawn_and_marks_what_hurt(open_page: Open) -> None:
    """Ink of the bad tone stands in the lane of new connections, and only if some failed."""
    hurt, unhurt = made.page(), made.page()
    for attempts in unhurt["trials"][0]["attempts"]:
        attempts["runs"] = [(-1 * S, 30 * S, 0, 512)]
    assert _reddish(_ready_lane(open_page, hurt)) > 50
    assert _reddish(_ready_lane(open_page, unhurt)) == 0


def _ready_lane(open_page: Open, page: Page) -> Tab:
    tab = ready(open_page(page, DRAIN, color_scheme="light"))
    tab.locator("[data-part=attempts]").scroll_into_view_if_needed()
    span(tab)
    return tab


def _reddish(tab: Tab) -> int:
    """Pixels of the new connections' canvas that are much more red than green or blue."""
    return cast(
        int,
        tab.locator("[data-part=attempts] canvas").evaluate(
            """(canvas) => {
              const ink = canvas.getContext("2d");
              const { data } = ink.getImageData(0, 0, canvas.width, canvas.height);
              let found = 0;
              for (let n = 0; n < data.length; n += 4) {
                if (data[n + 3] > 128 && data[n] > data[n + 1] + 60 && data[n] > data[n + 2] + 60) {
                  found += 1;
                }
              }
              return found;
            }"""
        ),
    )
