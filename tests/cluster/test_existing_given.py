"""A namespace that is given: trials live in it beside others, and leave it as it was."""

from __future__ import annotations

import subprocess
import sys
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
from pytest_drainwatch.placement import Placement
from pytest_drainwatch.pool import opened_cluster
from pytest_drainwatch.rights.needed import needed
from pytest_drainwatch.rights.right import Where
from pytest_drainwatch.settings import Settings
from pytest_drainwatch.workload import client, given, manifests, probe
from pytest_drainwatch.workload.namespace import owner
from pytest_drainwatch.workload.place import Place
from tests.cluster.accounts import account, printed, until_denied
from tests.cluster.existing import (
    FOR_QUICK,
    QUICK,
    existing,
    things_in,
    until_only,
    void,
)
from tests.cluster.harness import Silent, never
from tests.cluster.runs import ROOT, run_drainwatch

pytestmark = pytest.mark.cluster


def test_a_given_namespace_takes_one_role_in_it_and_is_left_as_it_was(
    dw_cluster: Cluster, admin: Api, team: str, tmp_path: Path
) -> None:
    """Two trials at once in it never see each other's pods, nor anybody else's."""
    before = things_in(admin, team)
    objects = printed("inside", "--namespace", team, *FOR_QUICK)
    assert {item["kind"] for item in objects} == {"Role", "RoleBinding"}
    placement = Placement(namespace=team, pull_secrets=("registry",))
    with account(dw_cluster, tmp_path, "inside", objects) as runner:
        optional = {r for r in needed(QUICK, own=False) if r.where is not Where.NAMESPACE}
        optional = {right for right in optional if right.optional}
        until_denied(runner, needed(QUICK, own=False), team, optional)
        there = existing(dw_cluster, kubeconfig=runner.kubeconfig)
        assert there.node_address is None, "nodes may not be listed: a pod tells of its own"
        with (
            conductor.prepare(
                there,
                QUICK,
                folder=tmp_path / "first",
                keep=never,
                progress=Silent(),
                placement=placement,
            ) as stage,
            conductor.deploy(stage) as first,
        ):
            assert first.way.address == dw_cluster.node_address
            trial = conductor.run_trial(
                there,
                QUICK,
                folder=tmp_path / "second",
                keep=never,
                progress=Silent(),
                placement=placement,
            )
            (pod,) = first.watch.pods()
            made = admin.core.list_namespaced_pod(team, label_selector=stage.place.pods).items
            assert [(p.metadata.uid, p.spec.image_pull_secrets[0].name) for p in made] == [
                (pod, "registry")
            ]
            assert pod not in trial.report.trial.trigger.targets
            left = things_in(admin, team) - before
            assert {name.partition("-client")[0] for kind, name in left if kind == "service"} == {
                stage.place.probe
            }
        assert trial.tcp.mechanisms == {"rst": 2}
        assert trial.report.environment.node_count is None
        warnings = "\n".join(trial.report.environment.warnings)
        assert "the nodes could not be read: HTTP 403" in warnings
        until_only(admin, team, before)
    seen = (tmp_path / "second" / "recording.jsonl").read_text()
    assert pod not in seen
    assert stage.place.probe not in seen


@pytest.mark.slow
def test_scaled_to_zero_in_a_given_namespace(
    dw_cluster: Cluster, admin: Api, team: str, tmp_path: Path
) -> None:
    before = things_in(admin, team)
    app = replace(QUICK.app, controller=Controller.STATEFUL_SET, replicas=2)
    asked = replace(QUICK, app=app, trigger=Trigger.SCALE)
    trial = conductor.run_trial(
        existing(dw_cluster),
        asked,
        folder=tmp_path,
        keep=never,
        progress=Silent(),
        placement=Placement(namespace=team),
    )
    assert len(trial.report.trial.trigger.targets) == 2
    until_only(admin, team, before)


@pytest.mark.parametrize(
    "controller",
    [
        Controller.DEPLOYMENT,
        pytest.param(Controller.STATEFUL_SET, marks=pytest.mark.slow),
        pytest.param(Controller.DAEMON_SET, marks=pytest.mark.slow),
    ],
)
def test_whatever_controls_the_pods_is_taken_and_removed(
    controller: Controller, dw_cluster: Cluster, admin: Api, tmp_path: Path
) -> None:
    """The API server takes each kind under a trial's own names, and none of it is left."""
    namespace, image = "default", dw_cluster.ensure_probe_image()
    before, said = things_in(admin, namespace), list[str]()
    place = Place(namespace=namespace, trial=f"dw-of-a-{controller}-0a1b2c3d")
    asked = replace(QUICK, app=replace(QUICK.app, controller=controller))
    with given.given_namespace(admin, place, keep=lambda: False, say=said.append):
        probe.apply(admin, place, asked, image)
        client.apply(admin, place, image)
        made = {name for _, name in things_in(admin, namespace) - before}
        assert {place.probe, place.client} <= made
    assert said == []
    until_only(admin, namespace, before)


def test_a_given_namespace_that_is_not_there_or_would_be_deleted(
    dw_cluster: Cluster, admin: Api, tmp_path: Path
) -> None:
    there = existing(dw_cluster)
    said = void(there, tmp_path / "a", placement=Placement(namespace="nowhere"))
    assert "'namespace-given' failed" in said
    assert 'namespaces "nowhere" not found' in said
    assert "kubectl create namespace nowhere" in said
    ends = replace(QUICK, trigger=Trigger.NAMESPACE_DELETE)
    said = void(there, tmp_path / "b", ends, placement=Placement(namespace="default"))
    assert "the trigger 'namespace-delete' would remove it" in said


@pytest.mark.slow
def test_from_the_shell_with_a_namespace_and_an_address(
    dw_cluster: Cluster, admin: Api, team: str, tmp_path: Path
) -> None:
    before = things_in(admin, team)
    done = run_drainwatch(
        *("run", "--kubeconfig", str(dw_cluster.kubeconfig), "--namespace", team),
        *("--probe-image", dw_cluster.ensure_probe_image()),
        *("--address", str(dw_cluster.node_address), "--drain-behavior", "exit-now"),
        *("--settle", "1", "--grace-period", "3", "--out", str(tmp_path / "out")),
    )
    assert done.returncode == 0, done.stderr
    assert "rst" in done.stdout
    until_only(admin, team, before)


@pytest.mark.slow
def test_the_shipped_scenarios_pass_unchanged_with_rights_in_one_namespace(
    dw_cluster: Cluster, admin: Api, team: str, tmp_path: Path
) -> None:
    before = things_in(admin, team)
    with account(dw_cluster, tmp_path, "ship", printed("ship", "--namespace", team)) as runner:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA"),
                *(str(ROOT / "scenarios" / "test_termination.py"), "-k", "exit-now"),
                *("--dw-kubeconfig", str(runner.kubeconfig), "--dw-namespace", team),
                *("--dw-probe-image", dw_cluster.ensure_probe_image()),
                *("--dw-out", str(tmp_path / "out"), "--dw-settle", "2"),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "3 passed" in done.stdout
    until_only(admin, team, before)


def test_what_a_dead_run_left_in_a_given_namespace_is_removed_by_the_next(
    dw_cluster: Cluster, admin: Api, team: str, tmp_path: Path
) -> None:
    before = things_in(admin, team)
    app, image = QUICK.app, dw_cluster.ensure_probe_image()
    boot, _, _, pid_namespace = owner().split("/")
    dead = f"{boot}/4194305/1/{pid_namespace}"
    for trial, who in (("dw-dead", dead), ("dw-mine", owner())):
        place = Place(namespace=team, trial=trial)
        service = place.placed(manifests.service(QUICK.service), who)
        admin.core.create_namespaced_service(team, service)
        workload = place.placed(manifests.workload(app, image), who)
        admin.apps.create_namespaced_deployment(team, workload)
    said: list[str] = []
    settings = Settings(cluster="existing", kubeconfig=dw_cluster.kubeconfig, namespace=team)
    with opened_cluster(settings, tmp_path, said.append, keep=lambda: False):
        assert said == [f"removed trial dw-dead from namespace {team}, left by a run that is gone"]
        names = {name for _, name in things_in(admin, team) - before if "dead" in name}
        assert not any(name == "dw-dead" for name in names)
        left = things_in(admin, team)
        assert {("service", "dw-mine"), ("deployment", "dw-mine")} <= left
