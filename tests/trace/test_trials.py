"""Every report becomes a right trace, with named tracks, windows, ends and counters in it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch import report
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome
from pytest_drainwatch.core.http.ending import Ending, Over, Pool
from pytest_drainwatch.core.interval import NS_PER_MS as MS
from pytest_drainwatch.core.probing.document import AttemptRun
from pytest_drainwatch.core.scenario import Behavior
from pytest_drainwatch.render.trace.picture import Picture
from pytest_drainwatch.render.trace.trials import picture, trace
from tests.core import story as s
from tests.core.http.asked import Asked, Lane, end, http
from tests.trace import reports
from tests.trace.checker import problems


def drawn(*judged: Report) -> str:
    return trace([picture(each) for each in judged], made_by=[judged[0].drainwatch_version])


def slices(text: str) -> dict[str, dict[str, Any]]:
    """The first slice of each name."""
    found: dict[str, dict[str, Any]] = {}
    for event in json.loads(text)["traceEvents"]:
        if event["ph"] == "X":
            found.setdefault(event["name"], event)
    return found


@pytest.mark.parametrize("path", reports.sample_paths()[::5], ids=lambda p: p.parent.parent.name)
def test_each_arm_of_the_sample_makes_a_right_file(path: Path) -> None:
    assert problems(drawn(report.loads(path.read_text(encoding="utf-8")))) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", reports.sample_paths(), ids=str)
def test_each_report_of_the_sample_makes_a_right_file(path: Path) -> None:
    assert problems(drawn(report.loads(path.read_text(encoding="utf-8")))) == []


def test_the_tracks_are_named_in_their_order() -> None:
    text = drawn(reports.sample("B-drain-delete"))
    events = json.loads(text)["traceEvents"]
    names = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
    order = [
        *("API server", "Endpoint slice", "Kubelet, container", "Application"),
        *("New connections: new TCP connections fail", "Node network"),
        *("Attempts: new TCP connections", "tcp-0001 (target)", "udp-0010 (target)"),
        *("Instrument", "Instrument: UDP sends"),
    ]
    assert [name for name in names if name in order] == order
    (process,) = (e for e in events if e["name"] == "process_name")
    assert process["args"]["name"] == "B-drain-delete/r00"
    sort = [e["args"]["sort_index"] for e in events if e["name"] == "thread_sort_index"]
    assert sort == sorted(sort)


def test_spans_are_where_the_report_has_them() -> None:
    judged = reports.sample("B-drain-delete")
    text = drawn(judged)
    t0_us = json.loads(text)["otherData"]["t0_us"]
    found = slices(text)
    flow = next(f for f in judged.trial.flows if f.id == "udp-0001")
    assert flow.terminal_ns is not None
    ends = [
        (e["ts"], e["ts"] + e["dur"])
        for e in json.loads(text)["traceEvents"]
        if e["ph"] == "X" and e["name"] == "severed by rehomed"
    ]
    lo, hi = (ns / 1000 + t0_us for ns in flow.terminal_ns)
    assert any(lo - 1 < begin <= lo and hi <= end < hi + 1 for begin, end in ends)
    listed = found["pod A: in the endpoint slice"]
    closes = judged.trial.windows[0].advertised.closes_ns
    assert closes is not None
    assert listed["ts"] == t0_us
    assert listed["ts"] + listed["dur"] == t0_us + -(-closes[1] // 1000)
    surely = found["surely: pod A: in the endpoint slice"]
    assert surely["ts"] + surely["dur"] == t0_us + closes[0] // 1000
    assert found["delete asked for"]["ts"] == t0_us


def test_a_flow_has_no_gap_and_no_overlap() -> None:
    made = picture(reports.sample("A-exit-now-delete"))
    lanes = [lane for lane in made.lanes if lane.name.startswith(("tcp-0", "udp-0"))]
    assert len(lanes) == 20
    for lane in lanes:
        spans = sorted(lane.spans, key=lambda span: span.at_us)
        for one, following in pairwise(spans):
            assert one.at_us[1] == following.at_us[0], lane.name
        ended = [span.name for span in spans if " by " in span.name and "answered" not in span.name]
        assert len(ended) == 1, lane.name


def test_several_trials_are_several_processes_with_one_zero() -> None:
    judged = [reports.sample("B-drain-delete"), reports.sample("A-exit-now-delete")]
    text = drawn(*judged)
    assert problems(text) == []
    document = json.loads(text)
    events = document["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert list(names.values()) == ["B-drain-delete/r00", "A-exit-now-delete/r00"]
    asked = [e["ts"] for e in events if e["name"] == "delete asked for"]
    assert asked == [document["otherData"]["t0_us"]] * 2
    assert set(document["otherData"]["notes"]) == set(names.values())


def counted(made: Picture, name: str) -> list[tuple[int, dict[str, Any]]]:
    return [(each.at_us, dict(each.values)) for each in made.counts if each.name == name]


def test_flows_are_counted_from_surely_all_to_surely_none() -> None:
    made = picture(reports.sample("B-drain-delete"))
    tcp = counted(made, "TCP flows not ended")
    assert tcp[0][1] == {"surely": 10, "perhaps": 0}
    assert tcp[-1][1] == {"surely": 0, "perhaps": 0}
    assert all(min(values.values()) >= 0 for _, values in tcp)
    assert any(values["perhaps"] for _, values in tcp), "ends are known within bounds"


def test_flows_that_survive_are_counted_to_the_end() -> None:
    judged = reports.sample("B-drain-delete")
    survived = [
        replace(f, outcome=Outcome.SURVIVED, mechanism=Mechanism.NONE, terminal_ns=None)
        for f in judged.trial.flows
    ]
    made = picture(replace(judged, trial=replace(judged.trial, flows=tuple(survived))))
    assert counted(made, "TCP flows not ended")[-1][1] == {"surely": 10, "perhaps": 0}


def test_flows_that_nobody_measured_are_not_counted_as_alive() -> None:
    judged = reports.sample("B-drain-delete")
    unknown = [
        replace(f, outcome=Outcome.NOT_MEASURED, mechanism=Mechanism.NONE, terminal_ns=None)
        for f in judged.trial.flows
    ]
    made = picture(replace(judged, trial=replace(judged.trial, flows=tuple(unknown))))
    assert counted(made, "TCP flows not ended")[-1][1] == {"surely": 0, "perhaps": 10}


def test_new_connections_are_counted_by_what_they_met() -> None:
    judged = reports.sample("B-drain-delete")
    made = picture(judged)
    rates = counted(made, "new TCP connections a second")
    failing = judged.trial.new_connections[0].observed_failing
    assert failing is not None
    (fails,) = (each for each in rates if each[1]["failed"])
    assert fails[0] == failing.first_ns[0] // 1000
    assert 45 < fails[1]["failed"] < 55, "one every 20 ms"
    assert fails[1]["answered"] == 0
    assert rates[-1][1] == {"failed": 0, "not known": 0, "answered": 0}


def test_what_a_report_leaves_out_is_not_counted_as_served() -> None:
    judged = reports.sample("B-drain-delete")
    prober = judged.trial.new_connections[0]
    runs = tuple(
        AttemptRun(result=result, errno=None, count=2, at_ns=(at * 10**9, at * 10**9 + 10**8))
        for result, at in (("answered", 0), ("refused", 1), ("answered", 5), ("refused", 6))
    )
    cut = replace(prober, runs=runs, runs_left_out=1000)
    made = picture(replace(judged, trial=replace(judged.trial, new_connections=(cut,))))
    rates = counted(made, "new TCP connections a second")
    unknown = [at for at, values in rates if values["not known"]]
    assert unknown == [1_100_000]
    assert rates[rates.index(next(r for r in rates if r[0] == unknown[0])) + 1][0] == 5_000_000


@pytest.mark.parametrize("behavior", list(Behavior))
def test_a_small_report_without_most_of_it_makes_a_right_file(behavior: Behavior) -> None:
    judged = reports.made(behavior)
    trial = replace(
        judged.trial,
        windows=(),
        pod_ends=(),
        new_connections=(),
        mechanism=(),
        container_exits=(),
    )
    for each in (judged, replace(judged, trial=trial), replace(judged, trial=_bare(judged))):
        assert problems(drawn(each)) == []


def _bare(judged: Report) -> Any:
    return replace(judged.trial, timeline=(), flows=(), windows=(), pod_ends=())


def test_http_requests_and_their_pooled_connections_are_there() -> None:
    lane = Lane(
        asked=[
            Asked(ms=-10_000, count=100),
            Asked(ms=0, count=10),
            Asked(ms=1000, ended=Ending.RST, took_ms=1, errno="ECONNRESET"),
            Asked(ms=2000, count=10, pool=Pool.EMPTY, connection=20, by="new"),
        ],
        ends=[end("keepalive-00", Over.RST, 1000, outstanding=True)],
    )
    judged = derive(s.recording([s.accepted()], s.cluster(), http(lane)))
    text = drawn(judged)
    assert problems(text) == []
    made = picture(judged)
    (pooled,) = (lane for lane in made.lanes if lane.name == "HTTP lane keepalive-00")
    assert [(span.name, span.at_us) for span in pooled.spans] == [
        ("connection 1", (-9_000_000, 999_000)),
        ("severed by rst-outstanding", (999_000, 1_000_000)),
        ("1 written-then-reset", (1_000_000, 1_001_000)),
    ]
    (all_of_them,) = (lane for lane in made.lanes if lane.name.startswith("Attempts: "))
    assert "1 written-then-reset" in [span.name for span in all_of_them.spans]


@given(
    st.lists(
        st.tuples(st.integers(-5_000, 30_000), st.integers(0, 2_000), st.integers(0, 2_000)),
        min_size=1,
        max_size=12,
    )
)
def test_wherever_flows_end_the_file_is_right(ends: list[tuple[int, int, int]]) -> None:
    """Ends that touch, overlap, and lie before the trigger or beyond what was recorded."""
    judged = reports.made(Behavior.DRAIN)
    (flow,) = judged.trial.flows
    flows = tuple(
        replace(flow, id=f"tcp-{n:04d}", terminal_ns=(lo * MS + shift, (lo + width) * MS + shift))
        for n, (lo, width, shift) in enumerate(ends)
    )
    made = replace(judged, trial=replace(judged.trial, flows=flows))
    assert problems(drawn(made)) == []
    lanes = [lane for lane in picture(made).lanes if lane.name.startswith("tcp-0")]
    assert len(lanes) == len(flows)
    for lane in lanes:
        assert any(span.name == "drained-clean-close by announced-fin" for span in lane.spans)


def test_names_of_anybody_stay_text() -> None:
    judged = reports.sample("B-drain-delete")
    odd = '"</script>\x1b[0m\n\u2028'
    flows = tuple(replace(f, detail=odd) for f in judged.trial.flows)
    made = replace(judged, trial=replace(judged.trial, id=odd, flows=flows, notes=(odd,)))
    text = drawn(made)
    assert problems(text) == []
    assert "\x1b" not in text
    assert "\u2028" not in text
