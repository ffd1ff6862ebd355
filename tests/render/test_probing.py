"""New connections and windows as text: counts with bounds, never "0 %", old reports as before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.probing.document import NewConnections, Rate
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.core.windows.document import Met
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
    assert tuple(rows[(start := rows.index("NEW CONNECTIONS") + 1) : start + 7]) == (
        "PROBER EVERY ATTEMPTS FAILED RATE (95 %) FAILED ONES BEGUN HOW",
        "tcp-new 5 ms 118 14 6.6–20 % 20–85 ms 14 refused",
        "answered by pod-uid-new 100, pod-uid-old 4 (1–4 while terminating, 0–4 after ready:false)",
        "from the first that failed to the last, for 64–66 ms: all 14 failed",
        "in order: 24 answered (-100 to 16 ms); 14 refused (20–86 ms); 100 answered (90–586 ms)",
        "not among the attempts: 3 slot(s) missed",
        "",
    )
    assert "POD WINDOW OPENS CLOSES LASTS NEW CONNECTIONS" in rows
    assert "pod-uid-old advertised 0 ms 0.01–5.21 s 0.01–5.21 s 0/3 failed (<64 %)" in rows
    assert "fallback-routable 0–20 ms 0.00–5.21 s 0.00–5.21 s 0–118 tried, 0–14 failed" in rows
    assert any("new_connections_fail" in row for row in rows)


def test_many_pods_have_a_line_each() -> None:
    whose = [NEW, OTHER, s.OLD]
    pods = [s.pod(OTHER, -6000)]
    tried = prober([one for n in range(30) for one in tries(n * 5, 1, who=whose[n % 3])])
    (three,) = derive(s.recording([s.accepted()], s.cluster(), pods, tried)).trial.new_connections
    lines = [line for line in probing.new_connections([three]) if "answered by pod" in line]
    assert [line.split()[2:4] for line in lines] == [
        [f"pod-{uid}", "10"] for uid in (NEW, s.OLD, OTHER)
    ]


def order(tried: NewConnections) -> str:
    """The line that tells the attempts in order."""
    (line,) = [line for line in probing.new_connections([tried]) if "in order: " in line]
    return line.partition("in order: ")[2]


def test_ways_to_fail_that_alternate_are_one_stretch() -> None:
    mixed = [tries(n * 5, 1, (Result.REFUSED, Result.RESET)[n % 2]) for n in range(4, 30)]
    told = order(found(tries(0, 4), *mixed, tries(150, 50)))
    assert told == (
        "4 answered (0–16 ms); 26 failed: refused, reset (20–146 ms); 50 answered (150–396 ms)"
    )


def test_what_has_no_result_breaks_no_stretch_and_is_counted_apart() -> None:
    cut = [tries(0, 4), tries(20, 2, Result.REFUSED), tries(30, 3, Result.CLIENT_LIMIT)]
    tried = found(*cut, tries(45, 2, Result.REFUSED), tries(60, 3, Result.UNFINISHED))
    assert order(tried) == "4 answered (0–16 ms); 4 refused (20–51 ms)"
    lines = [line.strip() for line in probing.new_connections([tried])]
    assert "not among the attempts: 3 client-limit, 3 unfinished" in lines
    assert len([line for line in lines if line.startswith("3 attempt(s) are not judged")]) == 1


def test_missed_slots_are_shown_where_they_lay() -> None:
    parts = [tries(0, 100), tries(1000, 40, every=10)]
    plan = [(-100, 1000, 1, 120), (1000, 3000, 10, 3)]
    told = s.recording([s.accepted()], s.cluster(), prober(*parts, missed=123, stretches=plan))
    (tried,) = derive(told).trial.new_connections
    lines = [line.strip() for line in probing.new_connections([tried])]
    where = "120 of those every 5 ms, 3 of those every 50 ms"
    assert f"not among the attempts: 123 slot(s) missed ({where})" in lines
    older = replace(tried, by_interval=tuple(
        replace(part, missed_slots=None, planned_slots=None) for part in tried.by_interval
    ))  # fmt: skip
    lines = [line.strip() for line in probing.new_connections([older])]
    assert "not among the attempts: 123 slot(s) missed" in lines


def test_many_stretches_are_shown_from_both_ends() -> None:
    ways = [Result.ANSWERED, Result.REFUSED]
    few = found([one for n in range(6) for one in tries(n * 5, 1, ways[n % 2])])
    assert "more" not in order(few)
    many = found([one for n in range(40) for one in tries(n * 5, 1, ways[n % 2])])
    told = order(many).split("; ")
    assert told[3] == "… 34 more …"
    assert told[0] == "1 answered (0 ms)"
    assert told[-1] == "1 refused (196 ms)"


def test_runs_that_a_report_does_not_keep_are_no_stretch() -> None:
    ways = [Result.REFUSED, Result.RESET]
    tried = found(tries(0, 1), [one for n in range(1, 200) for one in tries(n * 5, 1, ways[n % 2])])
    assert tried.runs_left_out
    told = order(tried).split("; ")
    assert told[1] == "49 failed: reset, refused (5–246 ms)"
    assert told[2] == "… more than the report keeps …"
    assert told[3].startswith("50 failed")


def test_not_all_failed_between_the_first_that_did_and_the_last() -> None:
    some = [tries(0, 4, Result.REFUSED), tries(20, 4), tries(40, 2, Result.REFUSED)]
    lines = [line.strip() for line in probing.new_connections([found(*some, tries(50, 9))])]
    assert "from the first that failed to the last, for 44–46 ms: 6 of 10 failed" in lines
    one = found(tries(0, 4), tries(20, 1, Result.REFUSED), tries(25, 9))
    assert not [line for line in probing.new_connections([one]) if "from the first" in line]


def test_of_several_probers_each_line_says_whose_it_is() -> None:
    tcp, udp = found(tries(0, 4)), found(tries(0, 5), subject="udp-new")
    lines = [line.strip() for line in probing.new_connections([tcp, udp])]
    assert any(line.startswith("tcp-new: answered by pod-uid-old 4") for line in lines)
    assert any(line.startswith("udp-new: answered by pod-uid-old 5") for line in lines)
    assert not any("tcp-new: " in line for line in probing.new_connections([tcp]))


def test_in_short_it_says_how_they_failed_and_who_answered() -> None:
    some = found(tries(0, 4), tries(20, 14, Result.REFUSED), tries(90, 100, who=NEW))
    assert list(probing.met([some])) == [
        "14/118 failed, 20–85 ms: 14 refused",
        "answered by pod-uid-new 100, pod-uid-old 4",
    ]
    assert next(probing.met([found(tries(0, 100))])) == "0/100 failed (<3.0 %)"
    assert list(probing.met([])) == ["not tried"]
    (one,) = found(tries(0, 9)).answered_by
    many = replace(some, answered_by=tuple(replace(one, pod=f"p{n}") for n in range(6)))
    assert list(probing.met([many]))[1] == "answered by p0 9, p1 9, p2 9, p3 9, 2 more pod(s)"


def test_breaks_of_a_window_stand_beside_it() -> None:
    """A pod that was unready for a moment before anybody told it to end."""
    first, *rest = s.cluster(end_ms=9000)
    flaps = [
        s.endpoints(ms, (s.OLD, up, up, False))
        for ms, up in (
            (-50, True),
            (5, False),
            (8, True),
            (11, False),
            (14, True),
            (16, False),
            (18, True),
        )
    ]
    (pod,) = derive(s.recording([s.accepted()], [first, *rest], flaps)).trial.windows
    assert len(pod.ready_routable.breaks) == 3
    (row,) = [line for line in probing.windows([pod]) if "ready-routable" in line]
    assert "not from 5 ms to 8 ms (seen); not from 11 ms to 14 ms (seen); 1 more break(s)" in row


def test_a_window_says_what_new_connections_met_in_it() -> None:
    (pod,) = report(tries(-100, 20), tries(0, 44)).trial.windows

    def shown(met: Met | None) -> str:
        told = replace(pod, advertised=replace(pod.advertised, met=met))
        (row,) = [line for line in probing.windows([told]) if "advertised" in line]
        return row.rstrip()

    def met(failed: int, attempts: int, at_most: tuple[int, int], *, lost: bool = False) -> Met:
        rate = None if lost or not attempts else Rate(low=0.0, high=0.0657999)
        return Met(attempts=attempts, failed=failed, rate=rate, at_most=at_most)

    assert shown(met(0, 44, (50, 3))).endswith("  0/44 failed (<6.6 %)")
    assert shown(met(12, 44, (50, 13))).endswith("  12/44 failed")
    assert shown(met(0, 44, (50, 0), lost=True)).endswith("  0/44 failed (not measured)")
    assert shown(met(0, 0, (11, 4))).endswith("  0–11 tried, 0–4 failed")
    assert shown(met(0, 0, (1100, 0))).endswith("  0–1,100 tried, 0 failed")
    assert shown(met(0, 0, (0, 0))).endswith("  0 tried, 0 failed")
    assert shown(None).endswith("  -")


def test_where_none_were_tried_windows_have_no_column_for_it() -> None:
    plain = derive(s.recording([s.accepted()], s.cluster())).trial.windows
    header = probing.windows(plain)[1].split()
    assert header == ["POD", "WINDOW", "OPENS", "CLOSES", "LASTS"]


def test_an_older_report_has_neither_part() -> None:
    told = derive(recording_of(Scenario()))
    older = replace(told, trial=replace(told.trial, windows=(), new_connections=()))
    text = show(older)
    assert "NEW CONNECTIONS" not in text
    assert "WINDOWS" not in text
    assert "!" not in text
