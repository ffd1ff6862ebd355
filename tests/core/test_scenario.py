"""Scenarios: what can be asked, what is refused, what is flagged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.plan import dense_stretches
from pytest_drainwatch.core.scenario import (
    App,
    Behavior,
    ClusterNeeds,
    Flows,
    Pid1,
    PreStop,
    Readiness,
    Scenario,
    ScenarioError,
    Service,
    Trigger,
    arms,
    check_arms,
    differences,
    matrix,
)
from pytest_drainwatch.workload.manifests import deployment


def test_ids_join_behavior_and_trigger() -> None:
    ids = [found.id for found in matrix(behavior=["drain", "ignore"], trigger=["delete", "scale"])]
    assert ids == ["drain-delete", "drain-scale", "ignore-delete", "ignore-scale"]


def test_only_drain_ids_hold_the_word_drain() -> None:
    """``pytest -k drain`` must mean the behaviour."""
    assert [found.id for found in matrix() if "drain" in found.id] == [
        f"drain-{trigger}" for trigger in ("delete", "evict", "scale")
    ]


def _with(**app: Any) -> Scenario:
    return Scenario(app=App(**app))


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (lambda: matrix(behavior=["dran"]), "drain, exit-now, ignore"),
        (lambda: matrix(trigger=["drop"]), "delete, evict, scale"),
        (lambda: Scenario(app=App(grace_period_s=-1)), "grace_period_s is -1"),
        (lambda: Scenario(app=App(drain_ns=10**20)), "drain_ns"),
        (lambda: Scenario(flows=Flows(tcp=0, udp=0)), "at least one flow"),
        (lambda: Scenario(flows=Flows(tcp=1_000_000)), "tcp flows is 1000000"),
        (lambda: Scenario(flows=Flows(udp_rate_hz=0)), "udp_rate_hz is 0"),
        (lambda: Scenario(flows=Flows(udp_sparse_rate_hz=0)), "udp_sparse_rate_hz is 0"),
        (lambda: Scenario(flows=Flows(tcp_sparse_rate_hz=21)), "tcp_sparse_rate_hz is 21.*1..20"),
        (lambda: _with(pid1="sh"), "pid1 is 'sh', expected one of: probe, shell"),
        (lambda: _with(pre_stop={"sleep_s": 3}), "pre_stop is {'sleep_s': 3}, expected PreStop"),
        (lambda: _with(pre_stop=PreStop(exec="sleep 3")), "pre_stop.exec is 'sleep 3'"),  # type: ignore[arg-type]
        (lambda: _with(pre_stop=PreStop(exec=())), "no action"),
        (lambda: _with(exit_now_reset="no"), "exit_now_reset is 'no', expected bool"),
        (lambda: Scenario(app=None), "app is None, expected App"),  # type: ignore[arg-type]
        (lambda: ClusterNeeds(kube_version=1.34), "kube_version is 1.34, expected str or None"),  # type: ignore[arg-type]
        (lambda: ClusterNeeds(kube_version=True), "kube_version is True"),  # type: ignore[arg-type]
        (lambda: Scenario(cluster=ClusterNeeds(kube_version="1")), "expected a minor version"),
        (lambda: Scenario(flows=None), "flows is None, expected Flows"),  # type: ignore[arg-type]
        (lambda: Scenario(settle_ns=-1), "settle_ns"),
        (lambda: Scenario(observe_timeout_ns=5), "observe_timeout_ns"),
        (lambda: Scenario(app=App(replicas=True)), "replicas is True"),
        (lambda: _with(pre_stop=PreStop()), "pre_stop has no action, expected exactly one"),
        (lambda: _with(pre_stop=PreStop(sleep_s=1, http_ns=1)), "pre_stop has sleep_s, http_ns"),
        (lambda: _with(pre_stop=PreStop(exec=())), "pre_stop has no action"),
        (lambda: _with(pre_stop=PreStop(exec=("a", ""))), "pre_stop.exec is"),
        (lambda: _with(pre_stop=PreStop(sleep_s=31)), "pre_stop.sleep_s is 31.*0..30"),
        (lambda: _with(pre_stop=PreStop(http_ns=-1)), "pre_stop.http_ns is -1"),
        (lambda: _with(pid1="bash"), "pid1 is 'bash', expected one of: probe, shell"),
        (lambda: _with(response_delay_ns=NS_PER_S), "response_delay_ns is 1000000000"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(bad: object, named: str) -> None:
    assert callable(bad)
    with pytest.raises(ScenarioError, match=named):
        bad()


def test_a_word_means_what_its_member_means() -> None:
    """Whoever writes "shell" must not get a trial that merely says so."""
    words: dict[str, Any] = {"behavior": "ignore", "readiness_on_drain": "keep", "pid1": "shell"}
    asked = Scenario(app=App(**words), trigger="scale")  # type: ignore[arg-type]
    members = App(behavior=Behavior.IGNORE, readiness_on_drain=Readiness.KEEP, pid1=Pid1.SHELL)
    meant = Scenario(app=members, trigger=Trigger.SCALE)
    assert asked == meant
    assert type(asked.app.pid1) is Pid1
    assert type(asked.trigger) is Trigger
    assert asked.flags == meant.flags
    assert deployment(asked.app, "image") == deployment(meant.app, "image")
    assert dense_stretches(asked) == dense_stretches(meant)


def test_a_drain_as_long_as_the_grace_period_is_allowed_and_flagged() -> None:
    too_long = Scenario(app=App(drain_ns=30 * NS_PER_S, grace_period_s=30))
    assert "kills the pod before it has drained" in too_long.flags[0]
    assert Scenario(app=App(drain_ns=29 * NS_PER_S, grace_period_s=30)).flags == ()


@pytest.mark.parametrize(
    ("flows", "sparse"),
    [
        (Flows(), (5, 10)),
        (Flows(tcp_rate_hz=1, udp_rate_hz=1), (1, 1)),  # never above the dense ones
        (Flows(tcp_sparse_rate_hz=20, udp_sparse_rate_hz=60), (20, 60)),  # dense throughout
    ],
)
def test_sparse_rates_stand_in_the_configuration(flows: Flows, sparse: tuple[int, int]) -> None:
    config = Scenario(flows=flows).config()
    assert (config["tcp_sparse_rate_hz"], config["udp_sparse_rate_hz"]) == sparse


@pytest.mark.parametrize(
    ("app", "after_trigger_s", "at_most_s"),
    [
        (App(), 29, 60),
        (App(behavior=Behavior.IGNORE), 34, 60),
        (App(behavior=Behavior.EXIT_NOW), 4, 60),
        (App(behavior=Behavior.EXIT_NOW, pid1=Pid1.SHELL), 34, 60),
        (App(behavior=Behavior.EXIT_NOW, pre_stop=PreStop(sleep_s=7)), 11, 60),
        (App(behavior=Behavior.IGNORE, pre_stop=PreStop(sleep_s=30)), 36, 62),
        (App(pre_stop=PreStop(http_ns=3 * NS_PER_S), drain_ns=2 * NS_PER_S), 9, 60),
        (App(pre_stop=PreStop(exec=("a",), exec_lasts_ns=500 * NS_PER_S)), 36, 62),
        (App(behavior=Behavior.IGNORE, grace_period_s=0), 6, 32),
    ],
)
def test_a_trial_waits_for_hook_and_kill(app: App, after_trigger_s: int, at_most_s: int) -> None:
    asked = Scenario(app=app, settle_ns=0)
    assert asked.expected_ns == after_trigger_s * NS_PER_S
    assert asked.observe_ns == at_most_s * NS_PER_S


def test_hook_and_pid_1_stand_in_the_configuration() -> None:
    def config(**app: Any) -> dict[str, object]:
        return {k: _with(**app).config()[k] for k in ("pre_stop", "pid1", "response_delay_ms")}

    assert config() == {"pre_stop": None, "pid1": "probe", "response_delay_ms": 0.0}
    hook = PreStop(exec=("sleep", "3"))
    assert config(pre_stop=hook, pid1=Pid1.SHELL, response_delay_ns=1_500_000) == {
        "pre_stop": {"exec": ["sleep", "3"]},
        "pid1": "shell",
        "response_delay_ms": 1.5,
    }
    assert config(pre_stop=PreStop(sleep_s=3))["pre_stop"] == {"sleep_seconds": 3}
    half = PreStop(http_ns=500_000_000)
    assert config(pre_stop=half)["pre_stop"] == {"http_get_seconds": 0.5}


def test_a_shell_as_pid_1_is_flagged() -> None:
    assert "does not pass SIGTERM on" in _with(pid1=Pid1.SHELL).flags[0]


def test_a_drain_that_the_hook_leaves_no_time_for_is_flagged() -> None:
    asked = _with(pre_stop=PreStop(sleep_s=10), drain_ns=20 * NS_PER_S)
    assert "preStop leave after SIGTERM (20 s)" in asked.flags[0]
    assert _with(pre_stop=PreStop(sleep_s=10), drain_ns=19 * NS_PER_S).flags == ()


# Texts are as good as the members that they name, which no type says.
APP: Any = App
SERVICE: Any = Service
NEEDS: Any = ClusterNeeds
SCENARIO: Any = Scenario


def test_arms_differ_in_one_field_and_are_named_after_their_base() -> None:
    found = arms(Scenario(name="q"), "app.readiness_on_drain", {"fails": "fail", "keeps": "keep"})
    assert [arm.id for arm in found] == ["q-fails", "q-keeps"]
    assert differences(*found) == {"app.readiness_on_drain"}


def test_a_hook_is_one_value() -> None:
    hooks = {"none": None, "sleeps": PreStop(sleep_s=3), "runs": PreStop(exec=("true",))}
    found = arms(Scenario(), "app.pre_stop", hooks)
    assert differences(found[1], found[2]) == {"app.pre_stop"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ([Scenario()], "compare nothing"),
        ([Scenario(), Scenario(name="other")], "differ in nothing"),
        ([Scenario(), Scenario(settle_ns=1, targets=1, trigger=Trigger.EVICT)], "settle_ns, trigg"),
        (
            [Scenario(), Scenario(settle_ns=1), Scenario(trigger=Trigger.EVICT)],
            "differ in trigger",
        ),
    ],
)
def test_arms_that_compare_nothing_or_too_much_are_refused(
    asked: list[Scenario], said: str
) -> None:
    with pytest.raises(ScenarioError, match=said):
        check_arms(asked)


@pytest.mark.parametrize("field", ["readiness", "app.readiness", "apps.replicas", "app.", ""])
def test_arms_of_no_such_field(field: str) -> None:
    with pytest.raises(ScenarioError, match="no field"):
        arms(Scenario(), field, {"a": 1, "b": 2})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: Scenario(targets=2), "not so many pods"),
        (lambda: Scenario(app=App(replicas=2), targets=2, trigger=Trigger.SCALE), "about all pods"),
        (lambda: Scenario(app=APP(behavior="ignore", accept_on_drain="keep")), "only a draining"),
        (lambda: Scenario(app=APP(controller="daemonset", replicas=2)), "one pod for each node"),
        (
            lambda: Scenario(app=APP(controller="daemonset"), trigger=Trigger.SCALE),
            "cannot be scaled",
        ),
        (
            lambda: Scenario(app=APP(controller="daemonset"), trigger=Trigger.EVACUATE_NODE),
            "kubectl drain leaves them",
        ),
        (
            lambda: Scenario(service=SERVICE(access="clusterip", external_traffic_policy="Local")),
            "traffic from outside",
        ),
        (
            lambda: Scenario(app=App(replicas=2), service=SERVICE(session_affinity="ClientIP")),
            "pins TCP and UDP",
        ),
        (lambda: Scenario(service=SERVICE(access="ingress")), "nodeport, loadbalancer, clusterip"),
        (lambda: Scenario(cluster=NEEDS(proxy_mode="ebpf")), "iptables, nftables, ipvs"),
        (lambda: Scenario(cluster=ClusterNeeds(kube_version="v1.37.2")), "minor version"),
        (lambda: Scenario(cluster=ClusterNeeds(min_sync_period_ms=-1)), "min_sync_period_ms"),
        (lambda: Scenario(flows=Flows(probe_interval_ns=0)), "probe_interval_ns"),
        (lambda: Scenario(flows=Flows(udp_probe_interval_ns=999)), "udp_probe_interval_ns"),
        (lambda: Scenario(cluster=ClusterNeeds(nodes=0)), "nodes is 0"),
        (lambda: SERVICE(via_node="its-node"), "any, target-node, other-node"),
        (
            lambda: Scenario(service=SERVICE(access="clusterip", via_node="other-node")),
            "the client's own node",
        ),
        (
            lambda: Scenario(
                service=SERVICE(external_traffic_policy="Local", via_node="other-node")
            ),
            "its own pods alone",
        ),
        (
            lambda: Scenario(
                app=App(replicas=2),
                flows=Flows(udp=0),
                service=SERVICE(session_affinity="ClientIP", via_node="target-node"),
            ),
            "kube-proxy chooses the pod",
        ),
        (
            lambda: Scenario(
                flows=Flows(probe_each_node=True), service=SERVICE(access="clusterip")
            ),
            "tried node by node",
        ),
        (
            lambda: Scenario(flows=Flows(probe_each_node=True, probe_interval_ns=None)),
            "nothing is tried",
        ),
        (lambda: App(spread_over_nodes=1), "spread_over_nodes is 1"),  # type: ignore[arg-type]
        (lambda: SCENARIO(service="nodeport"), "service is"),
    ],
)
def test_what_cannot_be_together_is_refused_with_the_reason(
    asked: Callable[[], Scenario], said: str
) -> None:
    with pytest.raises(ScenarioError, match=said):
        asked()


def test_what_is_asked_of_the_cluster_stands_in_the_report() -> None:
    needs = NEEDS(proxy_mode="nftables", min_sync_period_ms=10_000)
    assert Scenario(cluster=needs).config()["cluster"] == {
        "proxy_mode": "nftables",
        "min_sync_period_ms": 10_000,
    }
    assert Scenario().config()["cluster"] == {}


def test_nodes_stand_in_the_report_where_they_are_asked_for() -> None:
    """Else older runs could not be compared with newer ones."""
    asked = Scenario(
        app=App(replicas=2, spread_over_nodes=True),
        flows=Flows(probe_each_node=True),
        service=SERVICE(via_node="other-node"),
        cluster=ClusterNeeds(nodes=2),
    ).config()
    new = {"spread_over_nodes", "probe_each_node", "via_node"}
    assert [asked[name] for name in sorted(new)] == [True, True, "other-node"]
    assert asked["cluster"] == {"nodes": 2}
    assert not new & Scenario().config().keys()


def test_a_rollouts_window_reaches_to_the_last_pods_end() -> None:
    """A pod is ended when its replacement is Ready, one after the other."""

    def window_s(ready_after_s: int) -> int:
        app = App(replicas=3, ready_after_s=ready_after_s)
        return Scenario(app=app, trigger=Trigger.ROLLOUT).observe_ns // NS_PER_S

    assert window_s(60) - window_s(0) == 3 * 60
    assert window_s(0) > Scenario(app=App(replicas=3)).observe_ns // NS_PER_S


def test_a_name_is_a_text() -> None:
    with pytest.raises(ScenarioError, match="name is 3"):
        SCENARIO(name=3)
