"""Cases of section D on a real cluster: webhooks, budgets, and a namespace that goes."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch import App, Flows, Mechanism, Scenario, Trial, TrialVoid
from pytest_drainwatch import Trigger as Verb
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.recording import loads
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.workload import manifests
from tests.cases.webhook import admission
from tests.cluster.harness import measure_stage

pytestmark = pytest.mark.cluster

FEW = Flows(tcp=2, udp=2, probe_interval_ns=None)
SHORT = Scenario(
    app=App(grace_period_s=5, drain_ns=2 * NS_PER_S), flows=FEW, settle_ns=NS_PER_S, name="short"
)
DELAY_S = 2
DELETING = {"operations": ["DELETE"], "resources": ["pods"]}
EVICTING = {"operations": ["CREATE"], "resources": ["pods/eviction"]}


def left(stage: Stage) -> tuple[Observation, ...]:
    return tuple(loads((stage.folder / "recording.jsonl").read_text()).observations)


def budget(stage: Stage, name: str, labels: Mapping[str, str]) -> None:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": dict(labels)}}
    stage.api.policy.create_namespaced_pod_disruption_budget(
        stage.namespace, {"metadata": {"name": name}, "spec": spec}
    )


def budgets_told(stage: Stage) -> str:
    """What preflight recorded about budgets."""
    (check,) = [
        o
        for o in left(stage)
        if o.event is Event.PREFLIGHT_CHECK and o.data["name"] == "disruption-budgets"
    ]
    return str(check.data["observed"])


class SlowAndStripping:
    """What a graceful-drain controller does: the pod leaves its Service, and its deletion
    waits. The kubelet's own deletions pass.
    """

    def __init__(self, stage: Stage, *, strip: bool) -> None:
        self._stage, self._strip = stage, strip
        self._lock = threading.Lock()
        self._seen: set[str] = set()

    def __call__(self, asked: Mapping[str, Any]) -> None:
        name = asked["name"]
        with self._lock:
            if asked["userInfo"]["username"].startswith("system:") or name in self._seen:
                return
            self._seen.add(name)
        if self._strip:
            bare: dict[str, object] = {"labels": dict.fromkeys(manifests.LABELS)}
            self._stage.api.core.patch_namespaced_pod(
                name, self._stage.namespace, {"metadata": bare}
            )
        time.sleep(DELAY_S)


@pytest.mark.parametrize("scenario", [SHORT])
@pytest.mark.parametrize(
    "strip",
    [
        pytest.param(True, id="stripped"),
        pytest.param(False, id="labels-kept", marks=pytest.mark.slow),
    ],
)
def test_c33_a_webhook_delays_the_delete_and_takes_the_pod_out_of_its_service(
    dw_namespace: Stage, tmp_path: Path, strip: bool
) -> None:
    """Asked, accepted and effective are apart, and a pod without labels stays in sight."""
    stage = dw_namespace
    with admission(stage, tmp_path, DELETING, SlowAndStripping(stage, strip=strip)):
        trial = measure_stage(stage)
    trigger = trial.report.trial.trigger
    assert trigger.requested_ns == (0, 0)
    assert trigger.accepted_ns[1] >= DELAY_S * NS_PER_S
    assert trigger.effective_ns is not None
    assert trigger.effective_ns[1] >= DELAY_S * NS_PER_S
    (target,) = trigger.targets
    of_target = [o for o in left(stage) if o.subject == target and o.event is Event.POD]
    assert any(o.data["deletion_timestamp"] and o.data["type"] != "DELETED" for o in of_target)
    assert trial.tcp.mechanisms == {Mechanism.ANNOUNCED_FIN: 2}
    assert trial.exit_codes == (0,)
    sent_ns = next(o.at.lo for o in left(stage) if o.event is Event.TRIGGER_ACCEPTED)
    gone_ns = _left_the_slices_ns(stage, target) - sent_ns
    # Without labels it leaves the Service at once; with them when it has drained.
    assert (gone_ns < DELAY_S * NS_PER_S) is strip


def _left_the_slices_ns(stage: Stage, uid: str) -> int:
    """When a slice without the pod followed one with it."""
    listed = False
    for o in left(stage):
        if o.event is Event.ENDPOINT_SLICE:
            endpoints: Any = o.data["endpoints"]
            here = uid in {each["uid"] for each in endpoints}
            if listed and not here:
                return o.at.hi
            listed = here
    raise AssertionError("it never left")


@pytest.mark.parametrize(
    "scenario", [replace(SHORT, trigger=Verb.EVICT, observe_timeout_ns=4 * NS_PER_S)]
)
def test_c33_an_eviction_that_a_webhook_made_a_dry_run_is_not_effective(
    dw_namespace: Stage, tmp_path: Path
) -> None:
    """201 Created, and no pod ends: not a workload that survives."""
    stage = dw_namespace
    dry = [{"op": "add", "path": "/deleteOptions/dryRun", "value": ["All"]}]
    with (
        admission(stage, tmp_path, EVICTING, lambda _: dry, mutating=True),
        pytest.raises(TrialVoid, match="accepted the trigger and did not carry it out"),
    ):
        measure_stage(stage)
    assert [o for o in left(stage) if o.event is Event.TRIGGER_ACCEPTED]
    assert not (stage.folder / "report.json").exists()


@pytest.mark.parametrize("scenario", [replace(SHORT, trigger=Verb.EVICT)])
def test_c33_a_controller_that_deletes_later_what_was_evicted_is_who_ends_it(
    dw_namespace: Stage, tmp_path: Path
) -> None:
    """What such a controller does: the eviction becomes a dry run, and a delete follows.

    Accepted at once, effective when somebody else deletes the pod, and it says so.
    """
    stage = dw_namespace
    late: list[threading.Thread] = []

    def dry_run_and_delete_later(asked: Mapping[str, Any]) -> list[dict[str, Any]]:
        def delete() -> None:
            time.sleep(DELAY_S)
            stage.api.core.delete_namespaced_pod(asked["name"], stage.namespace)

        late.append(threading.Thread(target=delete))
        late[-1].start()
        return [{"op": "add", "path": "/deleteOptions/dryRun", "value": ["All"]}]

    with admission(stage, tmp_path, EVICTING, dry_run_and_delete_later, mutating=True):
        trial = measure_stage(stage)
    assert len(late) == 1
    late[0].join()
    trigger = trial.report.trial.trigger
    assert trigger.requested_ns == (0, 0)
    assert trigger.accepted_ns[1] < DELAY_S * NS_PER_S
    assert trigger.effective_ns is not None
    assert trigger.effective_ns[1] >= DELAY_S * NS_PER_S
    (end,) = trial.pod_ends
    assert end.initiator == "other-deletion", "an evicted pod says that it was evicted"
    assert trial.tcp.mechanisms == {Mechanism.ANNOUNCED_FIN: 2}


@pytest.mark.parametrize("scenario", [replace(SHORT, trigger=Verb.EVICT)])
def test_c32_two_budgets_on_one_pod_are_a_misconfiguration(dw_namespace: Stage) -> None:
    """Known before anything is measured, and no reason to try again later."""
    stage = dw_namespace
    budget(stage, "first", manifests.SELECTOR)
    budget(stage, "second", manifests.MANAGED_BY)
    with pytest.raises(TrialVoid, match="blocked: misconfigured, 2 budgets select this pod"):
        measure_stage(stage)
    events = {o.event for o in left(stage)}
    assert Event.TRIGGER_BLOCKED not in events
    assert Event.TRIGGER_ACCEPTED not in events
    assert Event.FLOW_CONNECTED not in events, "no flow was opened for it"
    # What the check foretells is what the API server does.
    from kubernetes.client.exceptions import ApiException

    pod = stage.api.core.list_namespaced_pod(stage.namespace).items[0].metadata.name
    eviction = {"metadata": {"name": pod, "namespace": stage.namespace}}
    with pytest.raises(ApiException) as refused:
        stage.api.core.create_namespaced_pod_eviction(pod, stage.namespace, eviction)
    assert refused.value.status == 500


@pytest.mark.parametrize("scenario", [replace(SHORT, trigger=Verb.EVICT)])
@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ({"app": "a-typo"}, "no budget; budget guard selects no pod"),
        (manifests.SELECTOR, ": guard"),
    ],
    ids=["selects-nothing", "selects-it"],
)
def test_c32_a_budget_that_selects_nothing_protects_nothing(
    dw_namespace: Stage, labels: dict[str, str], told: str
) -> None:
    stage = dw_namespace
    budget(stage, "guard", labels)
    trial = measure_stage(stage)
    assert told in budgets_told(stage)
    assert trial.tcp.mechanisms == {Mechanism.ANNOUNCED_FIN: 2}


@pytest.mark.parametrize(
    "scenario",
    [
        replace(
            SHORT,
            app=App(grace_period_s=6, drain_ns=2 * NS_PER_S, replicas=2),
            trigger=Verb.NAMESPACE_DELETE,
            name="namespace-goes",
        )
    ],
)
def test_c35_a_namespaces_deletion_tells_the_grace_that_pods_were_given(trial: Trial) -> None:
    """What the API server set, from the pods' frames; the spec is not asked."""
    report = trial.report.trial
    assert len(report.trigger.targets) == 2
    seen = loads((trial.folder / "recording.jsonl").read_text()).observations
    for end in trial.pod_ends:
        shown = [
            o.data["deletion_grace_period_s"]
            for o in seen
            if o.event is Event.POD and o.subject == end.pod_uid and o.data["type"] != "DELETED"
        ]
        assert end.deletion_grace_period_s == next(g for g in shown if g is not None)
    assert len(trial.pod_ends) == 2
    assert trial.exit_codes == (0, 0)
    assert trial.tcp.mechanisms == {Mechanism.ANNOUNCED_FIN: trial.tcp.total}
    # Logs were followed to their end; of events it is said that there were none to be had.
    assert all(o.data["complete"] for o in seen if o.event is Event.LOG_ENDED)
    (read,) = [o for o in seen if o.event is Event.CLUSTER_EVENTS_READ]
    assert "namespace was being deleted" in str(read.data["problem"])
