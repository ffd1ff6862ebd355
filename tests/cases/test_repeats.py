"""Cases about several trials together: what may be pooled, and what two of them disagree on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import NodeFacts, Report
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.repeats.aggregate import PoolError, Repeat, pool
from pytest_drainwatch.core.repeats.compare import Run, compare
from pytest_drainwatch.core.repeats.compared import FigureFound, Needed, Verdict
from pytest_drainwatch.core.repeats.metrics import Metric, Reading
from pytest_drainwatch.core.repeats.repeat import repeat
from tests.core import story as s


def two_in_flight(first: str, second: str) -> Report:
    """Two TCP flows, each drained or reset at the pod's end."""

    def flow(name: str, fate: str) -> list[object]:
        ends = {
            "drained": [
                s.client(Event.FLOW_ANNOUNCED, name, s.at(5100, 5101), reason="drain-deadline"),
                s.client(Event.FLOW_FIN, name, s.at(5100, 5101)),
            ],
            "reset": [s.client(Event.FLOW_RESET, name, s.at(5100, 5101), errno="ECONNRESET")],
        }
        return [*s.alive(name, 5099), *ends[fate]]

    flows = [*flow("tcp-0001", first), *flow("tcp-0002", second)]
    return derive(s.recording([s.accepted()], flows, s.cluster()))  # type: ignore[arg-type]


def test_c15_of_two_requests_in_flight_one_finishes_and_one_is_reset() -> None:
    """Each flow has its own fate; repeats that differ are said to, flow by flow, never averaged."""
    report = two_in_flight("drained", "reset")
    assert [f.outcome for f in report.trial.flows] == ["drained-clean-close", "severed"]
    assert (report.trial.summary.tcp.drained, report.trial.summary.tcp.severed) == (1, 1)
    both = [repeat(report, "r00"), repeat(two_in_flight("drained", "drained"), "r01")]
    said = " ".join(pool("requests", both).disagreements)
    assert "1, 0" in said
    assert "1, 2" in said
    assert "tcp-0002" in said
    assert "tcp-0001" not in said
    same = [repeat(report, "r00"), repeat(report, "r01")]
    assert pool("requests", same).disagreements == ()


DEAD_WINDOWS_MS = (251, 330, 376, 402, 591)


@pytest.mark.parametrize("single_ms", [376, 25_739])
def test_c62_one_value_against_a_range_of_five_is_insufficient_evidence(single_ms: int) -> None:
    """In the middle of the range or far outside it: one value can be told from chance by
    nobody. Said is how many would decide, and so many do.
    """

    def repeats(*windows_ms: int) -> Run:
        return Run(
            name="run",
            scenarios={
                "E": [
                    Repeat(
                        label=f"r{number:02}",
                        conditions={},
                        metrics={Metric.DEAD_WINDOW: Reading(shown_ns=ms * NS_PER_MS)},
                        fates={},
                    )
                    for number, ms in enumerate(windows_ms)
                ]
            },
        )

    def judged(windows: Run) -> FigureFound:
        (scenario,) = compare(repeats(*DEAD_WINDOWS_MS), windows).scenarios
        (figure,) = scenario.figures
        assert scenario.verdict is figure.verdict
        return figure

    single = judged(repeats(single_ms))
    assert single.verdict is Verdict.INSUFFICIENT_EVIDENCE
    assert single.needed == Needed(of_run=3, of_each=4)
    assert "5 against 1 repeats" in str(single.why)
    near, far = judged(repeats(376, 330, 402)), judged(repeats(25_739, 25_100, 26_020))
    assert (near.verdict, far.verdict) == (Verdict.NO_CHANGE, Verdict.REGRESSION)


def _on(kubelet: str, name: str = "node-1") -> tuple[NodeFacts, ...]:
    return (NodeFacts(name=name, kubelet_version=kubelet),)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("git_commit", "def5678", "def5678"),
        ("kubernetes_version", "v1.34.4", "v1.34.4"),
        ("kube_proxy_mode", "nftables", "nftables"),
        # The kubelet's version is a fact of each node.
        ("nodes", _on("v1.34.4"), "v1.34.4"),
    ],
)
def test_c61_trials_of_different_builds_or_clusters_are_not_pooled(
    field: str, value: object, said: str
) -> None:
    """Refused, and the field that differs is named with both values."""
    one = two_in_flight("drained", "drained")
    one = replace(one, environment=replace(one.environment, nodes=_on("v1.37.2")))
    changed = {field: value}
    other = (
        replace(one, **changed)  # type: ignore[arg-type]
        if field == "git_commit"
        else replace(one, environment=replace(one.environment, **changed))  # type: ignore[arg-type]
    )
    assert pool("same", [repeat(one, "r00"), repeat(one, "r01")])
    with pytest.raises(PoolError) as refused:
        pool("mixed", [repeat(one, "r00"), repeat(other, "r01")])
    assert field in str(refused.value)
    assert said in str(refused.value)
    if field == "nodes":
        assert "v1.37.2" in str(refused.value), "and what the others have"
        renamed = replace(one.environment, nodes=_on("v1.37.2", name="another"))
        assert pool("same", [repeat(one, "r00"), repeat(replace(one, environment=renamed), "r01")])
