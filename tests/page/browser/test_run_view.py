"""The view of a run: what it says, and where it leads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import pytest

from pytest_drainwatch.render.page.data import Tone
from pytest_drainwatch.render.page.run import ALL
from tests.page.browser import made
from tests.page.browser.conftest import Open
from tests.page.browser.made import run_of
from tests.page.browser.watched import PHONE

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab


_VISIBLE = """
(all, of) => all
  .filter((one) => one.checkVisibility())
  .map((one) => one[of] ?? one.getAttribute(of))
"""


def shown(tab: Tab, selector: str) -> list[str]:
    """The texts of what is visible."""
    return cast(list[str], tab.locator(selector).evaluate_all(_VISIBLE, "innerText"))


def trials_shown(tab: Tab) -> list[str]:
    return cast(list[str], tab.locator("[data-trial]").evaluate_all(_VISIBLE, "data-trial"))


def test_says_how_connections_ended_in_words_and_counts(open_page: Open) -> None:
    tab = open_page(made.page())
    drain, exits = tab.locator(".overview tbody tr").all()
    assert "2 trials: 2 passed" in drain.inner_text()
    assert "4 closed cleanly" in drain.inner_text()
    assert "4 moved to another pod" in drain.inner_text()
    assert "4 cut off: reset" in exits.inner_text()
    assert "54 of 512 failed" in exits.inner_text()


def test_connections_to_pods_that_stay_stand_apart(open_page: Open) -> None:
    page = made.page()
    run = run_of(page)
    run["scenarios"][1]["fates"].append(
        {"proto": "bystander udp", "outcome": "survived-observation-window", "mechanism": "none",
         "count": 7, "tone": Tone.GOOD}
    )  # fmt: skip
    run["scenarios"][0]["new"] = "HTTP requests: none failed"
    tab = open_page(page)
    heads = tab.locator(".overview thead th").all_inner_texts()
    assert heads[1:] == [
        "TCP connections held", "UDP flows held", "held to pods that stay",
        "new connections, requests", "what hurt most",
    ]  # fmt: skip
    first, second = tab.locator(".overview tbody tr").all()
    assert "none held" in first.inner_text()
    assert re.search(r"UDP\s+7 survived", second.inner_text())
    assert tab.locator(".overview td").evaluate_all(
        "(cells) => cells.every((one) => one.getBoundingClientRect().width > 100)"
    )


def test_worst_trial_is_named_and_linked(open_page: Open) -> None:
    page = made.page(scenarios=1, repeats=3)
    band = page["trials"][1]["lanes"][-1]["bands"][0]
    band["closes"] = (9 * made.S, 9 * made.S)
    page["trials"][1]["hurt"] = {"band": band["id"], "text": "refused for 9 s"}
    tab = open_page(page)
    row = tab.locator(".overview tbody tr")
    assert "refused for 9 s in r01" in row.inner_text()
    row.get_by_role("link", name="in r01").click()
    assert tab.url.endswith("#/trial/drain-00%2Fr01")


def test_who_was_not_hurt_is_said_to_be(open_page: Open) -> None:
    page = made.page(scenarios=1, repeats=1)
    page["trials"][0]["hurt"] = None
    tab = open_page(page, "#/")
    assert "no harm seen" in tab.locator(".overview tbody tr").inner_text()
    assert "no harm seen" in tab.locator("[data-trial]").inner_text()


def test_a_small_picture_leads_to_its_trial_and_back(open_page: Open) -> None:
    tab = open_page(made.page())
    tab.locator("[data-trial='exit-now-01/r01']").click()
    tab.locator(".trial").wait_for()
    assert tab.url.endswith("#/trial/exit-now-01%2Fr01")
    tab.go_back()
    tab.locator(".run").wait_for()
    assert len(trials_shown(tab)) == 4
    tab.go_forward()
    tab.locator(".trial").wait_for()


def test_a_small_picture_draws_who_was_served_and_when(open_page: Open) -> None:
    page = made.page()
    unseen, requests = page["trials"][1], page["trials"][2]["attempts"][0]
    unseen["lanes"] = [lane for lane in unseen["lanes"] if lane["id"] != "kubelet"]
    requests["lane"], requests["name"] = "http", "requests over kept-alive connections"
    tab = open_page(page)
    first, second, third, _ = tab.locator("[data-trial]").all()
    assert first.locator(".small-labels span").all_inner_texts() == ["TCP", "UDP", "new"]
    assert third.locator(".small-labels span").all_inner_texts() == ["TCP", "UDP", "kept"]
    tcp, udp, new = first.locator(".small-plot svg").all()
    assert [row.locator("path.moved").count() for row in (tcp, udp, new)] == [0, 1, 0]
    assert [row.locator("path.tone-bad").count() for row in (tcp, udp, new)] == [0, 1, 1]
    at = (46_430 - made.SPAN[0]) / (made.SPAN[1] - made.SPAN[0])
    assert first.locator(".small-line.sigterm").get_attribute("style") == f"left:{at:.2%}"
    assert second.locator(".small-line.sigterm").count() == 0, "nobody saw it"
    assert second.locator(".small-line.trigger").count() == 1


def test_filter_by_a_part_of_the_name(open_page: Open) -> None:
    tab = open_page(made.page(scenarios=4))
    tab.get_by_role("searchbox", name="Scenario").fill("EXIT")
    assert trials_shown(tab) == [f"exit-now-0{n}/r0{r}" for n in (1, 3) for r in (0, 1)]
    assert len(shown(tab, ".overview tbody tr")) == 2
    assert tab.locator(".filter-count").inner_text() == "4 of 8 trials, 2 of 4 scenarios"
    tab.get_by_role("searchbox", name="Scenario").fill("exit 03")
    assert trials_shown(tab) == ["exit-now-03/r00", "exit-now-03/r01"]
    tab.get_by_role("searchbox", name="Scenario").fill("no such thing")
    assert trials_shown(tab) == []
    tab.get_by_role("button", name="show all").click()
    assert len(trials_shown(tab)) == 8
    assert tab.locator(".filter-count").inner_text() == "all 8 trials"


def test_filter_by_the_outcome_of_the_test_with_keys_only(open_page: Open) -> None:
    page = made.page()
    page["trials"][3]["outcome"] = "failed"
    page["trials"][2]["outcome"] = None
    tab = open_page(page)
    tab.get_by_role("checkbox", name="passed (2)").focus()
    tab.keyboard.press("Space")
    assert trials_shown(tab) == ["exit-now-01/r00", "exit-now-01/r01"]
    tab.keyboard.press("Shift+Tab")  # "not known" stands before it
    tab.keyboard.press("Space")
    assert trials_shown(tab) == ["exit-now-01/r01"]


def test_filter_by_how_a_connection_ended(open_page: Open) -> None:
    tab = open_page(made.page())
    tab.get_by_role("combobox", name="With a connection").select_option("drained-clean-close")
    assert trials_shown(tab) == ["drain-00/r00", "drain-00/r01"]
    tab.get_by_role("combobox", name="With a connection").select_option("severed")
    assert len(trials_shown(tab)) == 4


def test_filter_is_kept_while_a_trial_is_looked_at(open_page: Open) -> None:
    tab = open_page(made.page())
    tab.get_by_role("searchbox", name="Scenario").fill("exit")
    tab.locator("[data-trial='exit-now-01/r01']").click()
    tab.locator(".trial").wait_for()
    tab.go_back()
    tab.locator(".run").wait_for()
    assert tab.get_by_role("searchbox", name="Scenario").input_value() == "exit"
    assert trials_shown(tab) == ["exit-now-01/r00", "exit-now-01/r01"]


def test_incomplete_is_said_before_anything_else(open_page: Open) -> None:
    page = made.page()
    run = run_of(page)
    run["complete"] = False
    run["incomplete_because"] = [f"reason {n}" for n in range(8)]
    run["missing"] = made.missing()
    run["not_pooled"] = ["drain-00: environment.kubernetes_version differs"]
    tab = open_page(page)
    text = tab.locator(".run").inner_text()
    assert text.index("This run is incomplete") < text.index("4 trials of 2 scenarios")
    assert "reason 4" in text
    assert "and 3 more" in text
    assert "reason 5" not in text
    lacking = tab.locator("#missing").inner_text()
    for said in ("drain-00/r01", "void", "no flow could be established", "not-run"):
        assert said in lacking
    assert "kubernetes_version differs" in tab.locator("#not-pooled").inner_text()


def test_a_complete_run_has_no_warning(open_page: Open) -> None:
    tab = open_page(made.page())
    for absent in ("#incomplete", "#missing", "#not-pooled", "#comparison"):
        assert tab.locator(absent).count() == 0


def test_comparison_says_its_verdict_first(open_page: Open) -> None:
    page = made.page()
    run_of(page)["comparison"] = made.compared()
    tab = open_page(page)
    text = tab.locator("#comparison").inner_text()
    assert re.search(
        r"^Against the baseline\s+✕ regression against the baseline results/before", text
    )
    assert "2 questions: 1 regression (this run is worse), 1 insufficient-evidence (too few" in text
    assert "0 became 2, p = 0.008" in text
    assert "More connections were lost than in the baseline." in text


def test_questions_without_an_answer_are_folded(open_page: Open) -> None:
    page = made.page()
    run_of(page)["comparison"] = made.compared(same=60)
    tab = open_page(page)
    assert len(shown(tab, "#comparison tbody tr")) == 1
    tab.locator("summary", has_text="1 insufficient-evidence: too few repeats to tell").click()
    tab.locator("summary", has_text="60 no-change: alike").click()
    assert len(shown(tab, "#comparison tbody tr")) == 62


def test_a_question_about_all_scenarios_is_never_folded(open_page: Open) -> None:
    page = made.page()
    found = made.compared(same=3)
    found["questions"][-1]["scenario"] = ALL
    run_of(page)["comparison"] = found
    rows = shown(open_page(page), "#comparison tbody tr")
    assert [ALL in row for row in rows] == [False, True]


def test_one_trial_needs_no_filter_and_one_scenario_no_second_plot(open_page: Open) -> None:
    tab = open_page(made.page(scenarios=1, repeats=1), "#/")
    assert len(trials_shown(tab)) == 1
    for absent in (".filter", "#figures"):
        assert tab.locator(absent).count() == 0


def test_figures_of_a_scenario_open_on_demand(open_page: Open) -> None:
    page = made.page(scenarios=1, repeats=5)
    run_of(page)["scenarios"][0]["measures"][1]["values"][2] = None
    tab = open_page(page)
    block = tab.locator("article[data-scenario='drain-00']")
    assert block.locator(".measure").count() == 0
    block.get_by_text("2 figures over 5 repeats").click()
    block.locator(".measure").first.wait_for()
    sigterm, exits = block.locator(".measure").all()
    assert "median 50.0–51.0 ms" in sigterm.inner_text()
    assert "with 93.75 % confidence the true one is 40.0–61.0 ms" in sigterm.inner_text()
    assert sigterm.locator("rect.of-run").count() == 5
    assert "measured in 4 of 5" in exits.inner_text()
    assert exits.locator("rect.of-run").count() == 4


def test_values_that_are_exact_are_seen(open_page: Open) -> None:
    page = made.page(scenarios=2, repeats=3)
    measure = run_of(page)["scenarios"][0]["measures"][0]
    measure["values"] = measure["baseline"] = [(40_000, 40_000), (50_000, 50_000), (60_000, 60_000)]
    measure["median"] = (50_000, 50_000)
    plot = open_page(page).locator("#figures .measure svg").first
    seen = [plot.screenshot()]
    for kind in (".of-run", ".of-baseline", ".median"):
        plot.locator(kind).evaluate_all("(all) => all.forEach((one) => one.remove())")
        seen.append(plot.screenshot())
    assert len(set(seen)) == 4, "each kind leaves ink"


def test_one_repeat_claims_no_distribution(open_page: Open) -> None:
    tab = open_page(made.page(scenarios=1, repeats=1), "#/")
    tab.locator("summary", has_text="2 figures").click()
    tab.locator("article .measure").first.wait_for()
    assert "one repeat" in tab.locator("article .measure").first.inner_text()
    assert tab.locator("article line.bracket").count() == 0


def test_a_figure_nobody_measured_is_named_and_not_drawn(open_page: Open) -> None:
    page = made.page(scenarios=2, repeats=2)
    measure = run_of(page)["scenarios"][0]["measures"][0]
    measure["values"], measure["median"], measure["interval"] = [None, None], None, None
    tab = open_page(page)
    tab.locator("summary", has_text="2 figures").first.click()
    tab.locator("article .measure").first.wait_for()
    assert (
        "Not measured in any repeat: trigger to SIGTERM."
        in tab.locator("article").first.inner_text()
    )
    assert "not measured in any repeat" in tab.locator("#figures .measure").first.inner_text()


def test_one_figure_of_all_scenarios_follows_choice_and_filter(open_page: Open) -> None:
    tab = open_page(made.page(scenarios=4, repeats=5))
    assert shown(tab, "#figures .measure b") == [
        "drain-00",
        "exit-now-01",
        "drain-02",
        "exit-now-03",
    ]
    tab.get_by_role("combobox", name="Figure").select_option("exit")
    assert tab.locator("#figures [data-measure='exit']").count() == 4
    tab.get_by_role("searchbox", name="Scenario").fill("drain")
    assert shown(tab, "#figures .measure b") == ["drain-00", "drain-02"]


def test_the_baseline_stands_beside_the_run(open_page: Open) -> None:
    page = made.page(scenarios=2, repeats=2)
    run_of(page)["scenarios"][0]["measures"][0]["baseline"] = [(10_000, 11_000), None]
    tab = open_page(page)
    first = tab.locator("#figures .measure").first
    assert "baseline: 10.0–11.0 ms in 1 of 2" in first.inner_text()
    assert first.locator("rect.of-baseline").count() == 1


def test_disagreements_are_there_to_be_opened(open_page: Open) -> None:
    page = made.page(scenarios=1)
    run_of(page)["scenarios"][0]["disagreements"] = ["udp-0001: rehomed in r00, refused in r01"]
    tab = open_page(page)
    tab.get_by_text("Repeats differ: 1 way").click()
    assert tab.get_by_text("udp-0001: rehomed in r00").is_visible()


def test_flags_of_a_trial_show_in_its_picture(open_page: Open) -> None:
    page = made.page(scenarios=1)
    page["trials"][0]["marks"] = ["degraded: 3 stalls"]
    first, second = open_page(page).locator("[data-trial]").all()
    assert "⚠ 1" in first.inner_text()
    assert "⚠" not in second.inner_text()


def test_a_link_to_a_scenario_leads_there(open_page: Open) -> None:
    tab = open_page(made.page(scenarios=40, repeats=1))
    tab.locator(".overview").get_by_role("link", name="exit-now-39").click()
    heading = tab.get_by_role("heading", name="exit-now-39")
    heading.wait_for()
    assert heading.evaluate("one => one === document.activeElement")
    assert heading.evaluate("one => one.getBoundingClientRect().top < innerHeight")


@pytest.mark.parametrize(("scenarios", "repeats"), [(1, 1), (5, 5), (40, 5)])
def test_nothing_is_wider_than_a_phone(scenarios: int, repeats: int, open_page: Open) -> None:
    page = made.page(scenarios=scenarios, repeats=repeats)
    run = run_of(page)
    run["comparison"], run["missing"] = made.compared(), made.missing()
    tab = open_page(page, "#/", viewport=PHONE)
    tab.locator("article summary").first.click()
    assert len(trials_shown(tab)) == scenarios * repeats
    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
