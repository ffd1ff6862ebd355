"""What does a preStop sleep buy, and how much of it is enough here?

Prediction: without one, an app that exits at once is gone before kube-proxy has heard of
it, and some of the new connections are still led there. The sleep has to outlast
kube-proxy's next sync, and syncs come no closer together than minSyncPeriod (1 s): in a
rollout, where another endpoint has just changed, 2 s are enough and 0 s are not; 1 s is
close to the edge, and better than nothing.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch import PreStop, Trial, Trigger, arms
from scenarios.short import EXITING, asked, failing, told, undisturbed

SLEEPS = {
    "none": None,
    "1s": PreStop(sleep_s=1),
    "2s": PreStop(sleep_s=2),
    "5s": PreStop(sleep_s=5),
}
ROLLOUT = asked("pre-stop", replace(EXITING, replicas=4), trigger=Trigger.ROLLOUT)
ENOUGH = ("2s", "5s")


@pytest.mark.trial
@pytest.mark.parametrize("arms", [arms(ROLLOUT, "app.pre_stop", SLEEPS)], ids=["rollout-of-four"])
def test_a_sleep_longer_than_a_sync_loses_nobody(trials: dict[str, Trial]) -> None:
    """0 of N, with its bound; without the sleep it is above 0, and the report says when."""
    assert undisturbed(trials.values())
    none = trials["none"].new_connections
    assert failing(none).failures > 0, told(none)
    assert trials["1s"].new_connections.failed < none.failed, told(trials["1s"].new_connections)
    for name in ENOUGH:
        slept = trials[name].new_connections
        assert slept.failed == 0, told(slept)
        assert slept.failure_rate is not None
        assert slept.failure_rate.high < 0.01, "too few attempts to say anything"
