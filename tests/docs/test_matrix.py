"""The page about the published matrix says what the committed runs say."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from pytest_drainwatch import report
from pytest_drainwatch.repeats.aggregation import aggregate, dumps
from tests.docs.conftest import Load

ROOT = Path(__file__).resolve().parents[2]
DOCS, SAMPLE = ROOT / "docs", ROOT / "results" / "sample"
THEIRS = ROOT.parent / "shared" / "data" / "upstream-results" / "2026-09-01-repeat5-kind-v1.34.0"
RUNS = ("kubernetes-1.34", "kubernetes-1.37")


@pytest.fixture(scope="module")
def generator(load: Load) -> ModuleType:
    return load("make_matrix")


def test_the_page_is_generated_from_the_runs(generator: ModuleType) -> None:
    written = (DOCS / "matrix.md").read_text()
    assert written == generator.page(), "docs/matrix.md is out of date: make docs"


@pytest.mark.parametrize("run", RUNS)
def test_each_run_is_whole_and_had_no_stall(run: str) -> None:
    """What the page says of them."""
    assert json.loads((SAMPLE / run / "summary.json").read_text())["complete"]
    found = [report.loads(path.read_text()) for path in (SAMPLE / run).glob("*/r0*/report.json")]
    assert len(found) == 25
    for each in found:
        settled_ns = -each.trial.config["settle_seconds"] * 1_000_000_000  # type: ignore[operator]
        assert not [stall for stall in each.trial.stalls if stall.at_ns[1] > settled_ns]


def test_how_often_the_order_of_sigterm_and_ready_false_is_known() -> None:
    bounds = [
        report.loads(path.read_text()).trial.summary.sigterm_to_ready_false_ns
        for run in RUNS
        for path in (SAMPLE / run).glob("*/r0*/report.json")
    ]
    known = [each for each in bounds if each is not None]
    before = sum(each[1] < 0 for each in known)
    after = sum(each[0] > 0 for each in known)
    assert (len(known), before, after) == (50, 21, 0)


@pytest.mark.skipif(not THEIRS.is_dir(), reason="the ancestor's reports are not on this machine")
def test_the_published_figures_are_those_of_its_reports() -> None:
    def figures(text: str) -> dict[str, object]:
        return {s["id"]: s["metrics"] for s in json.loads(text)["scenarios"]}

    assert figures((SAMPLE / "published.json").read_text()) == figures(dumps(aggregate(THEIRS)))
