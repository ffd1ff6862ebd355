"""Does a rollout of a StatefulSet lose connections?"""

from __future__ import annotations

import pytest

from pytest_drainwatch import App, Controller, Flows, PreStop, Scenario, Trial, Trigger
from pytest_drainwatch.core.interval import NS_PER_S

ROLLOUT = Scenario(
    name="statefulset",
    app=App(
        controller=Controller.STATEFUL_SET,
        replicas=2,
        pre_stop=PreStop(sleep_s=2),
        drain_ns=3 * NS_PER_S,
        grace_period_s=10,
    ),
    flows=Flows(tcp=4, udp=0),
    trigger=Trigger.ROLLOUT,
    settle_ns=2 * NS_PER_S,
)


@pytest.mark.trial
@pytest.mark.parametrize("scenario", [ROLLOUT])
def test_each_ordinal_drains_and_the_other_one_serves(trial: Trial) -> None:
    assert trial.tcp.drained == trial.tcp.total
    assert trial.new_connections.failed == 0
    assert trial.exit_codes == (0, 0)
    # The highest ordinal goes first, and the next one when its successor is Ready.
    ends = sorted(trial.pod_ends, key=lambda end: end.ended_ns or (0, 0))
    assert [end.pod.rpartition("-")[2] for end in ends] == ["1", "0"]
