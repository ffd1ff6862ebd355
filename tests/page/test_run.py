"""The run view's data: repeats, what differs between them, what is missing, and a baseline."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_drainwatch import report
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.pages.gather import Asked, PageError, page_of
from pytest_drainwatch.render.page.data import Run, Tone
from pytest_drainwatch.render.page.run import ALL
from tests.cli.folders import WHOLE, mark, measured, recorded, write, write_summary
from tests.page.shape import check_page

SAMPLES = Path(__file__).resolve().parents[2] / "results" / "sample"
NEWER, OLDER = SAMPLES / "kubernetes-1.37", SAMPLES / "kubernetes-1.34"
ACROSS = ("cluster", "kubernetes_version", "nodes")


def run_of(folder: Path, asked: Asked | None = None) -> Run:
    page = page_of([folder], asked or Asked())
    check_page(page)
    assert page["run"] is not None
    ids = {trial["id"] for trial in page["trials"]}
    assert {name for row in page["run"]["scenarios"] for name in row["trials"]} == ids
    return page["run"]


def test_the_sample_run_is_all_there() -> None:
    run = run_of(NEWER)
    assert [row["id"] for row in run["scenarios"]] == [
        "A-exit-now-delete", "B-drain-delete", "C-ignore-delete", "D-drain-evict", "E-drain-scale",
    ]  # fmt: skip
    first = run["scenarios"][0]
    assert [(f["proto"], f["mechanism"], f["count"], f["tone"]) for f in first["fates"]] == [
        ("tcp", "rst", 50, Tone.BAD),
        ("udp", "refused", 30, Tone.BAD),
        ("udp", "rehomed", 20, Tone.WARN),
    ]
    assert first["new"] == "new connections: 52–110 failed in a trial, for 1.04–2.20 s in all"
    assert run["scenarios"][2]["new"] == "new connections: none failed"
    assert first["disagreements"]
    assert run["complete"]
    assert run["comparison"] is None


def test_a_measure_holds_every_repeat_the_median_and_how_surely_it_is_there() -> None:
    (row, *_) = run_of(NEWER)["scenarios"]
    measures = {measure["key"]: measure for measure in row["measures"]}
    sigterm = measures["trigger_to_sigterm_ms"]
    values = [value for value in sigterm["values"] if value is not None]
    assert len(values) == len(sigterm["trials"]) == 5
    assert sigterm["median"] == sorted(values)[2]
    assert sigterm["interval"] == (min(values)[0], max(values)[1])
    assert sigterm["coverage"] == pytest.approx(1 - 2 * 0.5**5)


def test_one_repeat_says_nothing_of_the_spread(tmp_path: Path) -> None:
    measured(tmp_path)
    (row,) = run_of(tmp_path)["scenarios"]
    assert row["measures"]
    assert all(measure["interval"] is None for measure in row["measures"])
    assert all(measure["coverage"] is None for measure in row["measures"])


def test_a_comparison_gives_its_verdict_first_and_the_baselines_values() -> None:
    run = run_of(NEWER, Asked(baseline=OLDER, across=ACROSS))
    assert run["comparison"] is not None
    assert run["comparison"]["verdict"] == "no-change"
    assert run["comparison"]["questions"][0]["scenario"] == ALL
    measures = {m["key"]: m for m in run["scenarios"][0]["measures"]}
    assert len(measures["trigger_to_sigterm_ms"]["baseline"] or []) == 5
    assert all(m["baseline"] is None for row in run_of(NEWER)["scenarios"] for m in row["measures"])


def test_what_cannot_be_compared_is_an_error_or_said_on_the_page() -> None:
    with pytest.raises(PageError, match="refusing to compare"):
        page_of([NEWER], Asked(baseline=OLDER))
    run = run_of(NEWER, Asked(baseline=OLDER, strict=False))
    assert run["comparison"] is not None
    assert run["comparison"]["verdict"] == "no comparison"
    assert "refusing to compare" in run["comparison"]["text"]


def test_missing_trials_are_named_with_why(tmp_path: Path) -> None:
    measured(tmp_path, test="a::b")
    recorded(
        tmp_path, "drain-evict", "r00", mark(Event.VOID, reason="no answer", phase="preflight")
    )
    run = run_of(tmp_path)
    assert not run["complete"]
    assert [(each["name"], each["state"], each["why"]) for each in run["missing"]] == [
        ("drain-evict/r00", "void", "no answer")
    ]
    whole = tmp_path / "whole"
    measured(whole)
    assert run_of(whole)["missing"] == []


def test_trials_that_never_ran_are_known_from_the_runs_own_summary(tmp_path: Path) -> None:
    from pytest_drainwatch.repeats.summary import Planned

    measured(tmp_path, test="a::b")
    planned = [Planned(scenario="drain-delete", repeat=n, test=f"a::b{n or ''}") for n in (0, 1)]
    write_summary(tmp_path, planned)
    (missing,) = run_of(tmp_path)["missing"]
    assert (missing["state"], missing["why"]) == ("not-run", "planned, and never begun")
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(PageError, match=r"summary\.json: cannot be read"):
        page_of([tmp_path], Asked())


def test_what_is_not_pooled_is_shown_trial_by_trial(tmp_path: Path) -> None:
    measured(tmp_path)
    other = replace(WHOLE.trial, scenario="drain-delete", config={"replicas": 9})
    write(tmp_path / "drain-delete" / "r01", replace(WHOLE, trial=other))
    run = run_of(tmp_path)
    (reason,) = run["not_pooled"]
    assert "refusing to pool" in reason
    (row,) = run["scenarios"]
    assert row["trials"] == ["drain-delete/r00", "drain-delete/r01"]
    assert row["measures"] == []
    assert sum(fate["count"] for fate in row["fates"]) == 2


def test_outcomes_of_tests_and_links_to_reports(tmp_path: Path) -> None:
    folder = measured(tmp_path)
    path = (folder / "report.json").resolve()
    asked = Asked(page=tmp_path / "report.html", outcomes={path: "failed"})
    (trial,) = page_of([tmp_path], asked)["trials"]
    assert trial["outcome"] == "failed"
    assert trial["report"] == "drain-delete/r00/report.json"
    odd = measured(tmp_path / "javascript:x" / "a?b#c")
    (trial,) = page_of([tmp_path / "javascript:x"], asked)["trials"]
    assert trial["report"] == "javascript%3Ax/a%3Fb%23c/drain-delete/r00/report.json"
    shutil.rmtree(odd.parents[2])
    (unknown,) = page_of([tmp_path], Asked())["trials"]
    assert (unknown["outcome"], unknown["report"]) == (None, None)


def test_single_trials_have_no_run_and_ids_that_tell_them_apart(tmp_path: Path) -> None:
    one, two = measured(tmp_path / "x"), measured(tmp_path / "y")
    page = page_of([one, two / "report.json"], Asked())
    check_page(page)
    assert page["run"] is None
    assert [trial["id"] for trial in page["trials"]] == ["x/drain-delete/r00", "y/drain-delete/r00"]
    single = page_of([one], Asked())
    assert [trial["id"] for trial in single["trials"]] == ["drain-delete/r00"]
    with pytest.raises(PageError, match="a baseline is compared with a run"):
        page_of([one], Asked(baseline=tmp_path))


def test_a_report_that_cannot_be_read_stops_the_command_and_not_the_page_of_a_run(
    tmp_path: Path,
) -> None:
    measured(tmp_path)
    torn = tmp_path / "drain-delete" / "r01"
    torn.mkdir()
    (torn / "report.json").write_text(report.dumps(_of_a_later_version()))
    with pytest.raises(PageError, match="newer than"):
        page_of([tmp_path], Asked())
    run = run_of(tmp_path, Asked(strict=False))
    assert "newer than" in " ".join(run["incomplete_because"])


def _of_a_later_version() -> Report:
    return replace(WHOLE, schema_version=99)


def test_many_flows_on_a_page_leave_their_steps_in_the_reports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert all(f["rows"] for t in page_of([NEWER], Asked())["trials"] for f in t["flows"])
    monkeypatch.setattr("pytest_drainwatch.pages.gather.MANY_ON_A_PAGE", 499)
    page = page_of([NEWER], Asked())
    check_page(page)
    assert all(f["rows"] is None for t in page["trials"] for f in t["flows"])
    assert all("single steps of 20 flows" in t["left_out"][0] for t in page["trials"])


def test_a_page_can_be_read_back_as_json() -> None:
    page = page_of([NEWER], Asked())
    assert json.loads(json.dumps(page))["run"]["name"] == "kubernetes-1.37"
