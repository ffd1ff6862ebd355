"""The simulator's page: its model is Python's, and whoever uses it can."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.simulation.command import command
from pytest_drainwatch.core.simulation.document import document, dumped, inputs_as_json
from pytest_drainwatch.core.simulation.inputs import Inputs
from pytest_drainwatch.core.simulation.presets import PRESETS
from pytest_drainwatch.core.simulation.run import simulate
from pytest_drainwatch.core.simulation.says import says
from pytest_drainwatch.core.simulation.steps import steps
from pytest_drainwatch.pages.simulation import simulation_page
from tests.core.simulation import vectors
from tests.page.browser.conftest import Open
from tests.page.browser.test_keyboard import walks_through
from tests.page.browser.test_themes import SHAPE, TONES, contrast
from tests.page.browser.watched import PHONE

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

# In JavaScript as it is in the page, text so that not one digit can differ.
_COMPUTED = """
(all) => all.map((inputs) => {
  dw.simulation.check(inputs);
  return JSON.stringify(dw.simulation.document(dw.simulation.simulate(inputs)));
})
"""
_COMMANDS = "(all) => all.map((inputs) => dw.simulation.command(inputs))"
PUZZLE = Inputs(load_balancer_ns=30 * NS_PER_S)


@pytest.fixture
def tab(open_page: Open) -> Tab:
    return open_page(simulation_page(Inputs()))


def computed(tab: Tab, found: list[dict[str, Any]]) -> list[Any]:
    return [json.loads(text) for text in cast(list[str], tab.evaluate(_COMPUTED, found))]


def exported(tab: Tab) -> str:
    return cast(str, tab.evaluate("dw.simulation.exported()"))


def headline(tab: Tab) -> str:
    return tab.locator(".verdict h2").inner_text()


def choose(tab: Tab, label: str) -> None:
    tab.get_by_role("button", name=label, exact=True).click()


def marks(tab: Tab, outcome: str) -> int:
    return tab.locator(f'.mark[data-outcome="{outcome}"]').count()


def test_the_script_computes_every_vector_as_python_does(tab: Tab) -> None:
    kept = vectors.read()
    for found, wanted in zip(computed(tab, [one["inputs"] for one in kept]), kept, strict=True):
        assert found == wanted


def test_the_script_computes_what_is_drawn_by_chance_as_python_does(tab: Tab) -> None:
    chance = random.Random(11)
    drawn = [vectors.drawn(chance) for _ in range(120)]
    # Times near the longest that there are, where numbers in JavaScript would first be inexact.
    day = 24 * 3600 * NS_PER_S
    drawn += [
        Inputs(nodes=1, longest_ns=4 * 3600 * NS_PER_S + 1, propagation_ns=NS_PER_S // 3),
        Inputs(nodes=100, pre_stop_ns=day, drain_ns=day - 1, slow_ns=day, longest_ns=NS_PER_S),
        Inputs(keepalive=False, kubelet_ns=day, handler_ns=day, kill_ns=day, grace_period_s=86400),
    ]
    found = computed(tab, [inputs_as_json(inputs) for inputs in drawn])
    for inputs, told in zip(drawn, found, strict=True):
        assert told == document(simulate(inputs)), inputs


def test_another_result_would_be_seen(tab: Tab) -> None:
    (found,) = computed(tab, [inputs_as_json(PUZZLE)])
    assert found != document(simulate(Inputs()))


def test_the_command_line_is_pythons(tab: Tab) -> None:
    chance = random.Random(13)
    drawn = [vectors.drawn(chance) for _ in range(50)]
    found = tab.evaluate(_COMMANDS, [inputs_as_json(inputs) for inputs in drawn])
    assert found == [command(inputs) for inputs in drawn]


def test_each_preset_is_shown_exported_and_said(tab: Tab) -> None:
    for preset in PRESETS:
        choose(tab, preset.label)
        run = simulate(preset.inputs)
        first, *reasons = says(run)
        assert headline(tab).endswith(first)
        assert tab.locator(".verdict li").all_inner_texts() == reasons
        assert exported(tab) == dumped(run)
        assert tab.locator(".command code").inner_text() == command(preset.inputs)
        assert tab.locator(".presets [aria-pressed=true]").all_inner_texts() == [preset.label]
        assert tab.locator(".preset-about").inner_text() == preset.about
        for outcome, count in run.totals.items():
            assert marks(tab, outcome) == count
        assert tab.locator(".over .sigkill").count() == 1
        due = tab.locator(".over .sigkill.due").count() == 1
        assert due == (run.life.ending != "sigkill")


def test_no_request_is_no_success(open_page: Open) -> None:
    """Drawn without a failure, and all the same not as one where all went well."""
    none = Inputs(keepalive=False, propagation_ns=0, longest_ns=1_000_000)
    tab = open_page(simulation_page(none))
    assert headline(tab).endswith(says(simulate(none))[0])
    assert tab.locator(".verdict.tone-neutral").count() == 1
    tab = open_page(simulation_page(Inputs()))
    assert tab.locator(".verdict.tone-good").count() == 1


def test_inputs_given_are_set(open_page: Open) -> None:
    tab = open_page(simulation_page(PUZZLE))
    assert exported(tab) == dumped(simulate(PUZZLE))
    assert tab.get_by_label("Load balancer stops after", exact=True).input_value() == "30"


def test_a_field_and_its_slider_say_the_same_and_reset_takes_all_back(tab: Tab) -> None:
    field = tab.get_by_label("preStop hook", exact=True)
    slider = tab.get_by_label("preStop hook, slider")
    field.fill("0")
    assert slider.input_value() == "0"
    assert "fail" in headline(tab)
    slider.fill("5")
    assert field.input_value() == "5"
    assert exported(tab) == dumped(simulate(Inputs(pre_stop_ns=5 * NS_PER_S)))
    field.fill("2.123456789")
    assert exported(tab) == dumped(simulate(Inputs(pre_stop_ns=2_123_456_789)))
    tab.get_by_label("On SIGTERM the app").select_option("ignore")
    tab.get_by_label("Drain closes idle").uncheck()
    tab.get_by_label("Load balancer stops after: there is one").check()
    asked = Inputs(
        pre_stop_ns=2_123_456_789, close_idle=False, load_balancer_ns=30 * NS_PER_S,
        behavior="ignore",  # type: ignore[arg-type]
    )  # fmt: skip
    assert exported(tab) == dumped(simulate(asked))
    assert tab.locator(".preset-about").inner_text() == "Inputs of your own."
    choose(tab, "Reset")
    assert exported(tab) == dumped(simulate(Inputs()))
    assert field.input_value() == "10"


@pytest.mark.parametrize("typed", ["", "-1", "1e3", "NaN", "86401", "ten", "0x10", "1.0000000001"])
def test_what_is_no_duration_is_refused_beside_the_field(tab: Tab, typed: str) -> None:
    before = exported(tab)
    field = tab.get_by_label("preStop hook", exact=True)
    field.fill(typed)
    assert field.get_attribute("aria-invalid") == "true"
    assert tab.locator("#in-pre_stop_ns-why").inner_text().startswith("Expected")
    assert headline(tab).startswith("Not simulated")
    assert tab.get_by_role("button", name="Export JSON").is_disabled()
    assert exported(tab) == before
    field.fill("10")
    assert field.get_attribute("aria-invalid") is None
    assert not headline(tab).startswith("Not simulated")
    assert tab.get_by_role("button", name="Export JSON").is_enabled()


def test_too_many_requests_are_refused_and_nothing_hangs(tab: Tab) -> None:
    tab.get_by_label("Slowest node stops after", exact=True).fill("86400")
    assert "expected 20000 at most" in headline(tab)
    tab.get_by_label("Slowest node stops after", exact=True).fill("8")
    assert headline(tab).endswith("All 46 requests are answered.")


def test_many_sources_and_requests_are_drawn_in_part_and_told_in_full(tab: Tab) -> None:
    tab.get_by_label("Nodes", exact=True).fill("100")
    tab.get_by_label("preStop hook", exact=True).fill("0")
    run = simulate(Inputs(nodes=100, pre_stop_ns=0))
    assert exported(tab) == dumped(run)
    assert "Not drawn, for want of room: 85 sources" in tab.locator("main").inner_text()
    foot = tab.locator(".numbers tfoot td").all_inner_texts()
    assert foot[:2] == [str(len(run.requests)), str(len(run.failed))]


def test_the_trace_goes_step_by_step_and_numbers_stay_those_of_the_whole_run(tab: Tab) -> None:
    choose(tab, "preStop 5 s")
    wanted = [step.text for step in steps(simulate(Inputs(pre_stop_ns=5 * NS_PER_S)))]
    shown = tab.locator(".steps-list li:not(.nothing) span:last-child")
    numbers = tab.locator(".numbers").inner_text()
    assert shown.all_inner_texts() == wanted
    choose(tab, "Start trace")
    assert shown.all_inner_texts() == wanted[:1]
    for n in range(2, len(wanted) + 1):
        choose(tab, "Next step")
        assert shown.all_inner_texts() == wanted[:n]
        assert tab.locator(".over .now").count() == (n < len(wanted))
        assert tab.locator(".numbers").inner_text() == numbers
    # At the end the button has nothing to do, and keeps the focus.
    tab.keyboard.press("Enter")
    assert shown.count() == len(wanted)
    assert tab.evaluate("document.activeElement.textContent") == "Next step"
    tab.get_by_label("Steps shown").fill("3")
    assert shown.all_inner_texts() == wanted[:3]
    assert exported(tab) == dumped(simulate(Inputs(pre_stop_ns=5 * NS_PER_S)))
    choose(tab, "Show all")
    assert shown.all_inner_texts() == wanted


def test_export_is_a_file_with_the_same_bytes(tab: Tab) -> None:
    choose(tab, "Load balancer: puzzle")
    with tab.expect_download() as waited:
        choose(tab, "Export JSON")
    assert waited.value.suggested_filename == "drainwatch-simulated.json"
    kept = Path(waited.value.path()).read_text("utf-8")
    assert kept == dumped(simulate(PUZZLE))
    assert json.loads(kept)["simulated"] is True


def test_the_timeline_shows_hook_listener_drain_routes_and_sigkill_as_a_red_line(
    open_page: Open,
) -> None:
    tab = open_page(simulation_page(Inputs(grace_period_s=20)))
    life = simulate(Inputs(grace_period_s=20)).life

    def edges(of: str) -> tuple[float, float]:
        box = tab.locator(of).first.bounding_box()
        assert box
        return box["x"], box["x"] + box["width"]

    # The scale, from the two lines whose instants are known.
    zero, term = edges(".over .deleted")[0], edges(".over .sigterm")[0]
    pixels = (term - zero) / (life.sigterm_ns - 0)

    def lies(of: str, begins_ns: int | None, ends_ns: int) -> bool:
        left, right = edges(of)
        begins = begins_ns is None or abs(left - zero - begins_ns * pixels) < 3
        return begins and abs(right - zero - ends_ns * pixels) < 3

    assert lies(".bar.hook", 0, life.sigterm_ns)
    assert lies(".bar.open", None, life.listener_closed_ns)
    assert lies(".bar.rest", life.sigterm_ns, life.exit_ns)
    assert tab.locator(".bar.rest").inner_text() == "drains"
    for route in simulate(Inputs(grace_period_s=20)).routes:
        lane = f'.lane:has(h3:text-is("{route.source}")) .bar.routes'
        assert lies(lane, None, route.until_ns)
    assert lies(".over .sigkill", life.kill_due_ns, life.kill_due_ns)
    colour = tab.locator(".over .sigkill").evaluate("(one) => getComputedStyle(one).borderLeft")
    assert colour == "3px solid rgb(224, 0, 0)"
    # With grace enough nothing is killed, and the line says so by being dotted.
    choose(tab, "Defaults")
    line = tab.locator(".over .sigkill").evaluate("(one) => getComputedStyle(one).borderLeft")
    assert line == "2px dotted rgb(224, 0, 0)"
    assert tab.locator(".axis .event.sigkill").inner_text() == "SIGKILL is due"


def test_a_source_that_routes_on_past_the_listeners_end_is_striped(tab: Tab) -> None:
    assert tab.locator(".bar.late").count() == 0
    choose(tab, "preStop 5 s")
    late = tab.locator(".lane:has(.bar.late) h3").all_inner_texts()
    assert late == ["node 3", "node 2"]


def test_a_failed_request_tells_its_story_to_pointer_and_focus(tab: Tab) -> None:
    choose(tab, "preStop 5 s")
    tip = tab.locator(".tip")
    assert not tip.is_visible()
    refused = tab.locator('.mark[data-outcome="refused"]')
    refused.first.hover()
    assert "node 3, begun at 5.333 s: refused at once: the listener was closed." in (
        tip.inner_text()
    )
    tab.mouse.move(0, 0)
    assert not tip.is_visible()
    # The lane's one stop is its first failure, and arrows go on from there.
    stop = tab.locator('.lane:has([data-outcome="refused"]) .mark[tabindex="0"]').first
    stop.focus()
    assert "at 5.333 s" in tip.inner_text()
    tab.keyboard.press("ArrowRight")
    assert "at 6.333 s" in tip.inner_text()
    assert "at 6.333 s" in (refused.nth(1).get_attribute("aria-label") or "")


def test_outcomes_differ_in_shape_and_not_only_in_colour(tab: Tab) -> None:
    shapes = tab.locator(".shapes li svg").evaluate_all("(all) => all.map((one) => one.innerHTML)")
    assert len(shapes) == len(set(shapes)) == 6


def test_the_outcome_is_spoken_once_it_rests(tab: Tab) -> None:
    status = tab.locator("main > [role=status]")
    slider = tab.get_by_label("preStop hook, slider")
    for seconds in range(9, -1, -1):
        slider.fill(str(seconds))
    status.get_by_text("17 of 36 requests fail. 17 refused").wait_for()
    assert slider.get_attribute("aria-valuetext") == "0 seconds"


def test_tab_reaches_everything_in_order(open_page: Open) -> None:
    walks_through(open_page(simulation_page(PUZZLE)))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_marks_and_the_mark_of_a_simulation_have_contrast(theme: str, open_page: Open) -> None:
    tab = open_page(simulation_page(PUZZLE), color_scheme=theme)
    for tone in TONES:
        assert contrast(tab, tone, "bg") >= SHAPE, tone
    assert tab.locator("header .simulated").inner_text().upper() == "SIMULATED"
    label = "Use dark colours" if theme == "light" else "Use light colours"
    tab.get_by_role("button", name=label).click()
    assert tab.evaluate("document.documentElement.dataset.theme") != theme


def test_a_telephone_shows_it_without_scrolling_aside(open_page: Open) -> None:
    tab = open_page(simulation_page(PUZZLE), viewport=PHONE)
    for preset in PRESETS:
        choose(tab, preset.label)
        assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        # The outcome stays in sight while the inputs, further down, are changed.
        tab.get_by_label("preStop hook", exact=True).scroll_into_view_if_needed()
        assert tab.locator(".verdict h2").evaluate("(one) => one.getBoundingClientRect().top") >= 0


def test_paper_shows_all_of_it_and_no_buttons(open_page: Open) -> None:
    tab = open_page(simulation_page(PUZZLE), color_scheme="dark")
    tab.emulate_media(media="print")
    for gone in (".presets", ".trace-tools", ".export"):
        assert not tab.locator(gone).first.is_visible()
    for there in (".simulated", ".verdict", ".timeline", ".numbers", ".steps-list", ".command"):
        assert tab.locator(there).first.is_visible()
    tab.emulate_media(media="screen")
