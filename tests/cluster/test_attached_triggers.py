"""Every trigger on a workload of the user's: what it does there, and what is put back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_drainwatch import App, Behavior, Flows, Scenario, Tcp, Trial, Workload
from pytest_drainwatch import Trigger as Verb
from pytest_drainwatch import trial as conductor
from pytest_drainwatch.api import Api
from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.trial import TrialVoid
from tests.cases.webhook import admission
from tests.cluster.attached import NAME, SHOP, objects, running
from tests.cluster.harness import Silent, never

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

Drainwatch = Callable[[Scenario], Trial]


@pytest.fixture
def shop(dw_cluster: Cluster) -> Iterator[Api]:
    with running(dw_cluster, App(behavior=Behavior.EXIT_NOW, grace_period_s=5)) as api:
        yield api


def scenario(verb: Verb, name: str = "") -> Scenario:
    said = Tcp(send="ping {seq}\n", expect=r"pong \d+ [^\n]*\n")
    return Scenario(
        workload=Workload.attach(f"deployment/{NAME}", namespace=SHOP, port="tcp", protocol=said),
        flows=Flows(tcp=2, udp=0, probe_interval_ns=20 * NS_PER_MS),
        trigger=verb,
        settle_ns=NS_PER_S,
        name=name or f"attached-{verb}",
    )


@pytest.mark.parametrize(
    ("verb", "initiator"),
    [
        (Verb.FORCE_DELETE, "force-delete"),
        (Verb.EVICT, "api-evict"),
        (Verb.EVACUATE_NODE, "evacuate-node"),
        (Verb.SCALE, "scale"),
        (Verb.CONTAINER_KILL, "container-kill"),
    ],
)
def test_it_ends_the_pod_and_leaves_the_rest_as_it_was(
    verb: Verb, initiator: str, shop: Api, drainwatch: Drainwatch
) -> None:
    before = shop.apps.read_namespaced_deployment(NAME, SHOP).spec
    trial = drainwatch(scenario(verb))
    (end,) = trial.pod_ends
    assert end.initiator == initiator
    trigger = trial.report.trial.trigger
    assert trigger.requested_ns == (0, 0)
    assert trigger.effective_ns is not None
    assert trigger.effective_ns[1] > trigger.accepted_ns[0]
    assert trial.tcp.severed == 2
    assert trial.new_connections.failed > 0
    after = shop.apps.read_namespaced_deployment(NAME, SHOP).spec
    assert after.replicas == before.replicas == 1, "scaled back, if it was scaled"
    assert after.template.metadata.annotations == before.template.metadata.annotations
    assert not any(node.spec.unschedulable for node in shop.core.list_node().items)


def test_a_pod_that_a_webhook_takes_out_of_its_service_stays_in_sight(
    shop: Api, dw_cluster: Cluster, drainwatch: Drainwatch, tmp_path: Path
) -> None:
    """Case C33: its labels go, its deletion waits, and its end is seen all the same."""
    place = SimpleNamespace(cluster=dw_cluster, api=shop, namespace=SHOP)

    def strip_and_wait(asked: Mapping[str, Any]) -> None:
        if not asked["userInfo"]["username"].startswith("system:"):
            bare = {"metadata": {"labels": {"app": None}}}
            shop.core.patch_namespaced_pod(asked["name"], SHOP, bare)
            time.sleep(2)

    deleting = {"operations": ["DELETE"], "resources": ["pods"]}
    with admission(place, tmp_path, deleting, strip_and_wait):  # type: ignore[arg-type]
        trial = drainwatch(scenario(Verb.DELETE))
    trigger = trial.report.trial.trigger
    assert trigger.requested_ns == (0, 0)
    assert trigger.accepted_ns[1] >= 2 * NS_PER_S
    assert trigger.effective_ns is not None
    assert trigger.effective_ns[1] >= 2 * NS_PER_S
    (end,) = [end for end in trial.pod_ends if end.role == "target"]
    assert end.ended_ns is not None
    assert end.exit_code is not None, "its last frames were seen, though no selector matches"
    # New connections had left it long before.
    assert trial.report.trial.windows[0].advertised.closes_ns is not None
    assert trial.report.trial.windows[0].advertised.closes_ns[1] < 2 * NS_PER_S


def test_a_rollout_of_the_same_workload_works_every_time(shop: Api, drainwatch: Drainwatch) -> None:
    ended = set()
    for which in ("first", "second"):
        trial = drainwatch(scenario(Verb.ROLLOUT, f"rollout-{which}"))
        (end,) = trial.pod_ends
        assert end.initiator == "rollout"
        ended.add(end.pod_uid)
    assert len(ended) == 2


def test_the_namespace_of_a_user_is_never_deleted(
    shop: Api, dw_cluster: Cluster, tmp_path: Path
) -> None:
    before = objects(shop)
    with pytest.raises(TrialVoid, match=f"namespace {SHOP} is not this trial's own"):
        conductor.run_trial(
            dw_cluster,
            scenario(Verb.NAMESPACE_DELETE),
            folder=tmp_path / "x" / "r00",
            keep=never,
            progress=Silent(),
        )
    assert objects(shop) == before
    assert shop.core.read_namespace(SHOP).metadata.deletion_timestamp is None
