"""Hooks that hold SIGTERM back, each on a real kubelet; those that fail are in tests/cases."""

from __future__ import annotations

import pytest

from pytest_drainwatch import App, Behavior, Trial
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.pod.ending import EndedBy, PreStopOutcome
from pytest_drainwatch.core.scenario import PreStop
from tests.cluster.endings import FEW, asking, end_of, within

pytestmark = pytest.mark.cluster


@asking(
    "pre-stop-sleeps",
    App(
        drain_ns=NS_PER_S,
        grace_period_s=6,
        pre_stop=PreStop(sleep_s=2),
        response_delay_ns=300 * NS_PER_MS,
    ),
)
def test_the_sleep_action_holds_sigterm_back(trial: Trial) -> None:
    """SIGTERM after it, with requests in flight, which a drain still answers."""
    end = end_of(trial)
    assert end.pre_stop is PreStopOutcome.COMPLETED
    assert end.ended_by is EndedBy.EXIT
    within(end.sigterm_ns, 2 * NS_PER_S)
    assert end.pre_stop_ns is not None
    assert end.pre_stop_ns[0] >= 2 * NS_PER_S
    assert end.in_flight_at_sigterm
    assert end.oldest_in_flight_ns is not None
    assert trial.tcp.drained == FEW.tcp


@asking(
    "pre-stop-asks-the-probe",
    App(behavior=Behavior.EXIT_NOW, grace_period_s=5, pre_stop=PreStop(http_ns=1500 * NS_PER_MS)),
)
def test_an_http_hook_holds_sigterm_back_until_it_is_answered(trial: Trial) -> None:
    end = end_of(trial)
    assert end.pre_stop is PreStopOutcome.COMPLETED
    assert end.ended_by is EndedBy.EXIT
    within(end.sigterm_ns, 1500 * NS_PER_MS)
    assert end.pre_stop_ns is not None
    assert end.pre_stop_ns[0] >= 1500 * NS_PER_MS
