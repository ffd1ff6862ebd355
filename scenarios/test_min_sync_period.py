"""minSyncPeriod of 1 s or 10 s: how long do new connections fail?

Prediction: for up to as long as it is. When another endpoint has just changed, as in a
rollout, kube-proxy waits out the rest of the period before it forgets the pod that is gone.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch import Trial, Trigger, arms
from pytest_drainwatch.core.interval import NS_PER_S
from scenarios.short import EXITING, LATE_NS, asked, told, undisturbed, window_s

PERIODS = {"1s": 1000, "10s": 10_000}
ROLLOUT = asked("sync", replace(EXITING, replicas=3), trigger=Trigger.ROLLOUT)


@pytest.mark.trial
@pytest.mark.parametrize(
    "arms", [arms(ROLLOUT, "cluster.min_sync_period_ms", PERIODS)], ids=["rollout-of-three"]
)
def test_the_window_grows_with_it(trials: dict[str, Trial]) -> None:
    """More attempts fail, over a longer time."""
    assert undisturbed(trials.values())
    short, long = (trials[name].new_connections for name in PERIODS)
    assert 0 < short.failed < long.failed, f"{told(short)}; {told(long)}"
    assert window_s(trials["1s"]) <= 1 + LATE_NS / NS_PER_S < window_s(trials["10s"]), (
        f"{window_s(trials['1s']):.1f} s and {window_s(trials['10s']):.1f} s a pod"
    )
