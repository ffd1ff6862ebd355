"""iptables or nftables: does the window change?

Prediction: no. Both learn of an endpoint in the same way and sync no more often than once
in minSyncPeriod; how they then write their rules costs milliseconds on a cluster of this size.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch import Trial, Trigger, arms
from scenarios.short import EXITING, asked, failing, known, told

MODES = {"iptables": "iptables", "nftables": "nftables"}
ROLLOUT = asked("proxy", replace(EXITING, replicas=3), trigger=Trigger.ROLLOUT)


@pytest.mark.trial
@pytest.mark.parametrize("arms", [arms(ROLLOUT, "cluster.proxy_mode", MODES)], ids=["rollout"])
def test_both_let_new_connections_fail(trials: dict[str, Trial]) -> None:
    """Each fails for some time after each pod's end, and recovers."""
    for name, trial in trials.items():
        assert trial.report.environment.kube_proxy_mode == name
        found = trial.new_connections
        assert known(found.last_answered_ns)[0] > failing(found).last_ns[1], told(found)
