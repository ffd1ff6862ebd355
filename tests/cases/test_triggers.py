"""Cases of section D: triggers that do not do what they say."""

from __future__ import annotations

import itertools
import json
import shlex
import time
from dataclasses import replace

import pytest

from pytest_drainwatch import Scenario, TrialVoid
from pytest_drainwatch import Trigger as Verb
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import loads
from pytest_drainwatch.core.start import CannotDerive
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.workload import manifests
from tests.cluster.harness import QUICK, measure_stage


@pytest.mark.cluster
def test_c31_a_budget_that_blocks_the_eviction_is_no_pass(dw_namespace: Stage) -> None:
    """Blocked: no t = 0, no flow judged, the budget named, the retries a second apart."""
    stage = dw_namespace
    stage.scenario = Scenario(
        app=QUICK.app,
        flows=QUICK.flows,
        settle_ns=NS_PER_S,
        trigger=Verb.EVICT,
        observe_timeout_ns=4 * NS_PER_S,
    )
    with pytest.raises(TrialVoid, match=r"is blocked.*keep-them-all"):
        measure_stage(stage, lambda _: keep_them_all(stage))
    left = loads((stage.folder / "recording.jsonl").read_text()).observations
    blocked = [o for o in left if o.event is Event.TRIGGER_BLOCKED]
    assert len(blocked) >= 2
    assert {o.data["status"] for o in blocked} == {429}
    gaps = [b.at.lo - a.at.hi for a, b in itertools.pairwise(blocked)]
    assert min(gaps) >= NS_PER_S
    assert not (stage.folder / "report.json").exists()
    assert all("disruption budget" in str(o.data["message"]) for o in blocked)
    # K10: 10 s while the budget is unprocessed; none is sent for the 0 s of "not allowed".
    assert {o.data["retry_after_s"] for o in blocked} <= {None, 0, 10}
    assert all(o.data["causes"] == ["DisruptionBudget"] for o in blocked)
    assert not [o for o in left if o.event is Event.TRIGGER_ACCEPTED], "no t = 0"
    with pytest.raises(CannotDerive):
        derive(loads((stage.folder / "recording.jsonl").read_text()))


@pytest.mark.cluster
@pytest.mark.parametrize("verb", [Verb.EVICT, Verb.EVACUATE_NODE])
def test_c31_a_budget_that_allows_nothing_is_known_before_anything_is_triggered(
    dw_namespace: Stage, verb: Verb
) -> None:
    """An ERROR that names the budget, what it allows, and what to type; no flow is opened."""
    stage = dw_namespace
    stage.scenario = replace(QUICK, trigger=verb)
    keep_them_all(stage)
    with pytest.raises(TrialVoid) as void:
        measure_stage(stage)
    text = str(void.value)
    assert "'disruption-budgets' failed" in text
    assert "keep-them-all (minAvailable 1), which allows 0 now" in text
    patch = f"kubectl -n {stage.namespace} patch poddisruptionbudget keep-them-all --type merge -p "
    assert "App(replicas=2) in the scenario, or " + patch in text
    body = json.loads(shlex.split(text.partition(patch)[2])[0])
    stage.api.policy.patch_namespaced_pod_disruption_budget("keep-them-all", stage.namespace, body)
    until_it_allows(stage, 1)
    left = loads((stage.folder / "recording.jsonl").read_text()).observations
    events = {o.event for o in left}
    assert not events & {Event.TRIGGER_BLOCKED, Event.NODE_CORDONED, Event.FLOW_CONNECTED}


def until_it_allows(stage: Stage, number: int) -> None:
    """Wait until the budget's controller has judged it anew."""
    deadline = time.monotonic() + 10
    read = stage.api.policy.read_namespaced_pod_disruption_budget
    while read("keep-them-all", stage.namespace).status.disruptions_allowed != number:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def keep_them_all(stage: Stage) -> None:
    """A budget that lets nobody go."""
    stage.api.policy.create_namespaced_pod_disruption_budget(
        stage.namespace,
        {
            "metadata": {"name": "keep-them-all"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": manifests.SELECTOR}},
        },
    )
