"""Does it help to fail the readiness probe on SIGTERM?

Prediction: not new TCP connections. An endpoint stops being ready when its pod is *deleted*,
not when its probe fails; with another replica Ready the two arms are the same. With one
replica it hurts: a pod that is terminating but still serving is the Service's last resort,
and failing readiness takes it away until the replacement is Ready.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch import Trial, arms
from pytest_drainwatch.core.interval import NS_PER_S
from scenarios.short import LISTENING, asked, told, undisturbed

FIELD, VALUES = "app.readiness_on_drain", {"fails": "fail", "keeps": "keep"}
# The replacement takes a while to be Ready, and less than the old pod drains.
SLOW = replace(LISTENING, ready_after_s=4, drain_ns=9 * NS_PER_S, grace_period_s=15)
ONE = asked("readiness-one", SLOW)
TWO = asked("readiness-two", replace(LISTENING, replicas=2))


@pytest.mark.trial
@pytest.mark.parametrize("arms", [arms(ONE, FIELD, VALUES)], ids=["one-replica"])
def test_with_one_replica_it_refuses_new_connections(trials: dict[str, Trial]) -> None:
    """Until the replacement is Ready nobody is left to ask."""
    assert undisturbed(trials.values())
    fails, keeps = (trials[name].new_connections for name in VALUES)
    assert keeps.failed == 0, told(keeps)
    assert fails.failed > 0, told(fails)
    assert (keeps.by_terminating or 0) > 0, "the terminating pod should have served new connections"


@pytest.mark.trial
@pytest.mark.parametrize("arms", [arms(TWO, FIELD, VALUES)], ids=["two-replicas"])
def test_with_two_replicas_it_changes_nothing_for_tcp(trials: dict[str, Trial]) -> None:
    """The other replica takes every new connection, whatever the probe says."""
    assert undisturbed(trials.values())
    for trial in trials.values():
        assert trial.new_connections.failed == 0, told(trial.new_connections)
        assert trial.tcp.drained == trial.tcp.total
