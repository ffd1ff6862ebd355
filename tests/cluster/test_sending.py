"""Sends are dense around the times known beforehand, in a real trial, and it says so."""

from __future__ import annotations

import threading
import time

import pytest

from pytest_drainwatch import App, Flows, Scenario, Trial
from pytest_drainwatch import Trigger as Verb
from pytest_drainwatch.core.document import Report, SendingStretch
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import loads
from pytest_drainwatch.render import terminal
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.trial import deploy, hold, measure
from pytest_drainwatch.workload import manifests

pytestmark = pytest.mark.cluster

RATES = {"tcp": (20, 5), "udp": (60, 10)}
BEFORE_NS = NS_PER_S // 2  # how long before its time a planned stretch begins


def stretches(report: Report, proto: str) -> list[SendingStretch]:
    return [s for s in report.trial.sending.stretches if s.proto == proto]


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(grace_period_s=30, drain_ns=10 * NS_PER_S),
            flows=Flows(tcp=5, udp=5),
            settle_ns=2 * NS_PER_S,
            name="mostly-sparse",
        )
    ],
)
def test_dense_around_trigger_and_drain_and_sparse_between(trial: Trial) -> None:
    for proto, (dense_hz, sparse_hz) in RATES.items():
        found = stretches(trial.report, proto)
        rates = [s.rate_hz for s in found]
        # Until the plan, until the trigger, around it, between, and around the drain's end.
        # A trigger that had to wait for its turn was planned again, and a stretch more is there.
        at = max(n for n, stretch in enumerate(found) if stretch.at_ns[0] <= 0)
        assert (rates[0], at % 2) == (dense_hz, 0)
        assert rates[at - 1 : at + 3] == [sparse_hz, dense_hz, sparse_hz, dense_hz]
        around, between, end = found[at : at + 3]
        # The plan is for the trigger as soon as settling is over; it is sent a little later.
        planned_ns = around.at_ns[0] + BEFORE_NS
        assert planned_ns <= 0 < around.at_ns[1]
        assert around.at_ns[1] == planned_ns + 6 * NS_PER_S
        assert end.at_ns[0] == planned_ns + 10 * NS_PER_S - BEFORE_NS
        # Between, nothing happens, and every flow sends: as many as the rate says.
        slots = (between.sends or 0) + (between.missed_slots or 0)
        width_ns = between.at_ns[1] - between.at_ns[0]
        assert between.flows == 5
        assert abs(slots - 5 * sparse_hz * width_ns / NS_PER_S) <= 5
    # What happened at the known times was seen at the dense rate: a period, plus the path.
    ends = [f.terminal_ns for f in trial.flows if f.terminal_ns is not None]
    assert len(ends) == 10
    assert "tcp 20 Hz and udp 60 Hz within" in terminal.show(trial.report)
    assert trial.report.trial.config["udp_sparse_rate_hz"] == 10


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(grace_period_s=20, drain_ns=NS_PER_S),
            flows=Flows(tcp=2, udp=2),
            settle_ns=NS_PER_S,
            trigger=Verb.EVICT,
            name="blocked-at-first",
        )
    ],
)
def test_a_blocked_trigger_moves_the_dense_stretches(dw_namespace: Stage) -> None:
    stage = dw_namespace
    policy, name = stage.api.policy, stage.namespace

    def forbid() -> None:
        """After preflight, which would not have begun with it."""
        policy.create_namespaced_pod_disruption_budget(
            name,
            {
                "metadata": {"name": "not-yet"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": manifests.SELECTOR}},
            },
        )

    def relent() -> None:
        while not [o for o in stage.recorder.observations() if o.event is Event.TRIGGER_BLOCKED]:
            time.sleep(0.05)
        policy.delete_namespaced_pod_disruption_budget("not-yet", name)

    thread = threading.Thread(target=relent, daemon=True)
    with deploy(stage) as probe, hold(probe) as held:
        forbid()
        thread.start()
        trial = measure(held)
    thread.join()
    blocked = trial.report.trial.trigger.blocked
    assert blocked
    seen = loads((trial.folder / "recording.jsonl").read_text()).observations
    first = next(o for o in seen if o.event is Event.TRIGGER_BLOCKED)
    accepted = next(o for o in seen if o.event is Event.TRIGGER_ACCEPTED)
    last = [o for o in seen if o.event is Event.TRIGGER_BLOCKED][-1]
    assert accepted.at.lo - first.at.lo >= NS_PER_S
    for proto in RATES:
        dense = [s for s in stretches(trial.report, proto) if s.rate_hz == RATES[proto][0]]
        around = [s for s in dense if s.at_ns[0] <= 0 < s.at_ns[1]]
        assert len(around) == 1
        # Planned for the attempt that was accepted: a pause after the last one that was not.
        planned_ns = around[0].at_ns[0] + BEFORE_NS
        assert last.at.hi - accepted.at.lo + NS_PER_S <= planned_ns <= 0
