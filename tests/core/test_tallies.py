"""What must not be, counted: surely so many, and at most so many; None is nothing to lose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import FlowReport, Report
from pytest_drainwatch.core.flow.classify import Outcome, Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.probing.document import NewConnections, ObservedFailing, TriedEvery
from pytest_drainwatch.core.repeats.aggregate import PoolError, pool
from pytest_drainwatch.core.repeats.metrics import OwnMetric, Tally
from pytest_drainwatch.core.repeats.repeat import conditions, failed_for, failing, repeat, tallies
from pytest_drainwatch.core.scenario import Scenario
from tests.core.trials import recording_of

WHOLE = derive(recording_of(Scenario()))
FLOW = WHOLE.trial.flows[0]


def of(flows: tuple[FlowReport, ...] = (), *probers: NewConnections) -> Report:
    return replace(WHOLE, trial=replace(WHOLE.trial, flows=flows, new_connections=probers))


def ended(outcome: Outcome, role: Role | None = Role.TARGET) -> FlowReport:
    return replace(FLOW, outcome=outcome, role=role)


def prober(proto: Proto = Proto.TCP, **changes: Any) -> NewConnections:
    plain = NewConnections(
        prober="new",
        proto=proto,
        interval_ns=5 * NS_PER_MS,
        source=None,
        attempts=100,
        failed=0,
        failure_rate=None,
        results={},
        lost=0,
    )
    return replace(plain, **changes)


@pytest.mark.parametrize(
    ("flows", "target", "bystander"),
    [
        ((), None, None),
        ((ended(Outcome.DRAINED),), Interval(0, 0), None),
        ((ended(Outcome.SURVIVED),), Interval(0, 0), None),
        ((ended(Outcome.SEVERED), ended(Outcome.READ_TIMEOUT)), Interval(2, 2), None),
        ((ended(Outcome.SEVERED), ended(Outcome.NOT_MEASURED)), Interval(1, 2), None),
        (
            (ended(Outcome.DRAINED), ended(Outcome.SEVERED, Role.BYSTANDER)),
            Interval(0, 0),
            Interval(1, 1),
        ),
        # Whose this one was nobody knows: it may count for either, and surely for none.
        (
            (ended(Outcome.DRAINED), ended(Outcome.SEVERED, None)),
            Interval(0, 1),
            None,
        ),
        ((ended(Outcome.SEVERED, None),), None, None),
    ],
)
def test_flows_lost(
    flows: tuple[FlowReport, ...], target: Interval | None, bystander: Interval | None
) -> None:
    found = tallies(of(flows))
    assert found[Tally.TARGET_FLOWS_LOST] == target
    assert found[Tally.BYSTANDER_FLOWS_LOST] == bystander


@pytest.mark.parametrize(
    ("probers", "expected"),
    [
        ((), None),
        ((prober(attempts=0),), None),
        ((prober(),), Interval(0, 0)),
        ((prober(failed=7),), Interval(7, 7)),
        ((prober(failed=7, not_judged=2, lost=1),), Interval(7, 10)),
        ((prober(attempts=0, not_judged=3),), Interval(0, 3)),
        ((prober(failed=7, lost=None),), None),
        ((prober(failed=7), prober(Proto.UDP, failed=5, not_judged=1)), Interval(12, 13)),
    ],
)
def test_new_connections_failed(
    probers: tuple[NewConnections, ...], expected: Interval | None
) -> None:
    assert tallies(of((), *probers))[Tally.NEW_CONNECTIONS_FAILED] == expected


def span(lo: int, hi: int) -> ObservedFailing:
    return ObservedFailing(
        begun_ns=(0, 0),
        first_ns=(0, 0),
        last_ns=(0, 0),
        lasts_ns=(lo, hi),
        attempts=1,
        failures=1,
    )


def test_for_how_long_new_connections_failed() -> None:
    def within(*probers: NewConnections) -> Interval | None:
        found = failing(probers).get(OwnMetric.NEW_TCP_FAILING)
        return None if found is None else found.within

    assert within(prober(failed=3, observed_failing=span(5, 9))) == Interval(5, 9)
    assert within(prober()) == Interval(0, 0)
    assert within() is None
    # None that failed was seen, and one of these may have.
    assert within(prober(not_judged=1)) is None
    assert within(prober(lost=1)) is None
    assert within(prober(lost=None)) is None
    assert within(prober(attempts=0)) is None
    # At several nodes it is the longest, which of two that overlap is not known.
    here, there = span(5, 9), span(7, 8)
    assert within(
        prober(failed=3, observed_failing=here), prober(failed=2, observed_failing=there)
    ) == Interval(7, 9)
    assert within(prober(failed=3, observed_failing=here), prober()) == Interval(5, 9)
    assert within(prober(failed=3, observed_failing=here), prober(lost=1)) is None
    assert failing([prober()]).keys() == {OwnMetric.NEW_TCP_FAILING}, "none of UDP were tried"
    both = failing([prober(Proto.UDP, observed_failing=span(1, 2)), prober()])
    assert both[OwnMetric.NEW_UDP_FAILING] != both[OwnMetric.NEW_TCP_FAILING]


def every(interval_ms: int, attempts: int, failed: int, **more: int) -> TriedEvery:
    return TriedEvery(
        interval_ns=interval_ms * NS_PER_MS,
        attempts=attempts,
        failed=failed,
        not_judged=more.pop("not_judged", 0),
        failure_rate=None,
        **more,
    )


def for_ms(*probers: NewConnections, sparse_ms: float | None = None) -> tuple[float, float] | None:
    trial = replace(
        of((), *probers).trial, config={"probe_sparse_interval_ms": sparse_ms, "access": "x"}
    )
    reading = failed_for(replace(WHOLE, trial=trial))[OwnMetric.NEW_FAILED]
    if reading is None:
        return None
    assert reading.within is not None
    assert reading.shown_ns == reading.within.lo, "surely so long"
    return reading.within.lo / NS_PER_MS, reading.within.hi / NS_PER_MS


def test_for_how_long_in_all_new_connections_failed() -> None:
    assert failed_for(of(())) == {}
    assert for_ms(prober()) == (0, 0)
    assert for_ms(prober(failed=7)) == (35, 35), "one density: of before there were two"
    dense = prober(by_interval=(every(20, 400, 110), every(100, 180, 0)))
    sparse = prober(by_interval=(every(20, 400, 0), every(100, 180, 50)))
    assert (for_ms(dense), for_ms(sparse)) == ((2200, 2200), (5000, 5000))
    both = prober(by_interval=(every(20, 400, 1), every(100, 180, 1)))
    assert for_ms(both, prober(Proto.UDP, failed=2)) == (130, 130)


def test_what_nobody_knows_of_new_connections_may_have_been_a_failure() -> None:
    parts = (every(20, 400, 1, not_judged=2), every(100, 180, 0, not_judged=1))
    assert for_ms(prober(by_interval=parts)) == (20, 160)
    assert for_ms(prober(by_interval=parts, lost=3)) == (20, 460), "where, is not known"
    assert for_ms(prober(failed=1, lost=3), sparse_ms=50.0) == (5, 155)
    missed = every(20, 400, 0, planned_slots=404, not_judged=1)
    assert for_ms(prober(by_interval=(missed,))) == (0, 80)
    assert for_ms(prober(lost=None)) is None
    assert for_ms(prober(interval_ns=None)) is None
    assert for_ms(prober(attempts=0)) is None


def test_the_build_is_one_condition() -> None:
    named = [name for name in conditions(WHOLE) if "git_commit" in name or "version" in name]
    assert "git_commit" in named
    assert "drainwatch_version" in named
    assert not {"environment.git_commit", "environment.drainwatch_version"} & set(named)


roles = st.sampled_from([Role.TARGET, Role.BYSTANDER, None])


@given(st.lists(st.tuples(st.sampled_from(Outcome), roles), max_size=8), st.integers(0, 7))
def test_learning_more_never_contradicts(
    flows: list[tuple[Outcome, Role | None]], which: int
) -> None:
    """Whatever a flow that was not measured turns out to be, the truth was within."""
    before = tuple(ended(outcome, role) for outcome, role in flows)
    unknown = [n for n, (outcome, _) in enumerate(flows) if outcome is Outcome.NOT_MEASURED]
    if not unknown:
        return
    place = unknown[which % len(unknown)]
    wide = tallies(of(before))
    for outcome in (Outcome.SEVERED, Outcome.DRAINED):
        changed = replace(before[place], outcome=outcome)
        narrow = tallies(of((*before[:place], changed, *before[place + 1 :])))
        for tally in (Tally.TARGET_FLOWS_LOST, Tally.BYSTANDER_FLOWS_LOST):
            here, there = wide[tally], narrow[tally]
            assert (here is None) == (there is None)
            if here is not None and there is not None:
                assert here.lo <= there.lo <= there.hi <= here.hi


def test_tallies_become_statistics_with_bounds() -> None:
    lost = (ended(Outcome.SEVERED), ended(Outcome.NOT_MEASURED))
    repeats = [
        repeat(of(flows), f"r{n:02d}")
        for n, flows in enumerate([lost, (ended(Outcome.DRAINED),), lost[:1]])
    ]
    found = pool("x", repeats).tallies["target_flows_lost"]
    assert found.values == ((1, 2), (0, 0), (1, 1))
    assert (found.min, found.median, found.max) == ((0, 0), (1, 1), (1, 2))
    assert found.median_interval is not None
    assert (found.median_interval.lo, found.median_interval.hi) == (0, 2)
    assert found.median_interval.coverage == 0.75
    nothing = pool("x", repeats).tallies["bystander_flows_lost"]
    assert (nothing.observed, nothing.not_measured, nothing.median) == (0, 3, None)
    some = pool("x", [repeats[0], repeat(of(), "r01")]).tallies["target_flows_lost"]
    assert (some.observed, some.not_measured, some.median_interval) == (1, 1, None)


def test_counts_are_per_outcome_and_per_mechanism() -> None:
    both = of((ended(Outcome.DRAINED), ended(Outcome.SEVERED), ended(Outcome.SEVERED)))
    found = pool("x", [repeat(both, "r00"), repeat(both, "r01")])
    assert found.outcomes == {"target tcp": {"drained-clean-close": 2, "severed": 4}}
    assert found.mechanisms == {"target tcp": {"announced-fin": 6}}
    assert [(fate.outcome, fate.per_repeat) for fate in found.fates] == [
        ("drained-clean-close", (1, 1)),
        ("severed", (2, 2)),
    ]


# What the issue names, each as our own reports hold it.
ASKED = {
    "grace_period_seconds": 11,
    "tcp_flows": 11,
    "udp_flows": 11,
    "udp_one_way_flows": 1,
    "tcp_rate_hz": 11,
    "udp_rate_hz": 11,
    "tcp_sparse_rate_hz": 3,
    "udp_sparse_rate_hz": 3,
    "probe_interval_ms": 6.0,
    "udp_probe_interval_ms": 6.0,
    "probe_sparse_interval_ms": 60.0,
    "trigger": "evict",
    "replicas": 2,
    "pre_stop": {"sleep_s": 5},
}
PLACES: dict[str, object] = {
    "kubernetes_version": "v1.34.0",
    "kube_proxy_mode": "nftables",
    "min_sync_period_ms": 10_000,
    "node_count": 2,
}
BUILDS = {"drainwatch_version": "9.9", "git_commit": "else"}


@pytest.mark.parametrize("field", [*ASKED, *PLACES, *BUILDS])
def test_what_shapes_a_result_is_never_pooled_and_named(field: str) -> None:
    asked = replace(WHOLE, trial=replace(WHOLE.trial, config=Scenario().config()))
    if field in ASKED:
        config = {**asked.trial.config, field: ASKED[field]}
        assert field in asked.trial.config
        other = replace(asked, trial=replace(asked.trial, config=config))
    elif field in PLACES:
        place: dict[str, Any] = {field: PLACES[field]}
        other = replace(asked, environment=replace(asked.environment, **place))
    else:
        other = replace(asked, **{field: BUILDS[field]})  # type: ignore[arg-type]
    assert pool("x", [repeat(asked, "r00"), repeat(asked, "r01")])
    with pytest.raises(PoolError, match=rf"\b{field} is .+ in r00 and .+ in r01"):
        pool("x", [repeat(asked, "r00"), repeat(other, "r01")])


def test_which_repeat_it_was_and_of_which_test_shapes_nothing() -> None:
    one = replace(WHOLE, trial=replace(WHOLE.trial, test="a.py::t[r00]", repeat=0))
    two = replace(WHOLE, trial=replace(WHOLE.trial, test="a.py::t[r01]", repeat=1))
    assert pool("x", [repeat(one, "r00"), repeat(two, "r01")]).repeats == ("r00", "r01")
