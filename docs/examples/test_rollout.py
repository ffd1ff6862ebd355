"""Does a rollout lose new connections, and does a preStop sleep mend it?"""

from __future__ import annotations

import pytest

from pytest_drainwatch import App, Behavior, Flows, PreStop, Scenario, Trial, Trigger, arms
from pytest_drainwatch.core.interval import NS_PER_S

# An app that exits as soon as it gets SIGTERM: what most do that were told nothing else.
ROLLOUT = Scenario(
    name="rollout",
    app=App(behavior=Behavior.EXIT_NOW, replicas=3, grace_period_s=10),
    flows=Flows(tcp=4, udp=0),
    trigger=Trigger.ROLLOUT,
    settle_ns=2 * NS_PER_S,
)
SLEEPS = {"none": None, "2s": PreStop(sleep_s=2)}


@pytest.mark.trial
@pytest.mark.parametrize("arms", [arms(ROLLOUT, "app.pre_stop", SLEEPS)], ids=["sleeps"])
def test_two_seconds_of_sleep_lose_no_new_connection(trials: dict[str, Trial]) -> None:
    assert trials["none"].new_connections.failed > 0
    slept = trials["2s"].new_connections
    assert slept.failed == 0
    # With 95 % confidence fewer than one in a hundred fail: there were enough attempts to say so.
    assert slept.failure_rate is not None
    assert slept.failure_rate.high < 0.01
