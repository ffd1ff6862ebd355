"""Case C36: the last pod of a node, behind a Service that leads to that node's pods alone."""

from __future__ import annotations

import pytest

from pytest_drainwatch import (
    Accept,
    App,
    Flows,
    Readiness,
    Scenario,
    Service,
    TrafficPolicy,
    Trial,
    Trigger,
)
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import loads

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(
                grace_period_s=6,
                drain_ns=3 * NS_PER_S,
                readiness_on_drain=Readiness.KEEP,
                accept_on_drain=Accept.KEEP,
            ),
            flows=Flows(tcp=2, udp=0, probe_interval_ns=20 * NS_PER_MS),
            service=Service(external_traffic_policy=TrafficPolicy.LOCAL),
            settle_ns=NS_PER_S,
            trigger=Trigger.SCALE,
            observe_timeout_ns=10 * NS_PER_S,
            name="last-local-pod",
        )
    ],
)
def test_c36_the_last_local_pod_serves_while_it_ends_and_then_nobody_does(trial: Trial) -> None:
    """Fallback to serving and terminating (K2); after its exit the failures are shown."""
    seen = loads((trial.folder / "recording.jsonl").read_text()).observations
    (target,) = trial.report.trial.trigger.targets
    (tried,) = trial.report.trial.new_connections
    (by,) = [who for who in tried.answered_by if who.pod_uid == target]
    assert by.by_terminating is not None
    assert by.by_terminating[0] >= 50, "3 s at 50 a second, served by a terminating pod"
    runs = [o for o in seen if o.event is Event.NEW_CONNECTIONS]
    gone = next(o.at for o in seen if o.event is Event.EXITING)
    after = [o.data["result"] for o in runs if o.at.lo > gone.hi]
    assert after, "attempts went on"
    assert "answered" not in after
    t0 = next(o.at.lo for o in seen if o.event is Event.TRIGGER_ACCEPTED)
    failed = [
        o for o in runs if o.data["result"] not in ("answered", "unfinished") and o.at.hi > t0
    ]
    assert failed, "a failing window above zero is expected, and shown"
