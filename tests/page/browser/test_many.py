"""Big runs and big trials stay usable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.page.browser import made
from tests.page.browser.conftest import Open
from tests.page.browser.test_trial_view import middle, pressed, ready, span

if TYPE_CHECKING:
    pass


def test_two_hundred_trials_are_all_there_and_can_be_narrowed(open_page: Open) -> None:
    tab = open_page(made.page(scenarios=40, repeats=5))
    assert tab.locator("[data-trial]").count() == 200
    assert tab.locator(".overview tbody tr").count() == 40
    tab.get_by_role("searchbox", name="Scenario").fill("exit 39")
    assert tab.locator("[data-trial]:visible").count() == 5
    assert tab.locator("article[data-scenario]:visible").count() == 1


def test_many_flows_are_stacked_listed_and_found(open_page: Open) -> None:
    page = made.page(scenarios=1, repeats=1, flows=10_000)
    page["run"] = None
    tab = ready(open_page(page, reduced_motion="reduce"))
    assert 0 < tab.locator(".flow-row").count() < 60
    before = span(tab)
    assert pressed(tab, "+", "ArrowRight")[0] > before[0]
    tab.locator("[data-lane=udp]").scroll_into_view_if_needed()
    tab.mouse.click(*middle(tab, "[data-lane=udp] [data-part=flows]"))
    count = tab.locator(".flow-filter .count")
    assert count.inner_text() == "5,000 of 10,000 flows"
    tab.get_by_role("searchbox", name="Search flows").fill("udp-4321")
    assert count.inner_text() == "1 of 10,000 flows"
    tab.locator("[data-flow='udp-4321']").click()
    assert "udp-4321" in tab.get_by_role("dialog", name="Evidence").inner_text()


def test_a_stack_loses_no_flow(open_page: Open) -> None:
    """At any time each flow is in a layer of the stack, or has not begun, or is over."""
    page = made.page(scenarios=1, repeats=1, flows=300)
    page["run"] = None
    tab = ready(open_page(page))
    off = tab.evaluate(
        """() => {
          const flows = dw.page().trials[0].flows.filter((flow) => flow.proto === "udp");
          const stack = new dw.FlowStack(flows);
          const wrong = [];
          for (let us = -11_000_000; us < 29_000_000; us += 97_001) {
            const sum = stack.layers.reduce((all, layer) => all + layer.at(us), 0);
            if (sum !== flows.length) wrong.push([us, sum]);
          }
          return wrong;
        }"""
    )
    assert off == []
