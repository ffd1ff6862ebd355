"""Each check passes on what it is for, and fails on everything else."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_drainwatch import preflight
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.scenario import App, Controller, Flows, Scenario
from pytest_drainwatch.flows.process import AgentStatus, ProberStatus, ProtoStatus
from pytest_drainwatch.preflight import Check, EndpointStability, TrialVoid, require
from pytest_drainwatch.standing import more_pods
from pytest_drainwatch.trigger import Owner, Pod, Target
from pytest_drainwatch.workload.budgets import Budget

WANTED = Flows(tcp=2, udp=2)
GOOD = ProtoStatus(wanted=2, dialled=2, answered=2, on_target=2, alive=2, min_answers=60)


def checks(status: AgentStatus) -> dict[str, Check]:
    error = status.error
    found = [
        preflight.flows_dialled(WANTED, status.tcp, status.udp, error),
        preflight.tcp_answered(WANTED, status.tcp, error),
        preflight.udp_answered(WANTED, status.udp, error),
        preflight.clock_identified(status.clocks, error),
    ]
    return {check.name: check for check in found}


def test_good_flows_pass() -> None:
    status = AgentStatus(tcp=GOOD, udp=GOOD, clocks=("boot/1",))
    assert all(check.passed for check in checks(status).values())


def test_an_agent_that_has_said_nothing_passes_no_check() -> None:
    """It wants no flows yet, and has them all."""
    assert not any(check.passed for check in checks(AgentStatus()).values())


@pytest.mark.parametrize(
    ("status", "fails"),
    [
        (AgentStatus(tcp=replace(GOOD, on_target=1), udp=GOOD), "flows-dialled"),
        (AgentStatus(tcp=GOOD, udp=replace(GOOD, on_target=0)), "flows-dialled"),
        (AgentStatus(tcp=replace(GOOD, answered=1), udp=GOOD), "tcp-flows-answered"),
        (AgentStatus(tcp=replace(GOOD, dialled=3), udp=GOOD), "tcp-flows-answered"),
        (AgentStatus(tcp=GOOD, udp=replace(GOOD, min_answers=59)), "udp-flows-answered"),
        (AgentStatus(tcp=GOOD, udp=replace(GOOD, answered=1)), "udp-flows-answered"),
        (AgentStatus(tcp=GOOD, udp=GOOD, clocks=()), "clock-identified"),
    ],
)
def test_each_shortfall_fails_its_check(status: AgentStatus, fails: str) -> None:
    assert not checks(status)[fails].passed


def told(**counts: int) -> Observation:
    """A pod's line about what it received of one-way flows."""
    rows = [{"flow": flow, "count": count} for flow, count in counts.items()]
    return Observation(
        source=Source.PROBE,
        event=Event.UDP_RECEIVED,
        at=Interval.point(0),
        subject="uid",
        data={"flows": rows},
    )


@pytest.mark.parametrize(
    ("seen", "passes"),
    [
        ([told(one=60, two=61)], True),
        ([told(one=60), told(two=60)], True),
        ([told(one=20, two=20), told(one=60, two=60)], True),  # counts since the start
        ([told(one=60, two=59)], False),
        ([told(one=600)], False),
        ([], False),
    ],
)
def test_every_one_way_flow_is_told_of_by_a_pod(seen: list[Observation], passes: bool) -> None:
    wanted = replace(WANTED, udp_one_way=2)
    assert preflight.one_way_received(wanted, seen, None).passed is passes
    assert not preflight.one_way_received(wanted, seen, "agent died").passed


def test_an_agents_error_fails_every_check_at_once() -> None:
    status = AgentStatus(tcp=GOOD, udp=GOOD, clocks=("b/1",), error="no descriptors")
    for check in checks(status).values():
        assert (check.passed, check.hopeless) == (False, True)
        assert "no descriptors" in str(check)


READY = {"name": "p", "ready": True, "phase": "Running"}


@pytest.mark.parametrize(
    ("pods", "observed"),
    [
        ({}, "no pod"),
        ({"a": READY, "b": READY | {"name": "q"}}, "p ready; q ready"),
        ({"a": READY | {"ready": False}}, "p Running"),
        ({"a": READY | {"deletion_timestamp": "now"}}, "p terminating"),
    ],
)
def test_only_exactly_the_expected_ready_pods_pass(
    pods: dict[str, dict[str, object]], observed: str
) -> None:
    check = preflight.pods_ready(pods, 1, "ns", 0)
    assert not check.passed
    assert check.observed == observed
    assert preflight.pods_ready({"a": READY}, 1, "ns", 0).passed


def test_a_log_that_is_not_followed_fails_and_says_why() -> None:
    assert preflight.logs_followed({"p": True}, [], hopeless=False).passed
    refused = preflight.logs_followed({"p": False, "q": True}, ["HTTP 403"], hopeless=True)
    assert (refused.passed, refused.hopeless) == (False, True)
    assert refused.observed == "nothing from p (HTTP 403)"


def test_an_unreadable_version_says_why() -> None:
    warnings = ["the Kubernetes version could not be read: HTTP 403: no"]
    unread = preflight.version_readable({"kubernetes_version": None, "warnings": warnings})
    assert not unread.passed
    assert "HTTP 403" in unread.observed
    assert preflight.version_readable({"kubernetes_version": "v1.37.2", "warnings": []}).passed


def waiting(reason: str) -> dict[str, dict[str, object]]:
    container = {"name": "probe", "state": "waiting", "reason": reason}
    return {"a": {"name": "p", "ready": False, "phase": "Pending", "containers": [container]}}


def test_what_waiting_does_not_mend_is_given_up_on() -> None:
    assert preflight.pods_ready(waiting("ErrImageNeverPull"), 1, "ns", 0).hopeless
    assert not preflight.pods_ready(waiting("ContainerCreating"), 1, "ns", 10**11).hopeless
    assert not preflight.pods_ready(waiting("ImagePullBackOff"), 1, "ns", NS_PER_S).hopeless
    assert preflight.pods_ready(waiting("ImagePullBackOff"), 1, "ns", 16 * NS_PER_S).hopeless


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff"])
def test_an_image_that_cannot_be_pulled_is_named_after_another_try(reason: str) -> None:
    early = preflight.pods_ready(waiting(reason), 1, "ns", 15 * NS_PER_S, "there/probe:1")
    assert (early.name, early.hopeless) == ("probe-pods-ready", False)
    late = preflight.pods_ready(waiting(reason), 1, "ns", 16 * NS_PER_S, "there/probe:1")
    assert (late.name, late.passed, late.hopeless) == ("image-pulled", False, True)
    assert late.observed == f"p: {reason}"
    assert late.expected.startswith("there/probe:1 is there")
    assert "--dw-probe-image REF" in late.look_at


@pytest.mark.parametrize("reason", ["ErrImageNeverPull", "InvalidImageName"])
def test_an_image_that_nobody_will_pull_is_named_at_once(reason: str) -> None:
    assert preflight.pods_ready(waiting(reason), 1, "ns", 0, "there/probe:1").name == "image-pulled"


def test_pods_that_are_not_made_are_looked_for_at_their_controller() -> None:
    assert "describe replicasets" in preflight.pods_ready({}, 1, "ns", 0).look_at
    assert "describe pods" in preflight.pods_ready(waiting("ContainerCreating"), 1, "ns", 0).look_at


@pytest.mark.parametrize(
    ("state", "ends_it", "passes"),
    [("Active", False, True), ("Active", True, False), ("Terminating", False, False)],
)
def test_a_given_namespace_is_there_and_stays(state: str, ends_it: bool, passes: bool) -> None:
    assert preflight.namespace_given("team", state, ends_it=ends_it).passed is passes


def slices(*ready: str) -> dict[str, dict[str, object]]:
    return {"s": {"endpoints": [{"uid": uid, "ready": True} for uid in ready]}}


def test_an_endpoint_must_be_ready_without_a_break() -> None:
    """Case C60: an endpoint of an earlier pod, or one that flickers, does not count."""
    stable = EndpointStability(2 * NS_PER_S)
    step = 500 * NS_PER_MS
    assert not stable.check(slices("old"), ["new"], 0, "ns").passed
    assert not stable.check(slices("old", "new"), ["new"], 1 * step, "ns").passed
    assert not stable.check(slices("new"), ["new"], 4 * step, "ns").passed
    assert not stable.check(slices(), ["new"], 5 * step, "ns").passed  # the break
    assert not stable.check(slices("new"), ["new"], 6 * step, "ns").passed
    assert stable.check(slices("new"), ["new"], 10 * step, "ns").passed


def test_pods_of_others_behind_the_service_are_told() -> None:
    stable = EndpointStability(0)
    assert "beside them" not in stable.check(slices("a"), ["a"], 0, "ns").observed
    shared = stable.check(slices("a", "canary"), ["a"], 0, "ns")
    assert shared.passed
    assert "1 pod(s) beside them that are not the workload's" in shared.observed


def test_limits_name_what_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (100, 100))
    short = preflight.limits_suffice(200)
    assert (short.passed, short.hopeless) == (False, True)
    assert "hard limit of open files is 100" in short.observed
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 1024))
    assert preflight.limits_suffice(200).passed


def result(passed: bool, hopeless: bool = False) -> Check:
    return Check(
        name="n",
        invariant="i",
        expected="e",
        observed="o",
        look_at="l",
        passed=passed,
        hopeless=hopeless,
    )


def never(_: float) -> None:
    raise AssertionError("waited")


def test_require_records_how_a_check_ended() -> None:
    seen: list[Observation] = []
    require(lambda: result(True), seen.append, timeout_s=9, wait=never)
    with pytest.raises(TrialVoid, match="'n' failed"):
        require(lambda: result(False, hopeless=True), seen.append, timeout_s=9, wait=never)
    with pytest.raises(TrialVoid, match="observed:  o"):
        require(lambda: result(False), seen.append, timeout_s=0, wait=never)
    assert [(o.event, o.data["passed"]) for o in seen] == [
        (Event.PREFLIGHT_CHECK, True),
        (Event.PREFLIGHT_CHECK, False),
        (Event.PREFLIGHT_CHECK, False),
    ]


def test_require_looks_again_until_it_passes() -> None:
    answers = iter([False, False, True])
    waits: list[float] = []
    look: Callable[[], Check] = lambda: result(next(answers))  # noqa: E731
    require(look, lambda _: None, timeout_s=9, wait=waits.append)
    assert len(waits) == 2


def allows(name: str, number: int | None = 1) -> Budget:
    return Budget(name=name, rule="minAvailable 1", allowed=number, healthy=2, wanted=1)


A = allows("a")


def test_several_budgets_on_one_pod_are_misconfigured() -> None:
    """Case C32: not "retry later" but never."""
    found = preflight.budgets_clear({"p": [allows("b"), A], "q": [A]}, [], None, "ns")
    assert (found.passed, found.hopeless) == (False, True)
    assert "blocked: misconfigured, 2 budgets select this pod: p (a, b)" in found.observed
    assert found.look_at == "kubectl -n ns delete poddisruptionbudget b", "one of them stays"


@pytest.mark.parametrize(
    ("selecting", "idle", "problem", "observed"),
    [
        ({"p": []}, [], None, "p: no budget"),
        ({"p": [A]}, [], None, f"p: {A}"),
        ({"p": [A], "q": []}, [], None, f"p: {A}; q: no budget"),
        ({"p": []}, ["typo"], None, "p: no budget; budget typo selects no pod"),
        ({}, [], "HTTP 403: no", "not known, and the eviction will tell: HTTP 403: no"),
    ],
)
def test_none_or_one_budget_is_for_the_eviction_to_find_out(
    selecting: dict[str, list[Budget]], idle: list[str], problem: str | None, observed: str
) -> None:
    found = preflight.budgets_clear(selecting, idle, problem, "ns")
    assert (found.passed, found.observed) == (True, observed)


@pytest.mark.parametrize(
    ("pods", "allowed", "at_once", "passes"),
    [
        ("p", 1, True, True),
        ("p", 0, True, False),
        ("p", 0, False, False),
        ("p", None, True, False),
        ("pq", 1, True, False),
        ("pq", 1, False, True),  # an evacuation goes on when the first is replaced
        ("pq", 2, True, True),
    ],
)
def test_a_budget_must_allow_the_evictions(
    pods: str, allowed: int | None, at_once: bool, passes: bool
) -> None:
    """One that forbids is known before anything is triggered; it may be judged anew meanwhile."""
    budget = allows("web", allowed)
    found = preflight.budgets_clear(
        {pod: [budget] for pod in pods}, [], None, "ns", all_at_once=at_once
    )
    assert (found.passed, found.hopeless) == (passes, False)
    if not passes:
        assert "blocked: budget web (minAvailable 1)" in found.observed


def patch(**spec: int) -> str:
    return "kubectl -n ns patch poddisruptionbudget web --type merge -p " + shlex.quote(
        json.dumps({"spec": spec})
    )


@pytest.mark.parametrize(
    ("rule", "healthy", "wanted", "pods", "command"),
    [
        ("minAvailable 2", 2, 2, "p", f"3 pods, or {patch(minAvailable=1)}"),
        ("minAvailable 2", 2, 2, "pq", f"4 pods, or {patch(minAvailable=0)}"),
        # One of them is not healthy, so one more is needed.
        ("minAvailable 2", 1, 2, "p", f"4 pods, or {patch(minAvailable=0)}"),
        ("minAvailable 100%", 2, 2, "p", patch(minAvailable=1)),
        ("maxUnavailable 0", 2, 2, "p", patch(maxUnavailable=1)),
        ("maxUnavailable 0", 2, 2, "pq", patch(maxUnavailable=2)),
        # Its controller has yet to say anything: nothing is known to be wrong with it.
        ("minAvailable 2", None, None, "p", "kubectl -n ns describe poddisruptionbudget web"),
    ],
)
def test_the_command_is_one_after_which_it_lets_them_go(
    rule: str, healthy: int | None, wanted: int | None, pods: str, command: str
) -> None:
    allowed = None if healthy is None else 0
    budget = Budget(name="web", rule=rule, allowed=allowed, healthy=healthy, wanted=wanted)
    selecting = {pod: [budget] for pod in pods}
    found = preflight.budgets_clear(
        selecting, [], None, "ns", more=lambda number: f"{2 + number} pods"
    )
    assert (found.passed, found.look_at) == (False, command)
    without = preflight.budgets_clear(selecting, [], None, "ns")
    assert without.look_at == command.rpartition(", or ")[2]


@pytest.mark.parametrize(
    ("kind", "ours", "told"),
    [
        (Controller.DEPLOYMENT, False, "kubectl -n shop scale deployment/web --replicas=3"),
        (Controller.STATEFUL_SET, False, "kubectl -n shop scale statefulset/web --replicas=3"),
        (Controller.DEPLOYMENT, True, "App(replicas=3) in the scenario"),
        (Controller.DAEMON_SET, False, None),
        (None, False, None),
    ],
)
def test_who_says_how_many_pods_there_are(
    kind: Controller | None, ours: bool, told: str | None
) -> None:
    pods = tuple(Pod(name=name, uid=name) for name in "ab")
    target = Target(
        namespace="shop",
        pod=pods[0],
        chosen=pods[:1],
        pods=pods,
        controller=Owner(kind=kind, name="web") if kind else None,
        ours=ours,
    )
    more = more_pods(Scenario(app=App(replicas=2)), target)
    assert (more and more(1)) == told


BOTH = replace(WANTED, probe_interval_ns=5 * NS_PER_MS, udp_probe_interval_ns=NS_PER_S)
TCP = {"tcp-new": ProberStatus(attempts=9, answered=1)}
UDP = {"udp-new": ProberStatus(attempts=1, answered=1)}
NO_TCP = {"tcp-new": ProberStatus(attempts=9, answered=0)}
NO_UDP = {"udp-new": ProberStatus(attempts=9, answered=0)}


@pytest.mark.parametrize(
    ("wanted", "probers", "passes"),
    [
        (BOTH, TCP | UDP, True),
        (BOTH, TCP | NO_UDP, False),
        (BOTH, NO_TCP | UDP, False),
        (BOTH, TCP, False),
        (BOTH, {}, False),
        (replace(BOTH, udp_probe_interval_ns=None), TCP, True),
        (replace(BOTH, probe_interval_ns=None), TCP, False),
        (replace(BOTH, probe_interval_ns=None, udp_probe_interval_ns=None), {}, True),
    ],
)
def test_each_prober_that_was_asked_for_is_answered(
    wanted: Flows, probers: dict[str, ProberStatus], passes: bool
) -> None:
    assert preflight.new_connections_answered(wanted, probers, None).passed is passes
    at_two = preflight.new_connections_answered(wanted, probers, None, nodes=2)
    assert not at_two.passed, "nobody was heard of at the second node"
    second = {"tcp-new-2": ProberStatus(attempts=9, answered=1)}
    at_both = preflight.new_connections_answered(wanted, probers | second, None, nodes=2)
    assert at_both.passed is passes
    failed = preflight.new_connections_answered(wanted, probers, "agent died")
    assert (failed.passed, failed.hopeless, failed.observed) == (False, True, "agent died")
