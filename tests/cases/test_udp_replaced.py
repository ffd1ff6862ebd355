"""Cases C02 and C03 on a real cluster: what becomes of UDP flows whose pods are replaced.

One pod after the other, or all of them only after a time in which the Service had none.
"""

from __future__ import annotations

import threading
import time

import pytest

from pytest_drainwatch import (
    Access,
    App,
    Behavior,
    Flows,
    Role,
    Scenario,
    Service,
    Trial,
    Trigger,
)
from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import loads
from pytest_drainwatch.core.udp.continuity import RecoveredBy
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.trial import Held
from pytest_drainwatch.workload import manifests
from tests.cluster.harness import measure_stage

pytestmark = pytest.mark.cluster

FLOWS = 6
EMPTY_S = 2  # for so long the Service has nobody, and its senders go on
PATIENCE_S = 30


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(behavior=Behavior.EXIT_NOW, grace_period_s=5),
            flows=Flows(tcp=0, udp=FLOWS, probe_interval_ns=None),
            service=Service(access=access),
            trigger=Trigger.SCALE,
            settle_ns=2 * NS_PER_S,
            observe_timeout_ns=14 * NS_PER_S,
            name=f"udp-empty-{access}",
        )
        for access in (Access.NODE_PORT, Access.CLUSTER_IP)  # nobody here gives out balancers
    ],
    ids=lambda scenario: scenario.id,
)
def test_c02_senders_to_an_empty_service_are_followed_until_a_pod_answers_them(
    dw_namespace: Stage,
) -> None:
    """Scaled to zero and back to one: no pause and no new socket, and each flow's own downtime."""
    scaling = ScaleBack(dw_namespace)
    trial = measure_stage(dw_namespace, scaling.when_empty)
    scaled_ns = scaling.done() - triggered_ns(trial)
    flows = [flow for flow in trial.flows if flow.role is Role.TARGET]
    assert trial.udp.severed == trial.udp.total == len(flows) >= FLOWS, trial.udp
    for flow in flows:
        assert came_back(flow), f"{flow.id}: {flow.continuity}"
        assert_measured(flow)
        assert shortest_gap_ns(flow) >= EMPTY_S * NS_PER_S
        assert len({who.partition("/")[0] for who in flow.responders}) == 2
        assert recovered_ns(flow) >= scaled_ns, "by nobody before there was a pod again"


class ScaleBack:
    """Scales the workload to one again, from beside the trial."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._asked: list[int] = []
        self._thread: threading.Thread | None = None

    def when_empty(self, held: Held) -> None:
        """From now on; so that a trial can be told to do it once its flows are held."""
        self._thread = threading.Thread(target=self._wait_and_scale, args=(held,), daemon=True)
        self._thread.start()

    def done(self) -> int:
        """When it was asked for; waits until it has been."""
        assert self._thread is not None
        self._thread.join(PATIENCE_S + EMPTY_S)
        (asked_ns,) = self._asked
        return asked_ns

    def _wait_and_scale(self, held: Held) -> None:
        until = time.monotonic() + PATIENCE_S
        watch = held.probe.watch
        while watch.pods() or watch.endpoint_uids():
            if time.monotonic() > until:
                return
            time.sleep(0.05)
        time.sleep(EMPTY_S)
        self._asked.append(time.monotonic_ns())
        self._stage.api.apps.patch_namespaced_deployment_scale(
            manifests.NAME, self._stage.namespace, {"spec": {"replicas": 1}}
        )


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            app=App(behavior=behavior, grace_period_s=6, drain_ns=2 * NS_PER_S, replicas=2),
            flows=Flows(tcp=0, udp=FLOWS, probe_interval_ns=None),
            trigger=Trigger.ROLLOUT,
            settle_ns=2 * NS_PER_S,
            name=f"udp-rollout-{behavior}",
        )
        for behavior in (Behavior.DRAIN, Behavior.EXIT_NOW)
    ],
    ids=lambda scenario: scenario.id,
)
def test_c03_a_rollout_severs_every_flow_and_tells_how_long_each_was_without_answer(
    trial: Trial,
) -> None:
    """A flow cannot stay with a pod that is replaced: k of n came back, and to whom, and when."""
    old = set(trial.report.trial.trigger.targets)
    assert len(old) == 2, "both old pods were replaced"
    # Dialled until enough are on the first pod; those on the second are targets as well.
    flows = [flow for flow in trial.flows if flow.role is Role.TARGET]
    assert trial.udp.severed == trial.udp.total == len(flows) >= FLOWS, trial.udp
    back = [flow for flow in flows if came_back(flow)]
    for flow in back:
        first, *then = [who.partition("/")[0] for who in flow.responders]
        assert first in old
        assert first not in then, "moved, and not answered by the same pod again"
        assert then[-1] not in old, "in the end by a pod of the new template"
        assert_measured(flow)
        if trial.scenario.app.behavior is Behavior.EXIT_NOW:
            assert shortest_gap_ns(flow) > 0, "gone before conntrack could hear of it"
    # A Service that never lacked a serving endpoint: conntrack lets go of each pod in turn (K3).
    assert len(back) == len(flows), f"{len(back)} of {len(flows)} came back: {trial.udp}"


def assert_measured(flow: FlowReport) -> None:
    """The gap is the flow's own: it lies between its end and who answered next."""
    found = flow.continuity
    assert found is not None
    assert found.gap_ns is not None
    assert found.recovered_at_ns is not None
    assert flow.terminal_ns is not None
    assert flow.terminal_ns[1] >= 0, "alive until the rollout began"
    longest = found.recovered_at_ns[1] - flow.terminal_ns[0]
    assert 0 <= found.gap_ns[0] <= found.gap_ns[1] <= longest


def recovered_ns(flow: FlowReport) -> int:
    """When it was answered again, at the latest."""
    assert flow.continuity is not None
    assert flow.continuity.recovered_at_ns is not None
    return flow.continuity.recovered_at_ns[1]


def triggered_ns(trial: Trial) -> int:
    """The trial's t = 0, on this machine's clock."""
    seen = loads((trial.folder / "recording.jsonl").read_text()).observations
    return next(o.at.lo for o in seen if o.event is Event.TRIGGER_ACCEPTED)


def shortest_gap_ns(flow: FlowReport) -> int:
    """For how long at least nobody answered it."""
    assert flow.continuity is not None
    assert flow.continuity.gap_ns is not None
    return flow.continuity.gap_ns[0]


def came_back(flow: FlowReport) -> bool:
    """Whether another pod answered the same socket after its first pod had left it."""
    return flow.continuity is not None and flow.continuity.recovered_by is RecoveredBy.ANOTHER
