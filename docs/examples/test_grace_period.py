"""How long must terminationGracePeriodSeconds be?"""

from __future__ import annotations

import pytest

from pytest_drainwatch import App, EndedBy, Flows, PreStop, Scenario, Trial, arms
from pytest_drainwatch.core.interval import NS_PER_S

# What is needed: 2 s for kube-proxy to hear of it, and 6 s to finish.
APP = App(pre_stop=PreStop(sleep_s=2), drain_ns=6 * NS_PER_S)
NEEDS = Scenario(name="grace", app=APP, flows=Flows(tcp=4, udp=0), settle_ns=2 * NS_PER_S)
SECONDS = {"5s": 5, "10s": 10}


@pytest.mark.trial
@pytest.mark.parametrize("arms", [arms(NEEDS, "app.grace_period_s", SECONDS)], ids=["grace"])
def test_hook_and_drain_must_fit_into_it_together(trials: dict[str, Trial]) -> None:
    (short,), (enough,) = (trials[name].pod_ends for name in SECONDS)
    assert (short.ended_by, short.exit_code) == (EndedBy.SIGKILL_AT_GRACE, 137)
    assert trials["5s"].tcp.severed == trials["5s"].tcp.total
    assert (enough.ended_by, enough.exit_code) == (EndedBy.EXIT, 0)
    assert trials["10s"].tcp.drained == trials["10s"].tcp.total
