"""New connections and windows as text: counts with bounds, never "0 %", old reports as before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.probing.document import NewConnections, Rate
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.render import probing
from pytest_drainwatch.render.terminal import show
from tests.core import story as s
from tests.core.story import NEW, OTHER
from tests.core.trials import recording_of
from tests.core.tries import Try, prober, tries


def report(*attempts: list[Try], subject: str = "tcp-new", missed: int = 0) -> Report:
    tried = prober(*attempts, subject=subject, missed=missed)
    return derive(s.recording([s.accepted()], s.cluster(), tried))


def found(*attempts: list[Try], subject: str = "tcp-new") -> NewConnections:
    (tried,) = report(*attempts, subject=subject).trial.new_connections
    return tried


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (0.0, 0.00187059, "below 0.19 %"),
        (0.0, 2.9e-6, "below 0.00029 %"),
        (0.000188336, 0.000278741, "0.018–0.028 %"),
        (0.00263, 0.00805, "0.26–0.81 %"),
        (0.42, 0.5801, "42–59 %"),
        (0.95, 1.0, "above 95 %"),
        (0.55, 0.9975, "55–100 %"),
    ],
)
def test_rates_are_rounded_outward(low: float, high: float, shown: str) -> None:
    assert probing.percent(Rate(low=low, high=high)) == shown


def test_a_cell_says_how_many_failed_and_when_or_the_bound() -> None:
    assert probing.cell([found(tries(0, 2912))]) == "0/2,912 failed (<0.11 %)"
    some = found(tries(0, 4), tries(20, 14, Result.REFUSED), tries(90, 2894))
    assert probing.cell([some]) == "14/2,912 failed, 20–85 ms"
    assert probing.cell([]) == "not tried"
    assert probing.cell([found(tries(-500, 10))]) == "not measured"
    udp = found(tries(0, 100), subject="udp-new")
    assert probing.cell([some, udp]) == "14/2,912 failed, 20–85 ms; udp 0/100 failed (<3.0 %)"


def test_without_a_summary_no_bound_is_made_up() -> None:
    runs = prober(tries(0, 100))[:-1]
    (tried,) = derive(s.recording([s.accepted()], s.cluster(), runs)).trial.new_connections
    assert probing.cell([tried]) == "0/100 failed (not measured)"


def test_the_parts_of_a_report() -> None:
    told = report(
        tries(-100, 20),
        tries(0, 4),
        tries(20, 14, Result.REFUSED),
        tries(90, 100, who=NEW),
        missed=3,
    )
    text = show(told)
    lines = text.splitlines()
    assert [
        line for line in lines if line in {"SUMMARY", "NEW CONNECTIONS", "WINDOWS", "TIMELINE"}
    ] == ["SUMMARY", "NEW CONNECTIONS", "WINDOWS", "TIMELINE"]
    rows = [" ".join(line.split()) for line in lines]
    assert "tcp-new 5 ms 118 14 6.6–20 % 20–85 ms 14 refused" in rows
    assert (
        "tcp-new: answered by pod-uid-new 100, pod-uid-old 4 (1–4 terminating, "
        "0–4 after ready:false)" in rows
    )
    assert "tcp-new: 24 answered, then 14 refused, then 100 answered" in rows
    assert "tcp-new: not among the attempts: 3 slot(s) missed" in rows
    assert "pod-uid-old advertised 0 ms 0.01–5.21 s 0.01–5.21 s" in rows
    assert "fallback-routable 0–20 ms 0.00–5.21 s 0.00–5.21 s" in rows
    assert any("new_connections_fail" in row for row in rows)


def test_many_pods_have_a_line_each() -> None:
    whose = [NEW, OTHER, s.OLD]
    pods = [s.pod(OTHER, -6000)]
    tried = prober([one for n in range(30) for one in tries(n * 5, 1, who=whose[n % 3])])
    (three,) = derive(s.recording([s.accepted()], s.cluster(), pods, tried)).trial.new_connections
    lines = [line for line in probing.new_connections([three]) if "answered by pod" in line]
    assert [line.split()[3:5] for line in lines] == [
        [f"pod-{uid}", "10"] for uid in (NEW, s.OLD, OTHER)
    ]


def test_many_runs_are_shown_from_both_ends() -> None:
    ways = [Result.ANSWERED, Result.REFUSED]
    many = found([one for n in range(40) for one in tries(n * 5, 1, ways[n % 2])])
    (line,) = [line for line in probing.new_connections([many]) if "then" in line]
    assert "… 32 more …" in line


def test_an_older_report_has_neither_part() -> None:
    told = derive(recording_of(Scenario()))
    older = replace(told, trial=replace(told.trial, windows=(), new_connections=()))
    text = show(older)
    assert "NEW CONNECTIONS" not in text
    assert "WINDOWS" not in text
    assert "!" not in text
