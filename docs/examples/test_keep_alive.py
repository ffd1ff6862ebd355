"""Do HTTP clients that keep their connections open notice a rollout of my service?"""

from __future__ import annotations

import pytest

from pytest_drainwatch import Http, Scenario, Trial, Trigger, Workload
from pytest_drainwatch.core.interval import NS_PER_S

CLIENTS = Http(path="/", keepalive=8, idle=8, new=2, rate_hz=10, identity_header="X-Pod")
WEB = Workload.attach("deployment/web", namespace="shop", port=80, protocol=CLIENTS)
ROLLOUT = Scenario(name="web", workload=WEB, trigger=Trigger.ROLLOUT, settle_ns=2 * NS_PER_S)


@pytest.mark.trial
@pytest.mark.parametrize("scenario", [ROLLOUT])
def test_a_rollout_fails_no_request_that_counts(trial: Trial) -> None:
    for kind in ("keepalive", "new"):
        assert trial.requests_of(kind).failed == 0, dict(trial.requests_of(kind).fates)
    # No server wins this race: it closes an idle connection while a request is on its way.
    # Such a request a client may repeat; others may not be lost.
    assert trial.requests_of("idle").not_retry_safe == 0
    # And nobody had to be killed.
    assert set(trial.exit_codes) == {0}
