"""The rights that `drainwatch rbac` prints: they suffice, and each that is missing is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_drainwatch import (
    Controller,
    Trigger,
)
from pytest_drainwatch import trial as conductor
from pytest_drainwatch.api import Api
from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.core.recording import loads
from pytest_drainwatch.placement import Placement
from pytest_drainwatch.rights.needed import needed
from pytest_drainwatch.rights.right import Right, Where
from tests.cluster.accounts import account, apply, printed, until_denied
from tests.cluster.accounts import without as one_less
from tests.cluster.existing import (
    FOR_QUICK,
    QUICK,
    checks_of,
    existing,
    void,
)
from tests.cluster.harness import Silent, never

pytestmark = pytest.mark.cluster

# A path is everybody's by system:public-info-viewer: no role of ours takes it away.
REQUIRED = [
    right for right in needed(QUICK, own=True) if not (right.optional or right.where is Where.PATH)
]
REQUIRED_IN_TEAM = [
    right
    for right in needed(QUICK, own=False)
    if not right.optional and right.where is Where.NAMESPACE
]


def test_a_trial_with_exactly_the_printed_rights(
    dw_cluster: Cluster, admin: Api, tmp_path: Path
) -> None:
    objects = printed("exact", *FOR_QUICK)
    rights = needed(QUICK, own=True)
    with account(dw_cluster, tmp_path, "exact", objects) as runner:
        until_denied(runner, rights, "dw-any", set())
        there = existing(dw_cluster, kubeconfig=runner.kubeconfig)
        folder = tmp_path / "r00"
        trial = conductor.run_trial(there, QUICK, folder=folder, keep=never, progress=Silent())
    assert trial.tcp.mechanisms == {"rst": 2}
    environment = trial.report.environment
    assert environment.provider == "existing"
    assert environment.node_count == 1
    # What this provider cannot know is null with a warning, not a default.
    assert environment.min_sync_period_ms is None
    assert any("minSyncPeriod" in warning for warning in environment.warnings)
    checks = checks_of(folder)
    assert checks["rights-granted"].data["observed"] == f"all of {len(rights)}"
    assert "answered by pod" in str(checks["service-reachable"].data["observed"])


SUFFICING = [
    Trigger.EVICT,
    Trigger.SCALE,
    Trigger.ROLLOUT,
    Trigger.FORCE_DELETE,
    Trigger.NAMESPACE_DELETE,
    Trigger.EVACUATE_NODE,
]


@pytest.mark.slow
@pytest.mark.parametrize("trigger", SUFFICING)
@pytest.mark.parametrize("controller", [Controller.DEPLOYMENT, Controller.STATEFUL_SET])
def test_what_is_printed_without_the_optional_suffices_for_each_trigger(
    trigger: Trigger, controller: Controller, dw_cluster: Cluster, admin: Api, tmp_path: Path
) -> None:
    name = f"just-{trigger}-{controller}"
    asked = replace(QUICK, trigger=trigger, app=replace(QUICK.app, controller=controller))
    flags = ("--trigger", str(trigger), "--controller", str(controller), "--access", "nodeport")
    objects = printed(name, "--no-optional", *flags)
    rights = needed(asked, own=True)
    with account(dw_cluster, tmp_path, name, objects) as runner:
        # To read kube-system is allowed to whoever may read every namespace.
        covered = {r for r in rights if (r.verb, r.resource) == ("get", "namespaces")}
        spared = {right for right in rights if right.optional} - covered
        until_denied(runner, rights, "dw-any", spared)
        trial = conductor.run_trial(
            existing(dw_cluster, kubeconfig=runner.kubeconfig),
            asked,
            folder=tmp_path / "r00",
            keep=never,
            progress=Silent(),
        )
    assert trial.tcp.total == 2
    assert trial.report.trial.trigger.targets
    assert trial.report.environment.node_count is None


@pytest.mark.parametrize("right", REQUIRED, ids=lambda right: right.in_words("N"))
def test_each_right_that_is_missing_is_named_before_anything_is_created(
    right: Right, dw_cluster: Cluster, admin: Api, tmp_path: Path
) -> None:
    name = f"less-{REQUIRED.index(right)}"
    objects = printed(name, *FOR_QUICK)
    with account(dw_cluster, tmp_path, name, one_less(objects, right)) as runner:
        until_denied(runner, needed(QUICK, own=True), "dw-any", {right})
        there = existing(dw_cluster, kubeconfig=runner.kubeconfig)
        said = void(there, tmp_path / "r00")
    assert "preflight check 'rights-granted' failed" in said
    (observed,) = [line for line in said.splitlines() if "observed:" in line]
    namespace = loads((tmp_path / "r00" / "recording.jsonl").read_text()).header.scenario
    words = right.in_words(str(namespace["config"]["namespace"]))  # type: ignore[index]
    assert observed.endswith(f"system:serviceaccount:default:{name} may not: {words} ({right.why})")
    assert (
        f"look at:   drainwatch rbac --service-account default:{name} --trigger delete "
        "--controller deployment --access nodeport --name drainwatch-"
    ) in said


@pytest.mark.slow  # those of a namespace of its own are not
@pytest.mark.parametrize("right", REQUIRED_IN_TEAM, ids=lambda right: right.in_words("N"))
def test_each_right_that_is_missing_in_a_given_namespace_is_named(
    right: Right, dw_cluster: Cluster, admin: Api, tmp_path: Path
) -> None:
    name, namespace = f"lack-{REQUIRED_IN_TEAM.index(right)}", "default"
    objects = one_less(printed(name, "--namespace", namespace, *FOR_QUICK), right)
    with account(dw_cluster, tmp_path, name, objects) as runner:
        rights = needed(QUICK, own=False)
        elsewhere = {r for r in rights if r.optional and r.where is not Where.NAMESPACE}
        until_denied(runner, rights, namespace, {right} | elsewhere)
        there = existing(dw_cluster, kubeconfig=runner.kubeconfig)
        said = void(there, tmp_path / "r00", placement=Placement(namespace=namespace))
    assert f"may not: {right.in_words(namespace)} ({right.why})\n" in said
    assert f"drainwatch rbac --namespace default --service-account default:{name}" in said


def test_what_the_check_prints_grants_what_was_missing_beside_what_there_was(
    dw_cluster: Cluster, admin: Api, team: str, tmp_path: Path
) -> None:
    """In a namespace that goes again, with the roles that are printed into it."""
    (missing,) = (r for r in REQUIRED_IN_TEAM if (r.verb, r.resource) == ("watch", "pods"))
    # Under the name that everybody's have who print them without a name.
    objects = printed("drainwatch", "--namespace", team, *FOR_QUICK)
    less = [each for each in one_less(objects, missing) if each["kind"] != "ServiceAccount"]
    with account(dw_cluster, tmp_path, "drainwatch", less) as runner:
        rights = needed(QUICK, own=False)
        elsewhere = {r for r in rights if r.optional and r.where is not Where.NAMESPACE}
        until_denied(runner, rights, team, {missing} | elsewhere)
        there = existing(dw_cluster, kubeconfig=runner.kubeconfig)
        said = void(there, tmp_path / "r00", placement=Placement(namespace=team))
        apply(dw_cluster, said.partition("look at:   ")[2])
        until_denied(runner, rights, team, elsewhere)
