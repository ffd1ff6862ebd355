"""Comparing runs: what is claimed, what is not, and what may be compared at all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.repeats.aggregate import Repeat
from pytest_drainwatch.core.repeats.alike import ComparisonError
from pytest_drainwatch.core.repeats.claim import Value
from pytest_drainwatch.core.repeats.compare import Run, compare
from pytest_drainwatch.core.repeats.compared import Comparison, FigureFound, Verdict
from pytest_drainwatch.core.repeats.evidence import Evidence, weigh
from pytest_drainwatch.core.repeats.judged import Figure, Unit
from pytest_drainwatch.core.repeats.metrics import Metric, OwnMetric, Reading, Tally
from pytest_drainwatch.core.repeats.questions import LEVEL, corrected

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
    assert figure(found).why == "what is not known of it would decide"
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
    in_doubt = figure(found, Metric.SIGTERM_TO_READY_FALSE)
    assert in_doubt.verdict is Verdict.INSUFFICIENT_EVIDENCE
    assert in_doubt.why == "what is not known of it would decide"
    assert found.verdict is Verdict.NO_CHANGE, "surely none was lost"


def test_bounds_too_wide_to_decide_are_no_pass_and_narrow_ones_are() -> None:
    """A dead window known to 300 ms: a shift of 220 ms lies within what is not known."""

    def windows(at_ms: int, width_ms: int) -> list[Repeat]:
        return [trial(0, DEAD_WINDOW=at(at_ms + n, width_ms)) for n in range(5)]

    def verdict(here: list[Repeat], there: list[Repeat]) -> Verdict | None:
        return figure(compared(here, there), Metric.DEAD_WINDOW).verdict

    assert verdict(windows(300, 300), windows(520, 300)) is Verdict.INSUFFICIENT_EVIDENCE
    assert verdict(windows(300, 1), windows(520, 1)) is Verdict.REGRESSION
    assert verdict(windows(300, 1), windows(301, 1)) is Verdict.NO_CHANGE
    # So wide that even within it nothing counts: by 20 ms, and no more, it may differ.
    assert verdict(windows(300, 8), windows(303, 8)) is Verdict.NO_CHANGE


def test_numbers_without_bounds_are_known_to_their_last_digit() -> None:
    def shown(*values: int) -> list[Repeat]:
        return [trial(0, DEAD_WINDOW=Reading(shown_ns=ms * NS_PER_MS)) for ms in values]

    found = compared(shown(100, 101, 102, 103, 104), shown(123, 124, 125, 126, 127))
    window = figure(found, Metric.DEAD_WINDOW)
    assert window.verdict is Verdict.INSUFFICIENT_EVIDENCE, "123 - 104 may be 17, or 21"
    assert figure(found, Metric.DEAD_WINDOW).shift.median == (  # type: ignore[union-attr]
        21 * NS_PER_MS,
        25 * NS_PER_MS,
    )
    assert any("without bounds" in note for note in found.scenarios[0].notes)
    apart = compared(shown(100, 101, 102, 103, 104), shown(130, 131, 132, 133, 134))
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


def scenarios(
    hook: Sequence[Repeat], moving: int = 0, still: int = 0, name: str = "A", count: int = 5
) -> Run:
    """A scenario, and others: such as lose now more and now less, and such as never do."""
    noisy = {f"m{n}": [trial(7 + k) for k in range(count)] for n in range(moving)}
    quiet = {f"s{n}": [trial(7)] * count for n in range(still)}
    return Run(name=name, scenarios={"hook": hook, **noisy, **quiet})


def of(found: Comparison, scenario: str, name: str = FAILED) -> FigureFound:
    (its,) = (each for each in found.scenarios if each.id == scenario)
    (it,) = (each for each in its.figures if each.name == name)
    return it


def test_figures_that_never_move_cost_nothing() -> None:
    found = compare(scenarios(HOOKED, still=20), scenarios(LOSING, still=20))
    assert found.verdict is Verdict.REGRESSION
    assert (found.questions, found.questions_together) == (1, 1)
    (together,) = found.together
    assert (together.verdict, together.moved) == (Verdict.REGRESSION, ("hook",))
    assert len(together.scenarios) == 21


def test_one_scenario_among_many_that_move_is_not_proven_by_five_repeats() -> None:
    """The whole looked, and says so; the scenario says what it takes alone."""
    found = compare(scenarios(HOOKED, moving=9), scenarios(LOSING, moving=9))
    assert found.verdict is Verdict.NO_CHANGE
    assert [each.verdict for each in found.together] == [Verdict.NO_CHANGE]
    hook = of(found, "hook")
    assert hook.verdict is Verdict.INSUFFICIENT_EVIDENCE
    assert hook.needed is not None
    enough = hook.needed.of_each
    assert enough == 6
    more = compare(
        scenarios([trial(0)] * enough, moving=9, count=enough),
        scenarios(
            [trial(130 + n, conditions=WITHOUT) for n in range(enough)], moving=9, count=enough
        ),
    )
    assert of(more, "hook").verdict is Verdict.REGRESSION, "as was promised"
    assert more.verdict is Verdict.REGRESSION


def test_one_scenario_that_seems_to_have_moved_is_no_pass() -> None:
    """Among so few others it would be proven, had nobody asked for the durations as well."""

    def side(hook: Sequence[Repeat], name: str) -> Run:
        durations = {
            Metric[each]: [at(100 * k) for k in range(5)]
            for each in ("SIGTERM", "SIGTERM_TO_READY_FALSE", "DEAD_WINDOW")
        }

        def with_them(repeats: Sequence[Repeat]) -> list[Repeat]:
            return [
                replace(each, metrics={name: of[k] for name, of in durations.items()})
                for k, each in enumerate(repeats)
            ]

        both = {"hook": hook, "noisy": [trial(7 + k) for k in range(5)]}
        return Run(name=name, scenarios={each: with_them(both[each]) for each in both})

    found = compare(side(HOOKED, "A"), side(LOSING, "B"), across=("pre_stop",))
    (together,) = found.together
    assert found.verdict is together.verdict is Verdict.INSUFFICIENT_EVIDENCE
    assert together.moved == ("hook",)
    assert "seems to have moved" in str(together.why)
    assert together.needed is not None
    assert together.needed.of_each == 6
    assert compare(side(HOOKED, "A"), side(HOOKED, "B")).verdict is Verdict.NO_CHANGE


def test_what_no_scenario_proves_alone_all_of_them_prove_together() -> None:
    """A matrix of ten noisy scenarios, of which each loses a little more than before."""
    here = {f"m{n}": [trial(7 + k % 3) for k in range(5)] for n in range(10)}
    there = {f"m{n}": [trial(9 + k % 3) for k in range(5)] for n in range(10)}
    found = compare(Run(name="A", scenarios=here), Run(name="B", scenarios=there))
    (together,) = found.together
    assert found.verdict is together.verdict is Verdict.REGRESSION
    back = compare(Run(name="B", scenarios=there), Run(name="A", scenarios=here))
    assert back.verdict is Verdict.IMPROVEMENT
    alike = compare(Run(name="A", scenarios=here), Run(name="B", scenarios=here))
    assert alike.verdict is alike.together[0].verdict is Verdict.NO_CHANGE


def test_two_repeats_of_each_scenario_are_too_few_for_all_together() -> None:
    side = {f"m{n}": [trial(0)] * 2 for n in range(10)}
    found = compare(Run(name="A", scenarios=side), Run(name="B", scenarios=side))
    (together,) = found.together
    assert found.verdict is together.verdict is Verdict.INSUFFICIENT_EVIDENCE
    assert together.needed is not None
    assert together.needed.of_each == 5


@pytest.mark.parametrize("moving", [0, 3, 9, 30])
def test_an_unchanged_run_passes_however_many_scenarios_move(moving: int) -> None:
    side = scenarios(HOOKED, moving=moving, still=2)
    assert compare(side, replace(side, name="B")).verdict is Verdict.NO_CHANGE


def test_a_scenario_of_which_nothing_is_known_is_no_pass_of_the_whole() -> None:
    doubtful = [trial(Interval(0, 200))] * 5
    found = compare(scenarios(HOOKED, moving=9), scenarios(doubtful, moving=9))
    assert found.verdict is Verdict.INSUFFICIENT_EVIDENCE
    assert found.together[0].why == "what is not known of it would decide"


def nothing() -> Repeat:
    """A void trial: a repeat without figures."""
    return Repeat(label="void", conditions=CONDITIONS, metrics={}, fates={})


def test_a_void_trial_is_a_repeat_of_which_nothing_is_known() -> None:
    half = compare(
        scenarios(HOOKED, still=3), scenarios([*HOOKED, *(nothing() for _ in range(5))], still=3)
    )
    assert half.verdict is Verdict.INSUFFICIENT_EVIDENCE
    assert of(half, "hook").why == "not measured in 5 of 10 repeats of the run"
    assert half.together[0].why == "not measured in every repeat of 1 of 4 scenarios"
    proven = compared([trial(0)] * 10, [*[trial(140)] * 9, nothing()])
    assert proven.verdict is Verdict.REGRESSION, "whatever the tenth was"


def test_a_scenario_without_a_measured_trial_is_no_pass() -> None:
    gone = {"gone": "not one trial measured it"}
    both = compare(
        Run(name="A", scenarios={"x": HOOKED}, refused=gone),
        Run(name="B", scenarios={"x": HOOKED}, refused={"gone": "neither here"}),
    )
    assert both.verdict is Verdict.INSUFFICIENT_EVIDENCE
    assert both.left_out == {"gone": "not one trial measured it; neither here"}


FOR = OwnMetric.NEW_FAILED


def failing(
    *for_ms: float, number: int = 100, trigger: str = "delete", width_ms: float = 0
) -> list[Repeat]:
    """So many new connections failed in each, and for so long."""
    return [
        replace(
            trial(number, conditions={"config.trigger": trigger}),
            own_metrics={FOR: at(ms + width_ms, width_ms)},
        )
        for ms in for_ms
    ]


def test_what_counts_is_for_how_long_and_not_how_densely_was_tried() -> None:
    """2.2 s in a dense part are 110 attempts, 5 s in a sparse one are 50."""
    short, long = failing(*range(2200, 2205), number=110), failing(*range(5000, 5005), number=50)
    worse = compared(short, long)
    assert worse.verdict is figure(worse, FOR).verdict is Verdict.REGRESSION
    number = figure(worse)
    assert (number.verdict, number.why) == (None, f"{FOR} is judged instead")
    assert number.shift is not None, "it is shown"
    assert compared(long, short).verdict is Verdict.IMPROVEMENT


def test_new_connections_must_fail_for_longer_by_more_than_the_least_effect() -> None:
    assert compared(failing(*[100] * 5), failing(*[115] * 5)).verdict is Verdict.NO_CHANGE
    assert compared(failing(*[100] * 5), failing(*[125] * 5)).verdict is Verdict.REGRESSION
    doubtful = compared(failing(*[100] * 5), failing(*[110] * 5, width_ms=30))
    assert doubtful.verdict is Verdict.INSUFFICIENT_EVIDENCE


@pytest.mark.parametrize("trigger", ["scale", "namespace-delete"])
def test_where_nobody_is_left_to_serve_they_fail_as_long_as_one_looks(trigger: str) -> None:
    here = failing(*[60_000] * 5, trigger=trigger)
    there = failing(*[61_000] * 5, trigger=trigger, number=110)
    found = compared(here, there)
    for name in (FOR, FAILED):
        assert figure(found, name).verdict is None
        assert f"after {trigger} nobody is left to serve" in str(figure(found, name).why)
    assert found.verdict is not Verdict.REGRESSION
    assert compared(failing(*[60_000] * 5), failing(*[61_000] * 5)).verdict is Verdict.REGRESSION


def test_more_repeats_than_can_be_computed_are_refused() -> None:
    with pytest.raises(ComparisonError, match="scenario hook: 60 repeats against 61; expected at"):
        compared([trial(0)] * 60, [trial(0)] * 61)


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


POOL = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1)), min_size=8, max_size=8)
CLAIMS = {Verdict.REGRESSION, Verdict.IMPROVEMENT}
SCALE = {Unit.COUNT: 1, Unit.NS: 15 * NS_PER_MS}


def known(unit: Unit, pool: Sequence[tuple[int, int] | None]) -> list[Value]:
    return [
        None if at is None else Interval(at[0] * SCALE[unit], sum(at) * SCALE[unit]) for at in pool
    ]


def claims(found: Evidence) -> bool:
    together = any(each.verdict in CLAIMS for each in found.together)
    return together or any(each.verdict in CLAIMS for each in found.figures)


def shared_out(values: Sequence[Value], chosen: Collection[int], **more: Any) -> Figure:
    return Figure(
        name="any",
        baseline=tuple(v for k, v in enumerate(values) if k not in chosen),
        run=tuple(v for k, v in enumerate(values) if k in chosen),
        **more,
    )


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(Unit), POOL), min_size=1, max_size=3))
def test_equal_runs_rarely_differ(pools: list[tuple[Unit, list[tuple[int, int]]]]) -> None:
    """Eight trials of one thing, shared out in every way: at most 5 % claim anything.

    This is the level, exactly: not one sample of it.
    """
    every, wrong = 0, 0
    for chosen in combinations(range(8), 4):
        asked = [shared_out(known(unit, pool), chosen, unit=unit) for unit, pool in pools]
        found = weigh(asked)
        wrong += claims(found)
        every += 1
    assert Fraction(wrong, every) <= LEVEL


def test_of_distinct_values_as_many_comparisons_claim_something_as_may() -> None:
    """Two scenarios, of six trials and of eight, that nobody can tell apart; each shared out in
    every way. None could claim anything alone but by four against four.
    """
    six, eight = (3, 9, 1, 11, 5, 7), (5, 15, 1, 9, 13, 3, 11, 7)
    every, wrong, whole = 0, 0, 0
    for one in combinations(range(6), 3):
        for other in combinations(range(8), 4):
            found = weigh(
                [
                    shared_out(
                        [Interval.point(x) for x in values],
                        chosen,
                        unit=Unit.COUNT,
                        together=FAILED,
                    )
                    for values, chosen in ((six, one), (eight, other))
                ]
            )
            (together,) = found.together
            assert together.corrected == min(1, together.p / Fraction(1, 5))
            whole += together.verdict in CLAIMS
            wrong += claims(found)
            every += 1
    assert Fraction(wrong, every) <= LEVEL
    assert 0 < Fraction(whole, every) <= LEVEL / 5
    # Both wholly apart, or but for a pair in either of them; and that in both directions.
    assert whole == 2 * (1 + 2)
    assert Fraction(wrong, every) >= Fraction(2, 70), "four against four, wholly apart"


@pytest.mark.parametrize("tallies", [0, 1, 2, 3])
def test_how_the_level_is_shared(tallies: int) -> None:
    """A fifth for each question about all scenarios that is one; the rest for single figures."""
    apart = [Interval.point(2 * n * NS_PER_MS * 1000) for n in range(16)]
    asked = [
        *(
            shared_out(apart, range(8, 16), unit=Unit.COUNT, together=tally)
            for tally in list(Tally)[:tallies]
            for _ in range(2)
        ),
        # Of one that never moves all scenarios together are no question.
        shared_out([Interval.point(0)] * 16, range(8), unit=Unit.COUNT, together=FAILED),
        shared_out(apart, range(8, 16), unit=Unit.NS),
    ]
    found = weigh(asked)
    assert found.questions_together == tallies
    assert found.questions == 2 * tallies + 1
    smallest = Fraction(2, comb(16, 8))
    duration = found.figures[-1]
    rest = 1 - Fraction(tallies, 5)
    assert duration.p == pytest.approx(float(smallest))
    assert duration.p_corrected == pytest.approx(float(smallest * (2 * tallies + 1) / rest))
    for each in found.together[:tallies]:
        assert each.p == 2 * Fraction(1, comb(16, 8)) ** 2
        assert each.corrected == 5 * each.p
        assert each.verdict is Verdict.REGRESSION
    # The share of one that is answered goes on to its two members.
    for figure in found.figures[: 2 * tallies]:
        own = min(smallest * (2 * tallies + 1) / rest, smallest * 2 * 5)
        assert figure.p_corrected == pytest.approx(float(own))


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([(5, 5), (3, 6), (7, 4)]),
    st.lists(
        st.tuples(
            st.sampled_from(Unit),
            st.sampled_from([None, *Tally]),
            st.lists(
                st.none() | st.tuples(st.integers(0, 6), st.integers(0, 1)),
                min_size=11,
                max_size=11,
            ),
        ),
        min_size=1,
        max_size=5,
    ),
)
def test_equal_runs_of_any_size_rarely_differ(
    sizes: tuple[int, int],
    pools: list[tuple[Unit, Tally | None, list[tuple[int, int] | None]]],
) -> None:
    """The same of one scenario with lost connections, unequal sides, and gaps."""
    every, wrong = 0, 0
    for chosen in combinations(range(sum(sizes)), sizes[1]):
        asked = [
            shared_out(known(unit, pool)[: sum(sizes)], chosen, unit=unit, together=tally)
            for unit, tally, pool in pools
        ]
        found = weigh(asked)
        wrong += claims(found)
        every += 1
    assert Fraction(wrong, every) <= LEVEL


# A scenario has one figure of each tally: what is asked of all scenarios rests on that, for the
# trials of one scenario are shared out alike for all of its figures.
ONE_OF_EACH = st.dictionaries(
    st.sampled_from([tally for tally in Tally if tally != Tally.HTTP_REQUESTS_FAILED]),
    st.tuples(
        st.sampled_from(Unit),
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), min_size=6, max_size=6),
    ),
    min_size=2,
)
Pools = dict[Tally, tuple[Unit, list[tuple[int, int]]]]


@settings(max_examples=6, deadline=None)
@given(ONE_OF_EACH, ONE_OF_EACH)
def test_equal_runs_of_several_scenarios_rarely_differ(here: Pools, there: Pools) -> None:
    """Two scenarios of six trials, each shared out for itself, in every way."""
    pools = [(unit, tally, pool) for side in (here, there) for tally, (unit, pool) in side.items()]
    half = len(here)
    every, wrong = 0, 0
    for one in combinations(range(6), 3):
        for other in combinations(range(6), 3):
            found = weigh(
                [
                    shared_out(
                        known(unit, pool), one if n < half else other, unit=unit, together=tally
                    )
                    for n, (unit, tally, pool) in enumerate(pools)
                ]
            )
            wrong += claims(found)
            every += 1
    assert Fraction(wrong, every) <= LEVEL
