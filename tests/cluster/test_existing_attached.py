"""A workload of the user's, attached to with the rights of one Role in its namespace."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_drainwatch import App, Behavior, Flows, Scenario, Trial, Trigger, Workload
from pytest_drainwatch import trial as conductor
from pytest_drainwatch.cluster import Cluster, ClusterSettings
from pytest_drainwatch.cluster.opening import open_cluster
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario import Controller
from pytest_drainwatch.rights.needed import needed
from pytest_drainwatch.rights.right import Right
from pytest_drainwatch.trial import TrialVoid
from tests.cluster.accounts import Account, Objects, account, printed, until_denied, without
from tests.cluster.attached import NAME, SHOP, running
from tests.cluster.harness import Silent, never

pytestmark = pytest.mark.cluster

EXITS = App(behavior=Behavior.EXIT_NOW, grace_period_s=5)
NAMED, LABELLED = f"deployment/{NAME}", f"app={NAME}"


def asked(what: str, trigger: Trigger) -> Scenario:
    return Scenario(
        workload=Workload.attach(what, namespace=SHOP, port="tcp", protocol="tcp"),
        trigger=trigger,
        flows=Flows(tcp=2, udp=0, probe_interval_ns=20 * NS_PER_MS),
        settle_ns=NS_PER_S,
    )


def role_for(scenario: Scenario) -> Objects:
    """What is printed for it, without what is optional."""
    flags: tuple[str, ...] = ("--attach", "--namespace", SHOP, "--no-optional")
    assert scenario.workload is not None
    if scenario.workload.kind is not None:
        flags = (*flags, "--controller", str(scenario.workload.kind))
    return printed("shop", *flags, "--trigger", str(scenario.trigger))


def tried(cluster: Cluster, runner: Account, scenario: Scenario, folder: Path) -> Trial:
    settings = ClusterSettings(provider="existing", kubeconfig=runner.kubeconfig)
    there = open_cluster(settings, why="asked for", log=lambda _: None)
    return conductor.run_trial(there, scenario, folder=folder, keep=never, progress=Silent())


def rights_of(scenario: Scenario) -> tuple[Right, ...]:
    return needed(scenario, own=True, found=Controller.DEPLOYMENT)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "trigger"),
    [
        (NAMED, Trigger.DELETE),
        (NAMED, Trigger.ROLLOUT),
        (LABELLED, Trigger.ROLLOUT),
        (LABELLED, Trigger.EVICT),
    ],
)
def test_a_role_in_its_namespace_suffices(
    what: str, trigger: Trigger, dw_cluster: Cluster, tmp_path: Path
) -> None:
    scenario = asked(what, trigger)
    optional = {right for right in rights_of(scenario) if right.optional}
    with (
        running(dw_cluster, EXITS),
        account(dw_cluster, tmp_path, "shop", role_for(scenario)) as runner,
    ):
        until_denied(runner, rights_of(scenario), SHOP, optional)
        trial = tried(dw_cluster, runner, scenario, tmp_path / "r00")
    assert trial.tcp.total == 2
    assert trial.report.trial.trigger.targets


def test_a_right_that_is_missing_is_named_before_the_workload_is_looked_for(
    dw_cluster: Cluster, tmp_path: Path
) -> None:
    """What a rollout takes is known once it is known whose pods the labels mean."""
    scenario = asked(LABELLED, Trigger.ROLLOUT)
    services = Right(verb="list", resource="services", why="the Service in front of it")
    patch = Right(verb="patch", resource="deployments", group="apps", why="trigger rollout")
    optional = {right for right in rights_of(scenario) if right.optional}
    with running(dw_cluster, EXITS):
        for lacking in (services, patch):
            objects = without(role_for(scenario), lacking)
            with account(dw_cluster, tmp_path, "shop", objects) as runner:
                until_denied(runner, rights_of(scenario), SHOP, {lacking} | optional)
                with pytest.raises(TrialVoid) as caught:
                    tried(dw_cluster, runner, scenario, tmp_path / lacking.verb)
            said = str(caught.value)
            assert "preflight check 'rights-granted' failed" in said
            assert f"may not: {lacking.in_words(SHOP)} ({lacking.why})\n" in said
            assert (
                f"drainwatch rbac --namespace {SHOP} --service-account default:shop "
                "--trigger rollout --attach --name drainwatch-"
            ) in said
