"""iptables or nftables: does the window change?

Prediction: no. Both learn of an endpoint in the same way and sync no more often than once
in minSyncPeriod; how they then write their rules costs milliseconds on a cluster of this size.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch import Trial, Trigger, arms
from pytest_drainwatch.core.interval import NS_PER_S
from scenarios.short import EXITING, LATE_NS, asked, failing, known, told, undisturbed, window_s

SYNC_PERIOD_NS = 1 * NS_PER_S
MODES = {"iptables": "iptables", "nftables": "nftables"}
ROLLOUT = asked("proxy", replace(EXITING, replicas=3), trigger=Trigger.ROLLOUT)


@pytest.mark.trial
@pytest.mark.parametrize("arms", [arms(ROLLOUT, "cluster.proxy_mode", MODES)], ids=["rollout"])
def test_both_fail_for_less_than_a_sync_period(trials: dict[str, Trial]) -> None:
    """After each pod's end, and then recover; on average, for one pod's own chance decides."""
    assert undisturbed(trials.values())
    for name, trial in trials.items():
        assert trial.report.environment.kube_proxy_mode == name
        found = trial.new_connections
        assert window_s(trial) <= (SYNC_PERIOD_NS + LATE_NS) / NS_PER_S, told(found)
        assert known(found.last_answered_ns)[0] > failing(found).last_ns[1], told(found)
