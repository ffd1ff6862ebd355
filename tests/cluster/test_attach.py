"""A workload of the user's own, attached to in real trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch import (
    Access,
    App,
    Behavior,
    Controller,
    Flows,
    Http,
    Outcome,
    PreStop,
    Role,
    Scenario,
    Service,
    Tcp,
    Trial,
    Udp,
    Workload,
    attaching,
    cli,
    standing,
)
from pytest_drainwatch import Trigger as Verb
from pytest_drainwatch import trial as conductor
from pytest_drainwatch.api import Api
from pytest_drainwatch.cluster import Cluster, ClusterSettings
from pytest_drainwatch.cluster.opening import open_cluster
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.pod.ending import EndedBy
from pytest_drainwatch.core.scenario.workload import Protocol
from pytest_drainwatch.output import DONE
from pytest_drainwatch.trial import TrialVoid
from tests.cluster.accounts import Account, account, printed
from tests.cluster.attached import (
    NAME,
    SECRET,
    SHOP,
    canary,
    objects,
    running,
    service,
    stable,
    talkative,
)
from tests.cluster.harness import Silent, never

pytestmark = pytest.mark.cluster

FEW = Flows(tcp=4, udp=3, probe_interval_ns=20 * NS_PER_MS)
EXITS = App(behavior=Behavior.EXIT_NOW, grace_period_s=5)
Drainwatch = Callable[[Scenario], Trial]


@pytest.fixture
def shop(dw_cluster: Cluster) -> Iterator[Api]:
    """The user's workload: one pod, which exits at once."""
    with running(dw_cluster, EXITS) as api:
        yield api


def attach(protocol: str | Protocol, port: str, verb: Verb = Verb.DELETE, **other: Any) -> Scenario:
    about = {"what": f"deployment/{NAME}", "service": None, **other.pop("about", {})}
    workload = Workload.attach(namespace=SHOP, port=port, protocol=protocol, **about)
    values = {"flows": FEW, "settle_ns": NS_PER_S, **other}
    return Scenario(workload=workload, trigger=verb, **values)


def without_secrets(trial: Trial) -> None:
    for file in trial.folder.iterdir():
        assert SECRET not in file.read_text(), file


def test_plain_tcp_meets_the_end_of_a_pod_and_nothing_else_changes(
    shop: Api, drainwatch: Drainwatch
) -> None:
    before = objects(shop)
    trial = drainwatch(attach(Tcp(send="ping {seq}\n", expect=r"pong \d+ [^\n]*\n"), "tcp"))
    assert [flow.role for flow in trial.flows] == [Role.TARGET] * 4
    assert {flow.outcome for flow in trial.flows} == {Outcome.SEVERED}
    assert all(flow.answered and flow.answered > 10 for flow in trial.flows)
    assert trial.new_connections.failed > 0, "nobody listens until the replacement is ready"
    assert trial.summary.trigger_to_sigterm_ms is None, "nobody told"
    (end,) = trial.pod_ends
    assert end.deletion_ns is not None
    assert end.sigterm_ns is None, "its image may name another signal"
    assert end.stop_signal_ns is not None
    assert end.ended_ns is not None
    assert end.deletion_ns[0] <= end.stop_signal_ns[0]
    assert end.stop_signal_ns[0] <= end.stop_signal_ns[1] == end.ended_ns[1]
    assert objects(shop) == before
    without_secrets(trial)


def test_requests_over_http_fail_until_the_replacement_is_ready(
    shop: Api, drainwatch: Drainwatch
) -> None:
    http = Http(path=f"/readyz?token={SECRET}", headers={"X-Token": SECRET}, keepalive=4, idle=2)
    trial = drainwatch(attach(http, "http"))
    requests = trial.report.trial.requests
    assert requests is not None
    keepalive = next(kind for kind in requests.kinds if kind.kind == "keepalive")
    assert keepalive.failed > 0
    assert keepalive.attempts > keepalive.failed
    assert trial.flows == ()
    without_secrets(trial)


def void(cluster: Cluster, folder: Path, scenario: Scenario) -> str:
    """Why a trial was void."""
    with pytest.raises(TrialVoid) as caught:
        conductor.run_trial(cluster, scenario, folder=folder, keep=never, progress=Silent())
    assert not (folder / "report.json").exists()
    assert SECRET not in (folder / "recording.jsonl").read_text()
    return str(caught.value)


def test_no_secret_of_it_is_in_any_file_or_in_anything_that_is_printed(
    dw_cluster: Cluster,
    drainwatch: Drainwatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its arguments, log, probe, hook and last words; what it is told, and what it answers."""
    monkeypatch.setattr(standing, "BUDGET_TIMEOUT_S", 1.0)
    said = Tcp(send=f"AUTH {SECRET} {{seq}}\n", expect=rf"said AUTH {SECRET} \d+\n")
    budget = {
        "metadata": {"name": "strict", "annotations": {"token": SECRET}},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": NAME}}},
    }
    with running(dw_cluster, EXITS, made=talkative) as api:
        trial = drainwatch(attach(said, "tcp"))
        seen = api.core.list_namespaced_event(SHOP).items
        api.policy.create_namespaced_pod_disruption_budget(SHOP, budget)
        why = void(dw_cluster, tmp_path / "void" / "r00", attach(said, "tcp", Verb.EVICT))
    assert any(SECRET in (event.message or "") for event in seen), "it was there to be told"
    assert {event.reason for event in seen} >= {"Unhealthy", "FailedPreStopHook"}
    assert all(flow.answered and flow.answered > 10 for flow in trial.flows)
    assert trial.exit_codes == (3,)
    assert "strict" in why
    assert SECRET not in why
    without_secrets(trial)
    capsys.readouterr()
    assert cli.main(["show", str(trial.folder)]) == DONE
    assert cli.main(["derive", str(trial.folder / "recording.jsonl")]) == DONE
    assert cli.main(["aggregate", str(trial.folder), "--markdown"]) == DONE
    printed = capsys.readouterr().out
    assert "preStop" in printed
    assert SECRET not in printed


def test_what_cannot_be_attached_to_says_so_before_anything_is_triggered(
    shop: Api, dw_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attaching, "SETTLED_TIMEOUT_S", 2.0)
    monkeypatch.setattr(standing, "BUDGET_TIMEOUT_S", 1.0)

    def why(scenario: Scenario) -> str:
        folder = tmp_path / f"{len(list(tmp_path.iterdir())):02}" / "r00"
        return void(dw_cluster, folder, scenario)

    def create(name: str, **changes: Any) -> None:
        body = service(**changes)
        body["metadata"]["name"] = name
        shop.core.create_namespaced_service(SHOP, body)

    before = {pod.metadata.uid for pod in shop.core.list_namespaced_pod(SHOP).items}
    told = why(attach("tcp", "tcp", about={"what": "deployment/wbe"}))
    assert "workload-found" in told
    assert f"deployment/{NAME}" in told, "what is there instead"
    assert f"kubectl -n {SHOP} get deployments" in told

    told = why(attach("tcp", "https"))
    assert "service-found" in told
    assert "tcp:7001/tcp" in told, "the ports that there are"

    create("bare", selector=None)
    told = why(attach("tcp", "tcp", about={"service": "bare"}))
    assert "Service bare has no selector" in told
    assert "kubectl" in told

    create("other", selector={"app": "other"})
    told = why(attach("tcp", "tcp", about={"service": "other"}))
    assert "Service other selects app=other: not these pods" in told

    create("second")
    assert "2 Services fit: second, web" in why(attach("tcp", "tcp"))

    create("closed", ports=[{"name": "tcp", "port": 9, "targetPort": 9}])
    told = why(attach("tcp", "tcp", about={"service": "closed"}))
    assert "address-reachable" in told
    assert "ECONNREFUSED" in told

    shop.policy.create_namespaced_pod_disruption_budget(
        SHOP,
        {
            "metadata": {"name": "strict"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": NAME}}},
        },
    )
    told = why(attach("tcp", "tcp", Verb.EVICT, about={"service": "web"}))
    assert "strict" in told
    assert "kubectl" in told

    # A second pod that no node takes: the workload is not as it is meant to be.
    shop.apps.patch_namespaced_deployment(
        NAME,
        SHOP,
        {
            "spec": {
                "template": {"spec": {"nodeSelector": {"there-is": "no-such-node"}}},
                "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            }
        },
    )
    told = why(attach("tcp", "tcp", about={"service": "web"}))
    assert "workload-pods-ready" in told
    assert "rollout status" in told

    after = {pod.metadata.uid for pod in shop.core.list_namespaced_pod(SHOP).items}
    assert before <= after, "nothing was terminated"
    shop.apps.patch_namespaced_deployment_scale(NAME, SHOP, {"spec": {"replicas": 0}})
    told = why(attach("tcp", "tcp", about={"service": "web"}))
    assert "workload-has-replicas" in told
    assert f"scale deployment/{NAME} --replicas=1" in told
    namespaces = [item.metadata.name for item in shop.core.list_namespace().items]
    assert not [name for name in namespaces if name.startswith("dw-")]


@pytest.mark.slow
def test_conntrack_tells_whose_flows_they_are(dw_cluster: Cluster, drainwatch: Drainwatch) -> None:
    with running(dw_cluster, App(behavior=Behavior.EXIT_NOW, grace_period_s=5, replicas=3)):
        trial = drainwatch(attach("tcp", "tcp"))  # nothing is said on these
    assert len(trial.flows) == 12
    assert {flow.role for flow in trial.flows} == {Role.TARGET, Role.BYSTANDER}
    (target,) = trial.report.trial.trigger.targets
    for flow in trial.flows:
        ended = flow.outcome is Outcome.SEVERED
        assert ended == (flow.responders == (target,)) == (flow.role is Role.TARGET)
        assert ended or flow.outcome is Outcome.SURVIVED


@pytest.mark.slow
def test_the_role_that_is_printed_is_enough_and_each_right_is_asked_for_by_name(
    dw_cluster: Cluster, tmp_path: Path
) -> None:
    words = ("--attach", "--namespace", SHOP, "--trigger", "rollout", "--no-optional")
    asked = attach("tcp", "tcp", Verb.ROLLOUT)
    with running(dw_cluster, EXITS) as api:
        before = objects(api)["names"]
        roles = printed("exact", *words)
        with account(dw_cluster, tmp_path, "exact", roles) as who:
            cluster = existing(dw_cluster, who)
            trial = conductor.run_trial(
                cluster, asked, folder=tmp_path / "ok" / "r00", keep=never, progress=Silent()
            )
            assert trial.tcp.severed == 4
        assert len(objects(api)["names"]) == len(before)
        for verb, resource in (("list", "services"), ("patch", "deployments"), ("watch", "pods")):
            less = [dict(each) for each in printed(f"no-{resource}", *words)]
            for role in less:
                for rule in role.get("rules", ()):
                    if resource in rule["resources"]:
                        rule["verbs"] = [one for one in rule["verbs"] if one != verb]
                role.update(
                    {"rules": [r for r in role["rules"] if r["verbs"]]} if "rules" in role else {}
                )
            with account(dw_cluster, tmp_path / resource, f"no-{resource}", less) as who:
                told = void(existing(dw_cluster, who), tmp_path / resource / "r00", asked)
            assert "rights-granted" in told
            assert f"{verb} {resource}" in told
            assert "drainwatch rbac --namespace shop" in told
            assert "--attach" in told


def existing(cluster: Cluster, who: Account) -> Cluster:
    """The same cluster as that account sees it."""
    wanted = ClusterSettings(provider="existing", kubeconfig=who.kubeconfig)
    return open_cluster(wanted, why="asked for", log=lambda _: None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "what", "verb"),
    [
        (Controller.STATEFUL_SET, f"statefulset/{NAME}", Verb.ROLLOUT),
        (Controller.DAEMON_SET, f"daemonset/{NAME}", Verb.ROLLOUT),
        (None, f"app={NAME}", Verb.DELETE),
    ],
)
def test_whatever_keeps_the_pods_alive(
    kind: Controller | None, what: str, verb: Verb, dw_cluster: Cluster, drainwatch: Drainwatch
) -> None:
    with running(dw_cluster, EXITS, kind=kind) as api:
        trial = drainwatch(attach("tcp", "tcp", verb, about={"what": what}))
        pods = api.core.list_namespaced_pod(SHOP).items
    assert trial.tcp.severed == trial.tcp.total == 4
    assert len(pods) == (1 if kind else 0), "what kept it alive made another, and nobody else did"
    if kind is None:
        assert trial.new_connections.last_answered_ns is not None
        assert trial.new_connections.last_answered_ns[1] < 5 * NS_PER_S, "nothing replaces it"


@pytest.mark.slow
def test_udp_is_led_to_another_pod_and_that_is_no_survival(
    shop: Api, drainwatch: Drainwatch
) -> None:
    udp = Udp(send="ping {seq}\n", expect=r"pong (?P<seq>\d+) ")
    trial = drainwatch(attach(udp, "udp", Verb.ROLLOUT))
    assert trial.udp.total == 3
    assert trial.udp.severed == 3
    assert trial.udp.survived_window == 0


@pytest.mark.slow
def test_a_canary_behind_the_same_service_takes_its_share_and_is_told(
    dw_cluster: Cluster, drainwatch: Drainwatch
) -> None:
    """A rollout ends every pod of the workload, and not every flow leads to one of them."""
    with running(dw_cluster, EXITS, made=stable) as api:
        canary(api, dw_cluster.ensure_probe_image(), EXITS)
        trial = drainwatch(attach("tcp", "tcp", Verb.ROLLOUT, flows=replace(FEW, tcp=10)))
    assert len(trial.flows) == 20, "twice as many, for one pod out of two"
    assert {flow.role for flow in trial.flows} == {Role.TARGET, Role.BYSTANDER}
    for flow in trial.flows:
        ended = flow.role is Role.TARGET
        assert flow.outcome is (Outcome.SEVERED if ended else Outcome.SURVIVED)
    assert any("1 pod(s) that are not this workload's" in n for n in trial.report.trial.notes)


@pytest.mark.slow
@pytest.mark.parametrize("what", [f"app={NAME}", f"deployment/{NAME}"])
def test_a_cluster_ip_is_reached_from_a_namespace_of_our_own(
    what: str, dw_cluster: Cluster, drainwatch: Drainwatch
) -> None:
    inside = service(type="ClusterIP")
    del inside["spec"]["externalTrafficPolicy"]
    with running(dw_cluster, EXITS, service=inside) as api:
        before = objects(api)
        trial = drainwatch(
            attach("tcp", "tcp", about={"what": what}, service=Service(access=Access.CLUSTER_IP))
        )
        assert objects(api) == before
        left = [item.metadata for item in api.core.list_namespace().items]
    assert trial.tcp.severed == 4
    ours = [meta for meta in left if meta.name.startswith("dw-")]
    assert all(meta.deletion_timestamp for meta in ours), "the client's was ours, and goes"


@pytest.mark.slow
def test_a_sleep_before_sigterm_saves_requests(dw_cluster: Cluster, drainwatch: Drainwatch) -> None:
    """The question that people have of an nginx Deployment, and the figures that answer it."""
    failed = {}
    for hook in (None, PreStop(sleep_s=4)):
        app = App(behavior=Behavior.EXIT_NOW, grace_period_s=8, replicas=2, pre_stop=hook)
        with running(dw_cluster, app):
            trial = drainwatch(attach(Http(path="/readyz", idle=0, new=4), "http", Verb.ROLLOUT))
        requests = trial.report.trial.requests
        assert requests is not None
        failed[hook] = sum(kind.failed for kind in requests.kinds)
        assert trial.report.trial.config["pre_stop"] == (hook.config() if hook else None)
    assert failed[None] > 0
    assert failed[PreStop(sleep_s=4)] == 0


QUITS = ("python3", "-c", "import os, time; os.kill(1, 15); time.sleep(2)")


@pytest.mark.slow
def test_a_hook_that_ends_its_container_leaves_open_whether_a_signal_came(
    dw_cluster: Cluster, drainwatch: Drainwatch
) -> None:
    """As `nginx -s quit` in a preStop hook does."""
    app = App(behavior=Behavior.EXIT_NOW, grace_period_s=8, pre_stop=PreStop(exec=QUITS))
    with running(dw_cluster, app):
        trial = drainwatch(attach("tcp", "tcp"))
    (end,) = trial.pod_ends
    assert (end.ended_by, end.exit_code) == (EndedBy.UNKNOWN, 0)
    assert (end.stop_signal_ns, end.sigterm_ns) == (None, None)
    assert any("may have ended before its preStop hook was over" in e for e in end.evidence)
