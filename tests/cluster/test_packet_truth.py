"""tcpdump is the judge: every end of a flow in a real trial lies inside its interval.

How wide the intervals are depends on the machine's load and is not asserted here;
``bench/accuracy.py`` is for that.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from bench.tcpdump import find_tcpdump
from bench.witness import witness
from pytest_drainwatch import App, Behavior, Flows, Scenario
from pytest_drainwatch.core.document import FlowReport, Report
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.standing import Standing

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.alone,  # the instrument's precision, and not what a neighbour does to it
    # Where a cluster was asked for, as CI does, a missing tcpdump is an error.
    pytest.mark.skipif(
        find_tcpdump() is None and not os.environ.get("DW_CLUSTER"),
        reason="tcpdump is not installed: drainwatch setup --for-tests",
    ),
]
FLOWS = Flows(tcp=20, udp=10)
BESIDE_NS = 10_000  # more than a stamp of the capture is uncertain


def short(behavior: Behavior) -> Scenario:
    return Scenario(
        app=App(behavior=behavior, grace_period_s=8, drain_ns=4 * NS_PER_S),
        flows=FLOWS,
        settle_ns=1 * NS_PER_S,
        name=f"packet-truth-{behavior}",
    )


@pytest.mark.parametrize("scenario", [short(b) for b in (Behavior.DRAIN, Behavior.EXIT_NOW)])
def test_every_end_is_inside_its_interval(dw_probe: Standing, tmp_path: Path) -> None:
    seen = witness(dw_probe, tmp_path)
    assert len(seen.verdicts) == FLOWS.tcp + FLOWS.udp  # every flow ends, and none by hearsay
    assert seen.faults == []
    assert [str(v) for v in seen.verdicts if v.named_right is False] == []
    # The judge is not blind: every interval that lies beside the truth is found out.
    assert not [v for v in seen.judge(_moved(seen.trial.report, 1)) if v.fault is None]
    assert not [v for v in seen.judge(_moved(seen.trial.report, -1)) if v.fault is None]


def _moved(report: Report, way: int) -> Report:
    """The report with every end moved by its width and a little, later (1) or earlier (-1)."""

    def moved(flow: FlowReport) -> FlowReport:
        if flow.terminal_ns is None:
            return flow
        lo, hi = flow.terminal_ns
        by_ns = way * (hi - lo + BESIDE_NS)
        return replace(flow, terminal_ns=(lo + by_ns, hi + by_ns))

    flows = tuple(map(moved, report.trial.flows))
    return replace(report, trial=replace(report.trial, flows=flows))
