"""The page of a simulated trial, in a real browser: nobody takes it for a measured one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_drainwatch import report
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.simulation.trial import simulate_trial
from pytest_drainwatch.pages.gather import Asked, page_of
from pytest_drainwatch.render.page.data import Page
from scenarios.test_published_matrix import DRAINING
from tests.page.browser.conftest import Open
from tests.page.browser.test_trial_view import ready


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """A simulated trial and, of the same story, one that says it was measured."""
    folder = tmp_path_factory.mktemp("run")
    told = derive(simulate_trial(DRAINING[0]))
    for name, each in (("r00", told), ("r01", replace(told, simulated=False))):
        (folder / "B" / name).mkdir(parents=True)
        (folder / "B" / name / "report.json").write_text(report.dumps(each), encoding="utf-8")
    return page_of([Path(folder)], Asked())


def test_the_trial_carries_the_word_in_its_heading(both: Page, open_page: Open) -> None:
    simulated = ready(open_page(both, "#/trial/B%2Fr00")).locator("h1")
    assert "SIMULATED" in simulated.inner_text()
    assert simulated.locator(".simulated").is_visible()
    measured = ready(open_page(both, "#/trial/B%2Fr01")).locator("h1")
    assert "SIMULATED" not in measured.inner_text()


def test_it_is_the_first_warning(both: Page, open_page: Open) -> None:
    warnings = ready(open_page(both, "#/trial/B%2Fr00")).locator(".warnings li").all_inner_texts()
    assert warnings[0].startswith("SIMULATED: a model predicted this")


def test_the_run_says_how_many_and_which(both: Page, open_page: Open) -> None:
    tab = open_page(both)
    assert "1 of 2 trials SIMULATED" in tab.locator("h1").inner_text()
    heads = tab.locator(".small-head").all_inner_texts()
    assert ["SIMULATED" in head for head in heads] == [True, False]
    assert "1 of them are simulated, not measured" in tab.locator(".lead").inner_text()


@pytest.mark.parametrize(
    ("simulated", "lead"), [(True, "A model foretold"), (False, "was watched")]
)
def test_nobody_watched_what_a_model_foretold(
    simulated: bool, lead: str, tmp_path: Path, open_page: Open
) -> None:
    told = replace(derive(simulate_trial(DRAINING[0])), simulated=simulated)
    for name in ("r00", "r01"):
        (tmp_path / "B" / name).mkdir(parents=True)
        (tmp_path / "B" / name / "report.json").write_text(report.dumps(told), encoding="utf-8")
    tab = open_page(page_of([tmp_path], Asked()))
    assert lead in tab.locator(".lead").inner_text()
