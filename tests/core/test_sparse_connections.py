"""New connections where the plan is sparse: each stands for more time, and is placed as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import comb
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.probing import counts
from pytest_drainwatch.core.probing.attempts import Run, probers
from pytest_drainwatch.core.probing.binomial import rate_bounds
from pytest_drainwatch.core.probing.document import Doubt, NewConnections
from pytest_drainwatch.core.probing.judge import new_connections
from pytest_drainwatch.core.probing.pieces import Surroundings, all_tried
from pytest_drainwatch.core.probing.planned import Plan
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.scenario import Flows, Scenario, ScenarioError
from pytest_drainwatch.core.stall import NO_STALLS
from tests.core import story as s
from tests.core.tries import TCP_NEW, prober, tries

PERIOD_NS = 5 * NS_PER_MS
EVERY = 10
COUNT = st.integers(0, 400)


def counted(answered: int, failed: int, unknown: int = 0) -> counts.Counts:
    return Counter({Result.ANSWERED: answered, Result.TIMEOUT: failed, Doubt.CLIENT_STALL: unknown})


# --- the rate is one of time ----------------------------------------------------------


@given(answered=COUNT, failed=COUNT, unknown=st.integers(0, 20), lost=st.integers(0, 20))
def test_one_density_is_the_exact_interval(
    answered: int, failed: int, unknown: int, lost: int
) -> None:
    found = counts.rate({EVERY: counted(answered, failed, unknown)}, lost, sparsest=EVERY)
    if answered + failed + unknown + lost == 0:
        assert found is None
    else:
        assert found is not None
        wanted = rate_bounds(failed, answered + failed, unknown=unknown + lost)
        assert (found.low, found.high) == wanted


@pytest.mark.parametrize(
    ("counted_there", "planned"), [((100, 0), {}), ((100, 0), {1: 100, EVERY: 1}), ((0, 0), {})]
)
def test_a_lost_one_may_have_stood_for_more_time_than_any_that_is_left(
    counted_there: tuple[int, int], planned: dict[int, int]
) -> None:
    """100 dense ones were answered; the lost one was sparse, and failed: 10 of 110."""
    found = counts.rate({1: counted(*counted_there)}, 1, planned=planned, sparsest=EVERY)
    assert found is not None
    assert found.low == 0
    assert found.high > 10 / 110
    dense = counts.rate({1: counted(100, 0)}, 1)
    assert dense is not None
    assert dense.high == rate_bounds(0, 100, unknown=1)[1], "where nothing was sparse"


@pytest.mark.parametrize("tried", [1.0, 0.5, 0.1])
def test_slots_that_were_missed_stand_for_their_time(tried: float) -> None:
    """Ten seconds of 5 ms, half of them failing, and forty of 50 ms: a tenth of the time."""
    half = round(1000 * tried)
    both = {1: counted(half, half), EVERY: counted(800, 0)}
    found = counts.rate(both, 0, planned={1: 2000, EVERY: 800})
    assert found is not None
    assert found.low < 0.1 < found.high
    blind = counts.rate(both, 0)
    assert blind is not None
    assert (blind.low < 0.1 < blind.high) == (tried == 1), "by attempts alone it is not in it"


def test_where_everything_was_missed_nothing_is_known() -> None:
    found = counts.rate({1: counted(2000, 0)}, 0, planned={1: 2000, EVERY: 300})
    assert found is not None
    assert found.high > 0.6
    assert counts.rate({}, 0, planned={1: 2000}) is None


def test_dense_parts_do_not_weigh_more_than_their_time() -> None:
    """Ten seconds of 5 ms in which half failed, and forty of 50 ms in which none did."""
    found = counts.rate({1: counted(1000, 1000), EVERY: counted(800, 0)}, 0)
    assert found is not None
    assert found.low < 0.1 < found.high, "a fifth of the time, half of which failed"
    assert found.high < 0.12
    share = counts.rate({1: counted(1800, 1000)}, 0)
    assert share is not None
    assert share.low > 0.3, "what a share of all attempts would say"


def test_of_none_that_failed_the_sparse_part_says_less() -> None:
    both = counts.rate({1: counted(2000, 0), EVERY: counted(200, 0)}, 0)
    alone = counts.rate({1: counted(2000, 0)}, 0)
    assert both is not None
    assert alone is not None
    assert both.low == alone.low == 0
    assert alone.high < both.high < 0.011


@settings(deadline=None)
@example(dense=(100, 0, 0), sparse=(0, 0, 0), lost=1, split=0, failing=1)
@given(
    dense=st.tuples(COUNT, COUNT, st.integers(0, 20)),
    sparse=st.tuples(COUNT, COUNT, st.integers(0, 20)),
    lost=st.integers(0, 20),
    split=st.integers(0, 20),
    failing=st.integers(0, 60),
)
def test_the_rate_holds_whatever_became_of_those_that_are_not_known(
    dense: tuple[int, int, int],
    sparse: tuple[int, int, int],
    lost: int,
    split: int,
    failing: int,
) -> None:
    """The share of the time, had all been known: any unknown may have failed, and been of any."""
    found = counts.rate({1: counted(*dense), EVERY: counted(*sparse)}, lost, sparsest=EVERY)
    if sum(dense) + sum(sparse) + lost == 0:
        assert found is None
        return
    assert found is not None
    assert 0 <= found.low <= found.high <= 1
    lost_dense = min(split, lost)
    weight, failed = 0, 0
    for (answered, bad, unknown), every, more in (
        (dense, 1, lost_dense),
        (sparse, EVERY, lost - lost_dense),
    ):
        unsure = min(failing, unknown + more)
        weight += every * (answered + bad + unknown + more)
        failed += every * (bad + unsure)
    assert found.low <= failed / weight <= found.high


@pytest.mark.parametrize("truth", [(0.0, 0.0), (0.3, 0.0), (0.02, 0.02), (1.0, 0.05)])
def test_it_holds_the_truth_in_95_percent_of_all_trials(truth: tuple[float, float]) -> None:
    """Every outcome of a small trial, weighed by how likely it is."""
    tried, every = (30, 12), (1, EVERY)
    weights = [n * k for n, k in zip(tried, every, strict=True)]
    rate = sum(w * p for w, p in zip(weights, truth, strict=True)) / sum(weights)
    held = 0.0
    for dense in range(tried[0] + 1):
        for sparse in range(tried[1] + 1):
            likely = binomial(tried[0], dense, truth[0]) * binomial(tried[1], sparse, truth[1])
            if likely < 1e-9:
                continue
            found = counts.rate(
                {1: counted(tried[0] - dense, dense), EVERY: counted(tried[1] - sparse, sparse)}, 0
            )
            assert found is not None
            held += likely if found.low <= rate <= found.high else 0
    assert held >= 0.95 - 1e-6


def binomial(tried: int, failed: int, rate: float) -> float:
    return float(comb(tried, failed) * rate**failed * (1 - rate) ** (tried - failed))


# --- where the attempts of a run lie --------------------------------------------------


@settings(deadline=None)
@given(
    gaps=st.lists(st.integers(1, 3), min_size=1, max_size=12),
    late=st.lists(st.integers(0, 4 * NS_PER_MS), min_size=13, max_size=13),
    every=st.sampled_from([1, EVERY]),
)
@example(gaps=[1] * 12, late=[0] * 13, every=EVERY)
def test_each_attempt_lies_within_what_is_said_of_it(
    gaps: list[int], late: list[int], every: int
) -> None:
    slots = [every * n for n in accumulated(gaps)]
    begun = [slot * PERIOD_NS + late[n] for n, slot in enumerate(slots)]
    run = read(slots, begun, every, max(late[: len(slots)]))
    for n, began in enumerate(begun):
        assert run.begun_lo(n) <= began <= run.begun_hi(n)
    if slots[-1] - slots[0] == every * (len(slots) - 1):
        widths = [run.begun_hi(n) - run.begun_lo(n) for n in range(len(slots))]
        assert max(widths) <= max(late), "none was missed, so each slot is known"


def test_a_run_whose_slots_are_too_close_is_damaged() -> None:
    with pytest.raises(LookupError):
        read([0, 5], [0, 5 * PERIOD_NS], EVERY, 0)


def accumulated(gaps: Sequence[int]) -> list[int]:
    found = [0]
    for gap in gaps:
        found.append(found[-1] + gap)
    return found


def read(slots: Sequence[int], begun: Sequence[int], every: int, late_ns: int) -> Run:
    told = {
        "result": "answered", "responder": "pod-a/1", "first_slot": slots[0],
        "last_slot": slots[-1], "count": len(slots), "first_ns": begun[0], "last_ns": begun[-1],
        "first_took_ns": 9, "last_took_ns": 9, "took_min_ns": 9, "took_max_ns": 9,
    }  # fmt: skip
    if every > 1:
        told["every"] = every
    seen = s.client(Event.NEW_CONNECTIONS, TCP_NEW, Interval(begun[0], begun[-1] + 9), **told)
    summary = s.client(
        Event.PROBER_SUMMARY, TCP_NEW, Interval(0, begun[-1] + 9),
        period_ns=PERIOD_NS, epoch_ns=0, late_max_ns=late_ns, attempts=len(slots),
    )  # fmt: skip
    (found,) = probers([seen, summary])
    if not found.runs:
        raise LookupError("damaged")
    return found.runs[0]


# --- what the report says -------------------------------------------------------------


def judged(*parts: Sequence[object], **more: Any) -> NewConnections:
    around = Surroundings(
        t0_ns=s.ns(0), targets={}, workload=frozenset({s.OLD}), names={}, all_pods_known=True,
        stalls=NO_STALLS,
    )  # fmt: skip
    (found,) = new_connections(all_tried(prober(*parts, **more), around), around)  # type: ignore[arg-type]
    return found


def test_the_report_counts_both_densities_apart() -> None:
    found = judged(
        tries(0, 400),
        tries(2000, 400, Result.REFUSED),
        tries(4000, 200, every=EVERY),
    )
    assert [(part.interval_ns, part.attempts, part.failed) for part in found.by_interval] == [
        (PERIOD_NS, 800, 400),
        (EVERY * PERIOD_NS, 200, 0),
    ]
    assert (found.attempts, found.failed) == (1000, 400)
    assert found.failure_rate is not None
    assert found.failure_rate.high < 0.2, "2 of 14 s"
    assert any("5 ms or 50 ms apart" in note for note in found.notes)


def test_of_one_density_nothing_is_weighed() -> None:
    found = judged(tries(0, 400), tries(2000, 400, Result.REFUSED))
    (only,) = found.by_interval
    assert (only.attempts, only.failed, only.failure_rate) == (800, 400, found.failure_rate)
    assert not any("apart" in note for note in found.notes)


def test_the_report_weighs_by_the_plan_since_t0() -> None:
    """Half of the dense slots were missed, and those before t = 0 do not count."""
    parts = (
        tries(-1000, 20, every=EVERY),
        tries(0, 200, Result.REFUSED),
        tries(2000, 200, every=EVERY),
    )
    plan = [(-1000, -500, EVERY, 0), (-500, 2000, 1, 300), (2000, 12_000, EVERY, 0)]
    found = judged(*parts, missed=300, stretches=plan)
    shown = [(one.attempts, one.planned_slots, one.missed_slots) for one in found.by_interval]
    assert shown == [(200, 400, 300), (200, 200, 0)]
    assert found.failure_rate is not None
    assert found.failure_rate.low < 2 / 12 < found.failure_rate.high
    assert any("300 slot(s) were missed: failure_rate takes" in note for note in found.notes)
    older = judged(*parts, missed=300)
    assert older.failure_rate is not None
    assert older.failure_rate.high < 2 / 12, "one second of eleven"
    assert [one.planned_slots for one in older.by_interval] == [None, None]
    assert any("does not tell where" in note for note in older.notes)


@pytest.mark.parametrize("wrong", [(5, 4, 1, 0), (0, 9, 0, 0), (0, 9, True, 0), (0, 9, None, 0)])
def test_a_plan_that_cannot_be_one_is_none(wrong: Any) -> None:
    found = judged(tries(0, 400), stretches=[(-1000, 2000, 1, 0), wrong])
    assert [one.planned_slots for one in found.by_interval] == [None]


@given(
    lo=st.integers(-50, 500), width=st.integers(0, 500), cut=st.integers(-50, 1000),
    every=st.integers(1, 12),
)  # fmt: skip
@example(lo=-1, width=0, cut=0, every=1)
@example(lo=-30, width=200, cut=35, every=3)
def test_slots_are_counted_once_each(lo: int, width: int, cut: int, every: int) -> None:
    stretch = {"at": [lo, lo + width], "every": every, "missed_slots": 0}
    plan = Plan.read([stretch], epoch_ns=7, period_ns=5)
    assert plan is not None
    slots = [t for n in range(0, 400, every) if lo <= (t := 7 + 5 * n) < lo + width]
    assert sum(plan.since(cut).values()) == sum(t >= cut for t in slots)
    middle = max(lo, cut)
    apart = [Interval(lo, middle), Interval(middle, max(middle, lo + width))]
    assert sum(plan.slots(apart).values()) == len(slots)


# --- what a scenario asks for ---------------------------------------------------------


@given(interval_ms=st.integers(1, 60_000))
def test_sparse_slots_are_slots_of_the_dense_grid(interval_ms: int) -> None:
    flows = Flows(probe_interval_ns=interval_ms * NS_PER_MS)
    sparse_ns, none = flows.probe_sparse_intervals_ns
    assert none is None
    assert sparse_ns is not None
    assert sparse_ns % (interval_ms * NS_PER_MS) == 0
    assert interval_ms <= sparse_ns // NS_PER_MS <= max(interval_ms, 100)
    assert sparse_ns <= 10 * interval_ms * NS_PER_MS


def test_one_interval_throughout_can_be_asked_for() -> None:
    told = Scenario(flows=Flows(udp_probe_interval_ns=20 * NS_PER_MS)).config()
    names = ("probe_sparse_interval_ms", "udp_probe_sparse_interval_ms")
    assert [told[name] for name in names] == [50, 100]
    same = Flows(udp_probe_interval_ns=20 * NS_PER_MS, probe_sparse_every=1)
    told = Scenario(flows=same).config()
    assert [told[name] for name in names] == [5, 20]
    assert Scenario(flows=Flows(probe_interval_ns=None)).config()[names[0]] is None


@pytest.mark.parametrize("every", [0, -1, 1001, True, 1.5])
def test_what_is_no_share_of_slots(every: Any) -> None:
    with pytest.raises(ScenarioError, match="probe_sparse_every"):
        Scenario(flows=Flows(probe_sparse_every=every))
