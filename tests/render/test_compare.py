"""A comparison as text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch.core.interval import NS_PER_MS, Bounds
from pytest_drainwatch.core.repeats.alike import Difference
from pytest_drainwatch.core.repeats.compared import (
    Comparison,
    FigureFound,
    Needed,
    ScenarioFound,
    ShiftFound,
    Side,
    TogetherFound,
    Verdict,
)
from pytest_drainwatch.core.repeats.judged import Unit
from pytest_drainwatch.render.compare import show


def side(*values: Bounds | None) -> Side:
    known = sorted(value for value in values if value is not None)
    return Side(
        values=values,
        median=known[len(known) // 2] if known else None,
        not_measured=values.count(None),
    )


def shift(median: Bounds, within: Bounds, coverage: float = 0.9683) -> ShiftFound:
    return ShiftFound(median=median, within=within, coverage=coverage)


LOST = FigureFound(
    name="new_connections_failed",
    unit=Unit.COUNT,
    verdict=Verdict.REGRESSION,
    baseline=side(*[(0, 0)] * 5),
    run=side(*[(1400, 1402)] * 5),
    shift=shift((1400, 1402), (1390, 1410)),
    least_effect=0,
)
WINDOW = replace(
    LOST,
    name="tcp_dead_before_endpoint_removed_ms",
    unit=Unit.NS,
    verdict=Verdict.INSUFFICIENT_EVIDENCE,
    why="not measured in 1 of 5 repeats of the run",
    baseline=side(*[(200 * NS_PER_MS, 201 * NS_PER_MS)] * 5),
    run=side(*[(1_900 * NS_PER_MS, 2_000 * NS_PER_MS)] * 4, None),
    shift=None,
)
END = replace(
    LOST,
    name="trigger_to_last_tcp_terminal_ms",
    unit=Unit.NS,
    verdict=None,
    why="later is neither better nor worse",
    baseline=side((5_000_000_000, 5_000_100_000)),
    run=side((9_000_000_000, 9_000_100_000)),
    shift=shift((3_999_900_000, 4_000_100_000), (3_999_900_000, 4_000_100_000), 0.0),
)


def scenario(*figures: FigureFound, **changes: object) -> ScenarioFound:
    plain = ScenarioFound(
        id="hook",
        verdict=Verdict.REGRESSION,
        repeats=(5, 5),
        asked=(),
        across=(),
        figures=figures,
        not_measured=(),
        notes=(),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def comparison(*scenarios: ScenarioFound, **changes: object) -> Comparison:
    plain = Comparison(
        compare_schema=1,
        baseline="A",
        run="B",
        verdict=Verdict.REGRESSION,
        level=0.05,
        least_effect_ns=20 * NS_PER_MS,
        questions=1,
        questions_together=1,
        together=(),
        scenarios=scenarios,
        only_in_baseline=(),
        only_in_run=(),
        left_out={},
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def row(said: str, name: str) -> list[str]:
    (line,) = (line for line in said.splitlines() if name in line and "  " in line.strip())
    return line.split()


def test_the_worst_comes_first() -> None:
    said = show(comparison(scenario(END, WINDOW, LOST)))
    assert said.splitlines()[0] == "REGRESSION: B against the baseline A"
    rows = [line.split()[0] for line in said.splitlines() if " : " in line]
    assert rows == ["regression", "insufficient-evidence", "(not"]


def test_numbers_in_doubt_show_both_bounds() -> None:
    said = show(comparison(scenario(LOST)))
    assert row(said, "new_connections_failed")[2:] == [
        *("5", ":", "5", "0", "1400–1402", "+1,400", "to", "+1,402"),
        *("+1,390", "to", "+1,410", "(96.8%)"),
    ]


def test_what_a_repeat_did_not_measure_has_no_shift() -> None:
    said = show(comparison(scenario(WINDOW)))
    assert row(said, "insufficient-evidence")[2:] == [
        *("5", ":", "4/5", "200–201", "ms", "1.90–2.00", "s", "-", "not", "measured"),
    ]
    assert "  tcp_dead_before_endpoint_removed: not measured in 1 of 5 repeats" in said


def test_one_value_of_each_has_a_shift_that_says_nothing() -> None:
    said = show(comparison(scenario(END)))
    assert "+4,000 ms  so few repeats say nothing" in said


def test_what_is_not_judged_is_shown_if_it_moved() -> None:
    still = replace(END, shift=shift((0, 0), (-NS_PER_MS, NS_PER_MS)))
    assert "trigger_to_last_tcp_terminal" not in show(comparison(scenario(LOST, still)))
    assert "trigger_to_last_tcp_terminal" in show(comparison(scenario(LOST, END)))


def test_reasons_that_hold_for_all_are_said_once_and_the_most_repeats_count() -> None:
    few = replace(
        LOST,
        verdict=Verdict.INSUFFICIENT_EVIDENCE,
        why="too few",
        needed=Needed(of_run=3, of_each=4),
    )
    more = replace(few, name="target_flows_lost", needed=Needed(of_run=4, of_each=5))
    undecided = scenario(few, more, verdict=Verdict.INSUFFICIENT_EVIDENCE)
    said = show(comparison(undecided, verdict=Verdict.INSUFFICIENT_EVIDENCE))
    assert (
        "  all: too few; at least 4 repeats of the run beside this baseline or 5 of each could "
        "decide" in said
    )
    assert said.endswith("next: measure the run with --dw-repeat 4, or both with --dw-repeat 5\n")


@pytest.mark.parametrize(
    ("of_run", "of_each", "told"),
    [
        (4, 5, "the run with --dw-repeat 4, or both with --dw-repeat 5"),
        (8, 4, "the run with --dw-repeat 8, or both with --dw-repeat 4"),
        (9, 4, "both with --dw-repeat 4, or the run with --dw-repeat 9"),
        (12, 4, "both with --dw-repeat 4, or the run with --dw-repeat 12"),
        (39, 4, "both with --dw-repeat 4"),
    ],
)
def test_the_way_with_fewer_trials_comes_first(of_run: int, of_each: int, told: str) -> None:
    few = replace(
        LOST,
        verdict=Verdict.INSUFFICIENT_EVIDENCE,
        why="too few",
        needed=Needed(of_run=of_run, of_each=of_each),
    )
    undecided = scenario(few, verdict=Verdict.INSUFFICIENT_EVIDENCE)
    said = show(comparison(undecided, verdict=Verdict.INSUFFICIENT_EVIDENCE))
    assert said.endswith(f"next: measure {told}\n")


MOVED = TogetherFound(
    name="target_flows_lost",
    verdict=Verdict.REGRESSION,
    why=None,
    scenarios=("hook", "other"),
    moved=("other",),
    p=0.0001,
    p_corrected=0.00033,
    needed=None,
)


def test_several_scenarios_together_come_before_each_alone() -> None:
    two = (scenario(LOST), scenario(LOST, id="other"))
    few = replace(
        MOVED,
        name="new_connections_failed",
        verdict=Verdict.INSUFFICIENT_EVIDENCE,
        why="too few",
        moved=(),
        needed=Needed(of_run=6, of_each=4),
    )
    said = show(comparison(*two, together=(MOVED, few)))
    assert said.splitlines()[2:5] == [
        "connections lost, of all 2 scenarios together:",
        "  regression             target_flows_lost       p = 0.00033, corrected, most of all in "
        "other",
        "  insufficient-evidence  new_connections_failed  too few; at least 6 repeats of the run "
        "beside this baseline or 4 of each could decide",
    ]
    suspected = replace(few, why="it seems to have moved", moved=("hook",))
    said = show(comparison(*two, together=(suspected,)))
    assert "it seems to have moved, most of all in hook; at least 6 repeats" in said
    assert "together:" not in show(comparison(two[0], together=(MOVED,)))


def test_what_was_not_measured_is_looked_for_and_not_measured_more_often() -> None:
    why = "not measured in every repeat of 1 of 2 scenarios"
    gap = replace(MOVED, verdict=Verdict.INSUFFICIENT_EVIDENCE, why=why, moved=())
    said = show(comparison(scenario(LOST), verdict=Verdict.INSUFFICIENT_EVIDENCE, together=(gap,)))
    assert "next: what was not measured, and why, is told by: drainwatch aggregate B" in said


def test_control_characters_of_other_peoples_files_do_not_reach_the_terminal() -> None:
    evil = "x\x1b[2J\x07\u202e"
    said = show(
        comparison(
            scenario(replace(LOST, name=evil), id=evil, notes=(evil,), not_measured=(evil,)),
            only_in_run=(evil,),
            left_out={evil: evil},
            baseline=evil,
        )
    )
    assert all(letter.isprintable() for letter in said.replace("\n", ""))
    assert "x?[2J??" in said


def test_notes_of_all_scenarios_stand_at_the_end_and_many_are_cut() -> None:
    notes = ("common", "one", "two", "three", "four")
    said = show(
        comparison(scenario(LOST, notes=notes), scenario(LOST, id="other", notes=("common",)))
    )
    assert said.count("common") == 1
    assert "  note: three\n  and 1 further note: see --json" in said
    assert "four" not in said


def test_what_was_not_compared_is_said() -> None:
    differs = Difference(field="config.pid1", baseline="probe", run="shell")
    said = show(
        comparison(
            scenario(
                LOST, asked=(differs,), across=(differs,), not_measured=("bystander_flows_lost",)
            ),
            only_in_baseline=("old",),
            only_in_run=("new",),
            left_out={"mixed": "scenario mixed: they differ"},
        )
    )
    assert "asked: config.pid1 is 'probe' in the baseline and 'shell' in the run" in said
    assert "compared across: config.pid1" in said
    assert "neither side measured: bystander_flows_lost" in said
    assert "only in the baseline, so not compared: old" in said
    assert "only in the run, so not compared: new" in said
    assert "not compared: scenario mixed: they differ" in said


def test_nothing_measured_says_so() -> None:
    nothing = scenario(verdict=Verdict.INSUFFICIENT_EVIDENCE)
    said = show(comparison(nothing, verdict=Verdict.INSUFFICIENT_EVIDENCE, questions=0))
    assert "nothing in it was measured" in said
    assert "next:" not in said
