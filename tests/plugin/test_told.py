"""What a trial tells of itself is what its report carries, and no more."""

from __future__ import annotations

from dataclasses import replace

from pytest_drainwatch import report
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.scenario import Behavior
from pytest_drainwatch.telling.told import circumstances
from tests.trace.reports import made, sample_paths


def told(found: Report) -> dict[str, object]:
    return dict(circumstances(found))


def test_an_exit_code_that_was_not_seen_leaves_nobodys_fate_unknown() -> None:
    """Of a control, whose pod stays, there is none to see."""
    whole = made(Behavior.DRAIN)
    assert told(whole)["hurt"] == "nobody"
    ends = tuple(replace(end, exit_code=None) for end in whole.trial.pod_ends)
    assert ends
    assert told(replace(whole, trial=replace(whole.trial, pod_ends=ends)))["hurt"] == "nobody"


def test_where_nothing_was_measured_nobody_is_not_said() -> None:
    whole = made(Behavior.DRAIN)
    nothing = replace(whole.trial, flows=(), new_connections=(), requests=None)
    assert told(replace(whole, trial=nothing))["hurt"] == "not known: nothing was measured"


def test_of_every_report_of_the_sample_no_word_contradicts_another() -> None:
    found = [told(report.loads(path.read_text(encoding="utf-8"))) for path in sample_paths()]
    assert found
    for each in found:
        assert "cannot be shown" not in str(each)
        assert each["window"] == "none" or each["hurt"] != "nobody"
