"""Comparing runs: what is claimed, what is not, and what may be compared at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.repeats.aggregate import Repeat
from pytest_drainwatch.core.repeats.alike import ComparisonError
from pytest_drainwatch.core.repeats.compare import Run, compare
from pytest_drainwatch.core.repeats.compared import Comparison, FigureFound, Verdict
from pytest_drainwatch.core.repeats.evidence import LEVEL, corrected, weigh
from pytest_drainwatch.core.repeats.judged import Figure, Unit
from pytest_drainwatch.core.repeats.metrics import Metric, Reading, Tally

CONDITIONS = {
    "git_commit": "abc1234",
    "environment.kubernetes_version": "v1.37.2",
    "environment.min_sync_period_ms": 1000,
    "config.tcp_flows": 10,
    "config.trigger": "delete",
    "config.grace_period_seconds": 10,
    "config.observe_timeout_seconds": 40.0,
    "config.drain_max_seconds": 5.0,
    "config.pre_stop": {"sleep_s": 1},
}
FAILED = Tally.NEW_CONNECTIONS_FAILED


def at(ms: float, width_ms: float = 1) -> Reading:
    return Reading.of(Interval(round((ms - width_ms) * NS_PER_MS), round(ms * NS_PER_MS)))


def trial(
    failed: int | Interval | None = 0,
    *,
    conditions: Mapping[str, object] | None = None,
    **durations: Reading | None,
) -> Repeat:
    """A repeat with so many failed new connections, and durations by their metric's name."""
    count = Interval.point(failed) if isinstance(failed, int) else failed
    return Repeat(
        label="r",
        conditions={**CONDITIONS, **(conditions or {})},
        metrics={Metric[name]: reading for name, reading in durations.items()},
        fates={},
        tallies={FAILED: count},
    )


def compared(
    here: Iterable[Repeat], there: Iterable[Repeat], across: Sequence[str] = ()
) -> Comparison:
    return compare(
        Run(name="A", scenarios={"hook": tuple(here)}),
        Run(name="B", scenarios={"hook": tuple(there)}),
        across=across,
    )


def figure(found: Comparison, name: str = FAILED) -> FigureFound:
    (scenario,) = found.scenarios
    (it,) = (each for each in scenario.figures if each.name == name)
    return it


WITHOUT = {"config.pre_stop": None}
LOSING = [trial(n, conditions=WITHOUT) for n in (140, 138, 151, 133, 149)]
HOOKED = [trial(0) for _ in range(5)]


def test_a_preStop_hook_removed_is_a_regression_and_added_an_improvement() -> None:
    worse = compared(HOOKED, LOSING)
    assert worse.verdict is figure(worse).verdict is Verdict.REGRESSION
    assert figure(worse).shift is not None
    assert figure(worse).shift.median == (140, 140)  # type: ignore[union-attr]
    assert figure(worse).shift.within == (133, 151)  # type: ignore[union-attr]
    assert figure(worse).p == float(Fraction(2, 252))
    (asked,) = worse.scenarios[0].asked
    assert (asked.field, asked.baseline, asked.run) == ("config.pre_stop", {"sleep_s": 1}, None)
    better = compared(LOSING, HOOKED)
    assert better.verdict is figure(better).verdict is Verdict.IMPROVEMENT


def test_two_halves_of_one_run_are_no_change() -> None:
    counts = [140, 0, 138, 0, 151, 0, 133, 0, 149, 0]
    found = compared([trial(n) for n in counts[:5]], [trial(n) for n in counts[5:]])
    assert found.verdict is figure(found).verdict is Verdict.NO_CHANGE


@pytest.mark.parametrize(
    ("here", "there", "verdict"),
    [(5, 5, Verdict.NO_CHANGE), (4, 4, Verdict.NO_CHANGE), (3, 3, Verdict.INSUFFICIENT_EVIDENCE)],
)
def test_nothing_lost_anywhere_is_a_pass_only_if_a_loss_could_have_been_seen(
    here: int, there: int, verdict: Verdict
) -> None:
    found = compared([trial(0)] * here, [trial(0)] * there)
    assert found.verdict is verdict
    needed = figure(found).needed
    assert (needed and (needed.of_run, needed.of_each)) == (
        None if verdict is Verdict.NO_CHANGE else (5, 4)
    )


def test_one_value_against_five_decides_nothing_whatever_it_is() -> None:
    for value in (300, 25_739):
        found = compared(
            [trial(0, DEAD_WINDOW=at(ms)) for ms in (251, 330, 376, 402, 591)],
            [trial(0, DEAD_WINDOW=at(value))],
        )
        window = figure(found, Metric.DEAD_WINDOW)
        assert found.verdict is window.verdict is Verdict.INSUFFICIENT_EVIDENCE
        assert window.needed is not None
        assert (window.needed.of_run, window.needed.of_each) == (3, 4)
        assert "5 against 1 repeats" in str(window.why)
    decided = compared(
        [trial(0, DEAD_WINDOW=at(ms)) for ms in (251, 330, 376, 402, 591)],
        [trial(0, DEAD_WINDOW=at(ms)) for ms in (25_739, 25_745, 25_720)],
    )
    assert figure(decided, Metric.DEAD_WINDOW).verdict is Verdict.REGRESSION, "as was promised"


def test_what_was_not_measured_is_no_pass_and_hides_no_regression() -> None:
    found = compared([trial(0)] * 5, [*[trial(0)] * 4, trial(None)])
    assert found.verdict is Verdict.INSUFFICIENT_EVIDENCE
    assert figure(found).why == "not measured in 1 of 5 repeats of the run"
    assert figure(found).shift is None
    one_side = compared([trial(None)] * 5, [trial(0)] * 5)
    assert one_side.verdict is Verdict.INSUFFICIENT_EVIDENCE
    bad = compared([trial(0)] * 10, [*[trial(140)] * 9, trial(None)])
    assert bad.verdict is Verdict.REGRESSION, "whatever the tenth was"
    neither = compared([trial(None)] * 5, [trial(None)] * 5)
    assert neither.verdict is Verdict.INSUFFICIENT_EVIDENCE, "nothing measured is no pass"
    assert FAILED in neither.scenarios[0].not_measured


def test_counts_in_doubt_decide_neither_way() -> None:
    doubtful = [trial(Interval(0, 200)) for _ in range(5)]
    found = compared([trial(0)] * 5, doubtful)
    assert found.verdict is Verdict.INSUFFICIENT_EVIDENCE
    assert figure(found).why == "what is not known of the counts would decide"
    sure = compared([trial(0)] * 5, [trial(Interval(130, 200))] * 5)
    assert sure.verdict is Verdict.REGRESSION


def durations(*values: float) -> list[Repeat]:
    return [trial(0, SIGTERM_TO_READY_FALSE=at(ms)) for ms in values]


def test_a_few_milliseconds_are_no_regression() -> None:
    near = compared(durations(5, 6, 7, 8, 9), durations(12, 13, 14, 15, 16))
    assert figure(near, Metric.SIGTERM_TO_READY_FALSE).verdict is Verdict.NO_CHANGE
    far = compared(durations(5, 6, 7, 8, 9), durations(45, 46, 47, 48, 49))
    assert figure(far, Metric.SIGTERM_TO_READY_FALSE).verdict is Verdict.REGRESSION
    # Beyond the least effect by the numbers shown, but not by their bounds.
    blurred = [trial(0, SIGTERM_TO_READY_FALSE=at(ms, 25)) for ms in (45, 46, 47, 48, 49)]
    found = compared(durations(5, 6, 7, 8, 9), blurred)
    assert figure(found, Metric.SIGTERM_TO_READY_FALSE).verdict is Verdict.NO_CHANGE


def test_numbers_without_bounds_are_known_to_their_last_digit() -> None:
    def shown(*values: int) -> list[Repeat]:
        return [trial(0, DEAD_WINDOW=Reading(shown_ns=ms * NS_PER_MS)) for ms in values]

    found = compared(shown(100, 101, 102, 103), shown(123, 124, 125, 126))
    assert figure(found, Metric.DEAD_WINDOW).verdict is Verdict.NO_CHANGE, "123 - 103 may be 18"
    assert figure(found, Metric.DEAD_WINDOW).shift.median == (  # type: ignore[union-attr]
        21 * NS_PER_MS,
        25 * NS_PER_MS,
    )
    assert any("without bounds" in note for note in found.scenarios[0].notes)
    apart = compared(shown(100, 101, 102, 103), shown(130, 131, 132, 133))
    assert apart.verdict is Verdict.REGRESSION


def test_when_flows_end_is_shown_and_never_judged() -> None:
    found = compared(
        [trial(0, LAST_TCP=at(5000 + n)) for n in range(5)],
        [trial(0, LAST_TCP=at(9000 + n)) for n in range(5)],
    )
    last = figure(found, Metric.LAST_TCP)
    assert (last.verdict, last.p, found.verdict) == (None, None, Verdict.NO_CHANGE)
    assert last.shift is not None
    assert last.shift.coverage == pytest.approx(1 - 8 / 252)


def test_what_the_configuration_sets_on_purpose_is_not_held_against_it() -> None:
    early = [trial(0, SIGTERM=at(30 + n), conditions=WITHOUT) for n in range(5)]
    late = [trial(0, SIGTERM=at(1030 + n)) for n in range(5)]
    assert figure(compared(early, late), Metric.SIGTERM).verdict is None
    assert "config.pre_stop" in str(figure(compared(early, late), Metric.SIGTERM).why)
    alike = [replace(each, conditions=CONDITIONS) for each in early]
    assert figure(compared(alike, late), Metric.SIGTERM).verdict is Verdict.REGRESSION


def test_a_dead_window_is_judged_once() -> None:
    both = [trial(0, DEAD_WINDOW=at(200 + n), SIGTERM_TO_REMOVED=at(5200 + n)) for n in range(5)]
    assert figure(compared(both, both), Metric.SIGTERM_TO_REMOVED).verdict is None
    one = [trial(0, SIGTERM_TO_REMOVED=at(5200 + n)) for n in range(5)]
    assert figure(compared(one, one), Metric.SIGTERM_TO_REMOVED).verdict is Verdict.NO_CHANGE


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("environment.kubernetes_version", "v1.34.4"),
        ("git_commit", "def5678"),
        ("config.tcp_flows", 20),
        ("config.trigger", "evict"),
        ("environment.min_sync_period_ms", None),
        ("config.observe_timeout_seconds", 60.0),
    ],
)
def test_other_conditions_are_refused_and_named(field: str, value: object) -> None:
    others = [trial(0, conditions={field: value})] * 5
    with pytest.raises(ComparisonError) as refused:
        compared(HOOKED, others)
    said = str(refused.value)
    assert f"{field} is {CONDITIONS[field]!r} in the baseline and {value!r} in the run" in said
    short = field.rpartition(".")[2]
    assert f"--across {short}" in said
    for across in (field, short):
        found = compared(HOOKED, others, [across])
        assert [each.field for each in found.scenarios[0].across] == [field]


def test_every_field_that_differs_is_named() -> None:
    changed = {"environment.kubernetes_version": "v1.34.4", "config.tcp_flows": 3}
    with pytest.raises(ComparisonError) as refused:
        compared(HOOKED, [trial(0, conditions={**changed, **WITHOUT})])
    assert "kubernetes_version" in str(refused.value)
    assert "tcp_flows" in str(refused.value)
    assert "pre_stop" not in str(refused.value), "that is what is asked"
    with pytest.raises(ComparisonError, match="tcp_flows"):
        compared(HOOKED, [trial(0, conditions=changed)], ["kubernetes_version"])


def test_the_longest_observation_follows_the_grace_period() -> None:
    longer = {"config.grace_period_seconds": 30, "config.observe_timeout_seconds": 60.0}
    found = compared(HOOKED, [trial(0, conditions=longer)] * 5)
    assert [each.field for each in found.scenarios[0].asked] == sorted(longer)


def test_a_field_that_nobody_has_is_refused() -> None:
    with pytest.raises(ComparisonError, match="--across kubernets: no report has such"):
        compared(HOOKED, HOOKED, ["kubernets"])


def test_scenarios_are_matched_by_their_names() -> None:
    here = Run(name="A", scenarios={"x": HOOKED, "gone": HOOKED})
    there = Run(name="B", scenarios={"x": HOOKED, "new": HOOKED})
    found = compare(here, there)
    assert [each.id for each in found.scenarios] == ["x"]
    assert (found.only_in_baseline, found.only_in_run) == (("gone",), ("new",))
    with pytest.raises(ComparisonError, match="no scenario in common: A has gone, x, B has none"):
        compare(here, Run(name="B", scenarios={}))


def test_what_was_left_out_is_no_pass() -> None:
    here = Run(name="A", scenarios={"x": HOOKED}, refused={"mixed": "they differ"})
    found = compare(here, Run(name="B", scenarios={"x": HOOKED, "mixed": HOOKED}))
    assert found.verdict is Verdict.INSUFFICIENT_EVIDENCE
    assert found.left_out == {"mixed": "they differ"}
    assert found.only_in_run == ()


def test_a_question_more_costs_evidence_and_a_constant_figure_does_not() -> None:
    def runs(others: int, moving: bool) -> Comparison:
        def side(losing: bool) -> dict[str, list[Repeat]]:
            rest = {
                f"s{n}": [trial(7 + k % 3 if moving else 7) for k in range(5)]
                for n in range(others)
            }
            return {**rest, "hook": LOSING if losing else HOOKED}

        return compare(Run(name="A", scenarios=side(False)), Run(name="B", scenarios=side(True)))

    assert runs(others=20, moving=False).verdict is Verdict.REGRESSION
    assert runs(others=20, moving=False).questions == 1
    assert runs(others=5, moving=True).verdict is Verdict.REGRESSION
    lost = runs(others=6, moving=True)
    assert lost.verdict is Verdict.INSUFFICIENT_EVIDENCE
    (hook,) = (s for s in lost.scenarios if s.id == "hook")
    (it,) = (f for f in hook.figures if f.name == FAILED)
    assert (it.needed and it.needed.of_each) == 6


def test_a_constant_figure_is_a_pass_only_if_it_could_have_been_one_more_question() -> None:
    def verdict(moving: int) -> Verdict:
        rest = {f"s{n}": [trial(7 + k % 3) for k in range(5)] for n in range(moving)}
        side = {**rest, "still": [trial(0)] * 5}
        found = compare(Run(name="A", scenarios=side), Run(name="B", scenarios=side))
        assert {each.verdict for each in found.scenarios if each.id != "still"} == (
            {Verdict.NO_CHANGE}
        )
        return next(each.verdict for each in found.scenarios if each.id == "still")

    assert (verdict(moving=5), verdict(moving=6)) == (
        Verdict.NO_CHANGE,
        Verdict.INSUFFICIENT_EVIDENCE,
    )


def test_where_connections_were_not_counted_durations_lead() -> None:
    def side(*windows_ms: int | None) -> list[Repeat]:
        return [
            replace(
                trial(
                    DEAD_WINDOW=None if ms is None else at(ms),
                    SIGTERM=at(30),
                ),
                tallies={},
            )
            for ms in windows_ms
        ]

    found = compared(side(200, 201, 202, 203, 204), side(200, 201, 202, 203, None))
    assert figure(found, Metric.SIGTERM).verdict is Verdict.NO_CHANGE
    assert figure(found, Metric.DEAD_WINDOW).verdict is Verdict.INSUFFICIENT_EVIDENCE
    assert found.verdict is Verdict.INSUFFICIENT_EVIDENCE
    counted = [replace(each, tallies={FAILED: Interval.point(0)}) for each in side(200, None)]
    four = compared([*counted, *counted, *counted], [*counted, *counted, *counted])
    assert figure(four, Metric.DEAD_WINDOW).verdict is Verdict.INSUFFICIENT_EVIDENCE
    assert four.verdict is Verdict.NO_CHANGE, "surely none was lost"


def test_holms_correction() -> None:
    p = [Fraction(1, 100), Fraction(4, 100), Fraction(3, 100), Fraction(5, 1000)]
    assert corrected(p) == [Fraction(3, 100), Fraction(6, 100), Fraction(6, 100), Fraction(2, 100)]
    assert corrected([]) == []


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(Unit),
            st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1)), min_size=8, max_size=8),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_equal_runs_rarely_differ(pools: list[tuple[Unit, list[tuple[int, int]]]]) -> None:
    """Eight trials of one thing, shared out in every way: at most 5 % claim anything.

    This is the level, exactly: not one sample of it.
    """
    scale = {Unit.COUNT: 1, Unit.NS: 15 * NS_PER_MS}
    every, wrong = 0, 0
    for chosen in combinations(range(8), 4):
        asked = []
        for unit, pool in pools:
            values = [Interval(lo * scale[unit], (lo + width) * scale[unit]) for lo, width in pool]
            asked.append(
                Figure(
                    name="any",
                    unit=unit,
                    baseline=tuple(v for k, v in enumerate(values) if k not in chosen),
                    run=tuple(values[k] for k in chosen),
                )
            )
        found = weigh(asked)
        claims = {Verdict.REGRESSION, Verdict.IMPROVEMENT}
        wrong += any(each.verdict in claims for each in found.figures)
        every += 1
    assert Fraction(wrong, every) <= LEVEL
