"""Ten thousand flows are a page that can be mailed."""

from __future__ import annotations

from bench.derive import generated
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.pages.assemble import assemble
from pytest_drainwatch.render.page.data import FORMAT, Page
from pytest_drainwatch.render.page.trial import MANY_FLOWS, trial

FLOWS = 10_000
MOST_BYTES = 5_000_000


def test_ten_thousand_flows_are_less_than_five_megabytes_and_none_is_missing() -> None:
    report = derive(generated(FLOWS))
    found = trial(report)
    assert {flow["id"] for flow in found["flows"]} == {flow.id for flow in report.trial.flows}
    assert all(flow["rows"] is None for flow in found["flows"])
    assert any("single steps of 10,000 flows" in each for each in found["left_out"])
    text = assemble(Page(format=FORMAT, title="big", made_by="tests", run=None, trials=[found]))
    assert len(text.encode()) < MOST_BYTES


def test_few_flows_keep_their_steps_and_nothing_is_left_out() -> None:
    found = trial(derive(generated(MANY_FLOWS)))
    assert all(flow["rows"] for flow in found["flows"])
    assert found["left_out"] == []
