"""The plan of a scenario: dense where something is made to happen, and only there."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.core.plan import AFTER_NS, BEFORE_NS, dense_stretches
from pytest_drainwatch.core.pod.kubelet import kill_after, sigterm_after
from pytest_drainwatch.core.scenario import App, Behavior, ClusterNeeds, Pid1, PreStop, Scenario


def seconds(scenario: Scenario) -> list[tuple[float, float]]:
    return [(at.lo / NS_PER_S, at.hi / NS_PER_S) for at in dense_stretches(scenario)]


def app(behavior: Behavior, grace_s: int, drain_s: int = 25, **more: object) -> Scenario:
    return Scenario(
        app=App(
            behavior=behavior,
            grace_period_s=grace_s,
            drain_ns=drain_s * NS_PER_S,
            **more,  # type: ignore[arg-type]
        )
    )


@pytest.mark.parametrize(
    ("scenario", "dense"),
    [
        # The published matrix: drain ends at 25 s, the grace period at 30 s (32 s at the latest).
        (app(Behavior.DRAIN, 30), [(-0.5, 6), (24.5, 37)]),
        (app(Behavior.DRAIN, 60, 20), [(-0.5, 6), (19.5, 25), (59.5, 67)]),
        (app(Behavior.EXIT_NOW, 30), [(-0.5, 6), (29.5, 37)]),
        (app(Behavior.IGNORE, 30), [(-0.5, 6), (29.5, 37)]),
        # Short ones are dense throughout.
        (app(Behavior.DRAIN, 10, 5), [(-0.5, 17)]),
        (app(Behavior.EXIT_NOW, 0), [(-0.5, 7)]),
        # SIGTERM comes after the hook, and the drain after SIGTERM.
        (
            app(Behavior.DRAIN, 60, 15, pre_stop=PreStop(sleep_s=20)),
            [(-0.5, 6), (19.5, 25), (34.5, 40), (59.5, 67)],
        ),
        # A hook that outlasts the grace period is cut off, and SIGTERM comes then.
        (
            app(Behavior.EXIT_NOW, 20, pre_stop=PreStop(http_ns=50 * NS_PER_S)),
            [(-0.5, 6), (19.5, 27)],
        ),
        # A drain that the kubelet cuts off ends with the kill.
        (app(Behavior.DRAIN, 30, 300), [(-0.5, 6), (29.5, 37)]),
        # Nobody drains if nobody hears of SIGTERM.
        (app(Behavior.DRAIN, 30, 15, pid1=Pid1.SHELL), [(-0.5, 6), (29.5, 37)]),
    ],
)
def test_the_stretches_of_a_scenario(scenario: Scenario, dense: list[tuple[float, float]]) -> None:
    assert seconds(scenario) == dense


def test_a_late_replacement_and_a_slow_kube_proxy_are_known_beforehand() -> None:
    """New connections fail for that long, and the edge of it is what is asked for."""
    late = app(Behavior.DRAIN, 30, ready_after_s=10)
    assert seconds(late) == [(-0.5, 16), (24.5, 37)]
    slow = replace(app(Behavior.DRAIN, 60, 20), cluster=ClusterNeeds(min_sync_period_ms=10_000))
    assert seconds(slow) == [(-0.5, 16), (19.5, 35), (59.5, 77)]
    both = replace(late, cluster=ClusterNeeds(min_sync_period_ms=3000))
    assert seconds(both) == [(-0.5, 19), (24.5, 40)]


@given(
    behavior=st.sampled_from(Behavior),
    grace_s=st.integers(0, 3600),
    drain_s=st.integers(0, 3600),
    hook_ns=st.none() | st.integers(0, 3600 * NS_PER_S),
)
def test_every_time_known_beforehand_lies_within(
    behavior: Behavior, grace_s: int, drain_s: int, hook_ns: int | None
) -> None:
    hook = None if hook_ns is None else PreStop(http_ns=hook_ns)
    stretches = dense_stretches(app(behavior, grace_s, drain_s, pre_stop=hook))
    term_ns, kill_ns = sigterm_after(grace_s, hook_ns or 0), kill_after(grace_s, hook_ns or 0)
    known = [0, term_ns, grace_s * NS_PER_S, kill_ns]
    if behavior is Behavior.DRAIN:
        known.append(min(term_ns + drain_s * NS_PER_S, kill_ns))
    for at_ns in known:
        around = Interval(at_ns - BEFORE_NS // 2, at_ns + AFTER_NS)
        assert any(s.lo <= around.lo and around.hi <= s.hi for s in stretches), at_ns
    for one, other in pairwise(stretches):
        assert one.hi < other.lo, "in order and apart, as the flow agent wants them"
    assert sum(s.width for s in stretches) <= 30 * NS_PER_S, "and elsewhere it is sparse"
