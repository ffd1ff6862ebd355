"""What a failed test shows of its trial: short, and with what new connections met."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.http.ending import Ending
from pytest_drainwatch.core.mechanism.occasion import Occasion
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.explain import SECTION_LINES, failure_section
from pytest_drainwatch.trial import Trial
from tests.core import story as s
from tests.core.http.asked import Asked, Lane, http
from tests.core.test_mechanism_evidence import OLD_IP, conntrack, entry, slice_of
from tests.core.trials import recording_of
from tests.core.tries import prober, tries
from tests.render.test_network import flow


def section(report: Report) -> list[str]:
    folder = Path("results/r00")
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
    assert "new: answered by pod-uid-new 100, pod-uid-old 4" in lines
    assert "net: at exit conntrack led 1 udp flow(s) to a pod that had ended (stale DNAT)" in lines
    assert lines[-1] == "all of it: drainwatch show results/r00/report.json"


def test_it_is_short_however_much_happened() -> None:
    report = busy()
    assert len(report.trial.timeline) > SECTION_LINES
    assert len(section(report)) == SECTION_LINES
    poor = replace(report.trial, degraded=tuple(f"reason {n}" for n in range(9)))
    lines = section(replace(report, trial=poor))
    assert len(lines) == SECTION_LINES
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
    assert lines[:4] == [
        "http: keepalive 4/24 failed, first at 1.00 s, last at 1.30 s: "
        "1 written-then-reset, 3 refused",
        "http: new 0/20 failed (below 14 %)",
        "http: keepalive-00: written-then-reset at 1.00 s",
        "http: keepalive-00: 3 x refused at 1.10–1.31 s",
    ]
    assert not [line for line in lines if line.startswith(("tcp:", "udp:", "new:"))]
    flows = busy().trial
    both = replace(report, trial=replace(flows, requests=report.trial.requests))
    assert [line for line in section(both) if line.startswith("tcp:")]


def test_an_older_report_has_no_more_than_it_knows() -> None:
    lines = section(derive(recording_of(Scenario())))
    assert lines[:3] == ["tcp: 1/1 announced-fin", "udp: none", "new: not tried"]
    assert not [line for line in lines if line.startswith(("net:", "!"))]
