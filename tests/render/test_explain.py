"""What a failed test shows of its trial: short, and with what new connections met."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.http.ending import Ending
from pytest_drainwatch.core.mechanism.occasion import Occasion
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.scenario import App, Behavior, Scenario
from pytest_drainwatch.explain import (
    LEAST_LINES,
    SECTION_LINES,
    VOID_ROWS,
    WIDTH,
    failure_section,
    void_text,
)
from pytest_drainwatch.trial import Trial
from tests.core import story as s
from tests.core.http.asked import Asked, Lane, http
from tests.core.test_mechanism_evidence import OLD_IP, conntrack, entry, slice_of
from tests.core.trials import recording_of
from tests.core.tries import prober, tries
from tests.render.test_network import flow


def section(report: Report) -> list[str]:
    folder = Path("results/run/drain-delete/r00")
    return failure_section(Trial(scenario=Scenario(), report=report, folder=folder)).splitlines()


def busy() -> Report:
    """Twenty flows that end apart, new connections that fail, and a stale entry."""
    opened: list[Observation] = []
    for n in range(20):
        opened += flow(f"tcp-{n:04d}", 6000 + n, until=50 + 40 * n)
        way = Event.FLOW_RESET if n % 2 else Event.FLOW_FIN
        opened.append(s.client(way, f"tcp-{n:04d}", s.at(60 + 40 * n, 61 + 40 * n)))
    stale = conntrack(Occasion.EXIT, 5300, entry(OLD_IP))
    tried = prober(tries(0, 4), tries(20, 14, Result.REFUSED), tries(90, 100, who=s.NEW))
    homes = slice_of(-5900, (s.OLD, OLD_IP))
    return derive(
        s.recording(
            [s.accepted()], [homes, stale], opened, flow("udp-0001", 5000), s.cluster(), tried
        )
    )


def test_it_says_what_new_connections_met_and_what_is_stale() -> None:
    lines = section(busy())
    assert lines[0].startswith("tcp: ")
    assert "new: 14/118 failed, 20–85 ms: 14 refused" in lines
    assert "  who: answered by pod-uid-new 100, pod-uid-old 4" in lines
    assert "net: at exit conntrack led 1 udp flow(s) to a pod that had ended (stale DNAT)" in lines
    assert lines[-2].startswith("page: results/run/report.html#/trial/")
    assert lines[-1] == "all of it: drainwatch show results/run/drain-delete/r00/report.json"


def test_it_is_short_however_much_happened() -> None:
    report = busy()
    assert len(report.trial.timeline) > SECTION_LINES
    assert SECTION_LINES - 2 <= len(section(report)) <= SECTION_LINES
    poor = replace(report.trial, degraded=tuple(f"reason {n}" for n in range(9)))
    lines = section(replace(report, trial=poor))
    assert len(lines) <= SECTION_LINES
    assert lines[0] == "! degraded: reason 0"
    assert sum(line.startswith("!") for line in lines) == 3


def test_it_says_what_http_requests_met_and_no_word_of_flows_that_nobody_asked_for() -> None:
    failed = [
        Asked(ms=0, count=10),
        Asked(ms=1000, ended=Ending.RST, took_ms=1),
        *(Asked(ms=1100 + 100 * n, ended=Ending.REFUSED, connection=None) for n in range(3)),
        Asked(ms=1400, count=10, connection=2),
    ]
    fine = Lane(name="new-00", asked=[Asked(ms=0, count=20)])
    report = derive(s.recording([s.accepted()], s.cluster(), http(Lane(asked=failed), fine)))
    lines = section(report)
    assert lines[0] == (
        "http: keepalive 4/24 failed, first at 1.00 s, last at 1.30 s: "
        "1 written-then-reset, 3 refused"
    )
    assert "http: new 0/20 failed (below 14 %)" in lines
    assert "  who: keepalive-00" in lines
    assert not [line for line in lines if line.startswith(("tcp:", "udp:", "new:"))]
    flows = busy().trial
    both = replace(report, trial=replace(flows, requests=report.trial.requests))
    assert [line for line in section(both) if line.startswith("tcp:")]


def test_an_older_report_has_no_more_than_it_knows() -> None:
    lines = section(derive(recording_of(Scenario())))
    assert lines[0] == "tcp: 1/1 announced-fin, 5.04 s after the trigger"
    assert not [line for line in lines if line.startswith(("udp:", "new:", "!"))]


def test_it_says_what_to_try_in_lines_that_fit() -> None:
    lines = section(derive(recording_of(Scenario(app=App(behavior=Behavior.EXIT_NOW)))))
    assert lines[0].startswith("tcp: 1/1 rst, ")
    (tried,) = [n for n, line in enumerate(lines) if line.startswith("  try: handle SIGTERM")]
    assert lines[tried - 1].startswith("  why: the app ended by itself")
    assert all(len(line) <= WIDTH for line in lines[:-2])


@given(lines=st.integers(LEAST_LINES, SECTION_LINES))
def test_whatever_room_it_gets_it_keeps_to_it_and_says_where_the_rest_is(lines: int) -> None:
    folder = Path("results/run/drain-delete/r00")
    told = failure_section(Trial(scenario=Scenario(), report=busy(), folder=folder), lines)
    assert len(told.splitlines()) <= lines
    assert told.splitlines()[-1].startswith("all of it: ")
    assert "tcp: " in told


def test_what_there_is_no_room_for_is_the_least_telling() -> None:
    report = busy()
    around = [line for line in section(report) if " ms  " in line]
    assert any("trigger_issued" in line for line in around)
    assert not any("all_flows_terminal" in line for line in around)


@pytest.mark.parametrize(
    "said",
    [
        "preflight check 'x' failed\n  invariant: i\n  observed:  o\n  expected:  e",
        "one line",
        "",
    ],
)
def test_a_short_reason_for_a_void_trial_is_left_as_it_is(said: str) -> None:
    assert void_text(said) == said


@given(
    st.text(max_size=3000)
    | st.lists(st.text("ab \n", max_size=400), max_size=60).map("\n".join)
    | st.integers(0, 9000).map(lambda n: "x" * n)
)
def test_a_long_one_is_cut_to_what_a_person_reads(said: str) -> None:
    lines = void_text(said).splitlines()
    assert sum(-(-len(line) // WIDTH) or 1 for line in lines) <= VOID_ROWS


@pytest.mark.parametrize(
    "noise", ["said something | " * 200, "a line\n" * 200], ids=["long", "many"]
)
def test_what_to_type_next_stays_whole(noise: str) -> None:
    said = f"the flow agent ended: {noise}. Look at: kubectl get pods"
    told = void_text(said)
    assert len(told) < len(said)
    assert told.startswith("the flow agent ended: ")
    assert told.endswith("Look at: kubectl get pods")
    assert "…" in told
