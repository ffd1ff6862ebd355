"""Each check: an input that it speaks about, and a neighbour that it is silent about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import pytest_drainwatch.core.advisor.checks as checks
from pytest_drainwatch.core.advisor.balancers import Balancer, Kind, Number
from pytest_drainwatch.core.advisor.checks import check
from pytest_drainwatch.core.advisor.finding import Finding, Level
from pytest_drainwatch.core.advisor.subject import Action, Hook, Subject
from pytest_drainwatch.core.advisor.told import Told
from tests.core.advisor.subjects import (
    API,
    BUDGET,
    CORRECT,
    SERVICE,
    TOLD,
    S,
    asked,
    at,
    beside,
    executed,
    of,
    scaled,
    slept,
    told,
    with_api,
    with_budget,
    with_service,
    with_strategy,
)

BROKEN, WARNING, NOTE = Level.BROKEN, Level.WARNING, Level.NOTE
Given = Subject | tuple[Subject, Told]
HEADLESS = with_service(headless=True)
KEPT, UNTOLD = told(keep_alive_ns=27 * S), Told(keep_alive_ns=35 * S)
GRPC_HOOK = of(
    services=(replace(SERVICE, headless=True),),
    containers=(replace(API, pre_stop=slept(40)),),
    grace_said_s=90,
)
DISTROLESS = "gcr.io/distroless/static:nonroot"
LOCAL = {"services": (replace(SERVICE, local_traffic=True),)}
NO_PROPAGATION = told(propagation_ns=None)


def number(seconds: int) -> Number:
    return Number(value=seconds * S, origin="--lb")


ALB = told(balancer=Balancer(kind=Kind.AWS_ALB))
NLB = told(balancer=Balancer(kind=Kind.AWS_NLB, delay=number(5)))
GCP = told(balancer=Balancer(kind=Kind.GCP, delay=number(60)))
LONG = Balancer(kind=Kind.AWS_NLB, delay=number(300))
QUICK = Balancer(kind=Kind.AWS_ALB, lag=number(1), spread=number(9))
AWS = "service.beta.kubernetes.io/aws-load-balancer-"
ATTRIBUTES, DELAY = "target-group-attributes", "deregistration_delay.timeout_seconds"
ROOMY = of(grace_said_s=60, containers=(replace(API, pre_stop=slept(25)),))

# code, level, what triggers it, and its neighbour.
ROWS: list[tuple[str, Level, Given, Given]] = [
    ("grace-zero", BROKEN, of(grace_said_s=0), of(grace_said_s=45)),
    ("grace-zero", BROKEN, of(grace_said_s=-5), of(grace_said_s=None)),
    ("pre-stop-over-grace", BROKEN, with_api(pre_stop=slept(45)), with_api(pre_stop=slept(42))),
    (
        "pre-stop-over-grace",
        BROKEN,
        with_api(pre_stop=executed("sh", "-c", "sleep infinity")),
        with_api(pre_stop=executed("sh", "-c", "date")),
    ),
    (
        "pre-stop-leaves-minimum",
        WARNING,
        with_api(pre_stop=slept(43)),
        with_api(pre_stop=slept(42)),
    ),
    (
        "hook-without-program",
        BROKEN,
        with_api(pre_stop=executed("sleep", "10"), image=DISTROLESS),
        with_api(pre_stop=slept(10), image=DISTROLESS),
    ),
    (
        "hook-without-program",
        NOTE,
        with_api(pre_stop=executed("sh", "-c", "sleep 10"), image="gcr.io/distroless/base:debug"),
        with_api(pre_stop=executed("/app/drain"), image=DISTROLESS),
    ),
    (
        "hook-without-program",
        WARNING,
        with_api(pre_stop=executed("sleep", "10"), image="example/orders:1-scratch"),
        with_api(pre_stop=slept(10), image="example/orders:1-scratch"),
    ),
    ("hook-without-program", BROKEN, with_api(pre_stop=executed()), with_api(pre_stop=None)),
    (
        "sleep-action-unknown",
        BROKEN,
        (CORRECT, told(kubernetes_minor=29)),
        (CORRECT, told(kubernetes_minor=30)),
    ),
    ("sleep-of-nothing", WARNING, with_api(pre_stop=slept(0)), with_api(pre_stop=slept(1))),
    (
        "sleep-of-nothing",
        BROKEN,
        (with_api(pre_stop=slept(0)), told(kubernetes_minor=32)),
        (with_api(pre_stop=slept(7)), told(kubernetes_minor=32)),
    ),
    (
        "hook-length-unknown",
        NOTE,
        with_api(pre_stop=Hook(action=Action.HTTP_GET, at=at(20))),
        with_api(pre_stop=slept(10)),
    ),
    (
        "hook-length-unknown",
        NOTE,
        with_api(pre_stop=executed("sh", "-c", "curl -s localhost/drain && sleep 10")),
        with_api(pre_stop=executed("sh", "-c", "sleep 2; sleep 8")),
    ),
    ("hook-without-traffic", NOTE, replace(with_api(ports=()), services=()), with_api(ports=())),
    ("drain-over-grace", BROKEN, of(grace_said_s=36), of(grace_said_s=38)),
    ("drain-over-grace", BROKEN, of(grace_said_s=37), of(grace_said_s=38)),
    ("drain-over-grace", BROKEN, (CORRECT, told(flush_ns=9 * S)), (CORRECT, told(flush_ns=S))),
    ("no-reserve", BROKEN, of(grace_said_s=41), of(grace_said_s=42)),
    (
        "no-reserve",
        WARNING,
        (of(grace_said_s=38), told(reserve_ns=None, close_ns=2 * S + 1)),
        (of(grace_said_s=38), told(reserve_ns=None)),
    ),
    (
        "propagation-counted-twice",
        WARNING,
        (of(grace_said_s=60), told(wait_ns=5 * S)),
        (of(grace_said_s=60), told(wait_ns=0)),
    ),
    (
        "propagation-counted-twice",
        NOTE,
        (of(grace_said_s=60), told(wait_ns=5 * S, propagation_ns=12 * S)),
        (of(grace_said_s=60, containers=(replace(API, pre_stop=None),)), told(wait_ns=15 * S)),
    ),
    (
        "request-over-drain",
        BROKEN,
        (CORRECT, told(longest_request_ns=26 * S)),
        (CORRECT, told(longest_request_ns=25 * S)),
    ),
    (
        "request-over-drain",
        BROKEN,
        (CORRECT, Told(longest_request_ns=36 * S)),
        (CORRECT, Told(longest_request_ns=35 * S)),
    ),
    (
        "keep-alive-over-drain",
        WARNING,
        (CORRECT, told(keep_alive_ns=60 * S)),
        (CORRECT, told(keep_alive_ns=5 * S)),
    ),
    (
        "connection-age-over-grace",
        WARNING,
        (CORRECT, told(max_connection_age_ns=120 * S)),
        (CORRECT, told(max_connection_age_ns=30 * S)),
    ),
    (
        "connection-age-over-grace",
        WARNING,
        (CORRECT, told(max_connection_age_ns=30 * S, max_connection_age_grace_ns=20 * S)),
        (CORRECT, told(max_connection_age_ns=30 * S, max_connection_age_grace_ns=5 * S)),
    ),
    ("keep-alive-over-drain", WARNING, (CORRECT, told(keep_alive_ns=27 * S + 1)), (CORRECT, KEPT)),
    ("keep-alive-over-drain", WARNING, (CORRECT, Told(keep_alive_ns=36 * S)), (CORRECT, UNTOLD)),
    (
        "connection-age-over-grace",
        WARNING,
        (CORRECT, told(max_connection_age_ns=37 * S + 1)),
        (CORRECT, told(max_connection_age_ns=37 * S)),
    ),
    (
        "propagation-counted-twice",
        WARNING,
        (of(grace_said_s=60), told(wait_ns=5 * S, propagation_ns=10 * S)),
        (of(grace_said_s=60), told(wait_ns=None, propagation_ns=10 * S)),
    ),
    ("drain-not-told", NOTE, (CORRECT, Told()), (CORRECT, TOLD)),
    (
        "stops-before-routes",
        BROKEN,
        (CORRECT, told(propagation_ns=11 * S, wait_ns=0)),
        (CORRECT, told(propagation_ns=10 * S, wait_ns=0)),
    ),
    (
        "stops-before-routes",
        WARNING,
        (CORRECT, told(propagation_ns=11 * S)),
        (of(grace_said_s=60), told(propagation_ns=11 * S, wait_ns=2 * S)),
    ),
    (
        "nothing-waits-for-routes",
        WARNING,
        (with_api(pre_stop=None), NO_PROPAGATION),
        (with_api(pre_stop=None), told(propagation_ns=None, wait_ns=8 * S)),
    ),
    ("dns-not-told", NOTE, HEADLESS, CORRECT),
    (
        "dns-not-told",
        NOTE,
        (GRPC_HOOK, told(resolve_period_ns=30 * S)),
        (GRPC_HOOK, told(resolve_period_ns=5 * S, dns_ttl_ns=30 * S)),
    ),
    (
        "dns-older-than-hook",
        BROKEN,
        (GRPC_HOOK, told(resolve_period_ns=30 * S, dns_ttl_ns=30 * S)),
        (GRPC_HOOK, told(resolve_period_ns=30 * S, dns_ttl_ns=5 * S)),
    ),
    (
        "dns-older-than-hook",
        WARNING,
        (GRPC_HOOK, told(resolve_period_ns=30 * S, dns_ttl_ns=10 * S)),
        (CORRECT, told(resolve_period_ns=30 * S, dns_ttl_ns=10 * S)),
    ),
    (
        "dns-older-than-hook",
        BROKEN,
        (GRPC_HOOK, told(dns_ttl_ns=60 * S)),
        (GRPC_HOOK, told(dns_ttl_ns=30 * S)),
    ),
    # C55: 3 s lag + 15 s spread: 5 s fail, 25 s pass
    ("balancer-sends-longer", BROKEN, (with_api(pre_stop=slept(5)), ALB), (ROOMY, ALB)),
    ("balancer-sends-longer", BROKEN, (ROOMY, NLB), (ROOMY, told(balancer=QUICK))),
    ("balancer-not-known", NOTE, (CORRECT, GCP), (CORRECT, ALB)),
    (
        "balancer-not-known",
        NOTE,
        (CORRECT, told(balancer=Balancer(kind=Kind.CUSTOM))),
        (CORRECT, told(balancer=replace(QUICK, kind=Kind.CUSTOM))),
    ),
    (
        "balancer-setting-not-used",
        WARNING,
        with_service(annotations={f"{AWS}healthcheck-interval": "1e3"}),
        with_service(annotations={f"{AWS}healthcheck-interval": "10"}),
    ),
    (
        "balancer-setting-not-used",
        WARNING,
        with_service(annotations={f"{AWS}{ATTRIBUTES}": f"x=1,{DELAY}=99999999"}),
        with_service(annotations={f"{AWS}{ATTRIBUTES}": f"x=y,{DELAY}=3600"}),
    ),
    ("balancer-delay-below-floor", WARNING, (CORRECT, NLB), (CORRECT, told(balancer=LONG))),
    ("balancer-outlives-pod", WARNING, (CORRECT, told(balancer=LONG)), (CORRECT, ALB)),
    ("balancer-outlives-pod", WARNING, (of(grace_said_s=119), GCP), (of(grace_said_s=120), GCP)),
    (
        "balancer-health-checks",
        NOTE,
        (
            CORRECT,
            told(
                balancer=replace(LONG, interval=number(10), threshold=Number(value=2, origin="-"))
            ),
        ),
        (CORRECT, told(balancer=replace(LONG, interval=number(10)))),
    ),
    ("publish-not-ready", WARNING, with_service(publish_not_ready=True), CORRECT),
    ("publish-not-ready", NOTE, with_service(publish_not_ready=True, headless=True), HEADLESS),
    (
        "local-traffic-last-pod",
        WARNING,
        (of(one_a_node=True, **LOCAL), NO_PROPAGATION),
        (of(one_a_node=True), NO_PROPAGATION),
    ),
    (
        "local-traffic-last-pod",
        NOTE,
        (of(**LOCAL), told(propagation_ns=12 * S)),
        (of(**LOCAL), told(propagation_ns=9 * S)),
    ),
    ("udp-follows-serving", NOTE, with_service(protocols=frozenset({"UDP", "TCP"})), CORRECT),
    (
        "shell-swallows-signal",
        BROKEN,
        with_api(command=("sh", "-c", "/app/server; true")),
        with_api(command=("sh", "-c", "prepare; exec /app/server")),
    ),
    (
        "shell-swallows-signal",
        WARNING,
        with_api(command=("/bin/sh", "-c"), args=("/app/server",)),
        with_api(command=("tini", "--", "sh", "-c"), args=("/app/server; true",)),
    ),
    (
        "shell-script-unseen",
        NOTE,
        with_api(command=("bash", "/run.sh")),
        with_api(command=None, args=("sh",)),
    ),
    ("stop-signal", NOTE, with_api(stop_signal="SIGQUIT"), with_api(stop_signal=None)),
    ("stop-signal", NOTE, with_api(image="nginx:1.27"), with_api(image="example/nginx-thing:1")),
    ("stop-signal-kills", BROKEN, with_api(stop_signal="SIGKILL"), with_api(stop_signal="SIGTERM")),
    ("readiness-missing", WARNING, with_api(readiness=None), CORRECT),
    ("readiness-drain-single", NOTE, of(replicas=1), of(replicas=2)),
    ("readiness-drain", NOTE, CORRECT, of(replicas=1)),
    ("liveness-asks-readiness", NOTE, with_api(liveness=asked("/ready")), CORRECT),
    (
        "probe-grace-on-readiness",
        BROKEN,
        with_api(readiness=asked("/ready", grace_s=9)),
        with_api(liveness=asked("/alive", grace_s=60)),
    ),
    (
        "probe-grace-under-hook",
        WARNING,
        with_api(liveness=asked("/alive", grace_s=10)),
        with_api(liveness=asked("/alive", grace_s=11)),
    ),
    ("recreate", WARNING, with_strategy(kind="Recreate"), CORRECT),
    (
        "rollout-takes-all",
        WARNING,
        with_strategy(max_unavailable="100%"),
        with_strategy(max_unavailable="99%"),
    ),
    (
        "rollout-impossible",
        BROKEN,
        with_strategy(max_unavailable=0, max_surge="0%"),
        with_strategy(max_unavailable=0, max_surge=None),
    ),
    ("single-pod", WARNING, of(replicas=None), of(replicas=2)),
    ("single-pod", WARNING, scaled(1), scaled(2)),
    ("budget-blocks", BROKEN, with_budget(min_available=3), with_budget(min_available=2)),
    ("budget-blocks", BROKEN, with_budget(min_available="67%"), with_budget(min_available="66%")),
    ("budget-blocks", BROKEN, with_budget(max_unavailable="0%"), with_budget(max_unavailable="1%")),
    (
        "budget-without-effect",
        WARNING,
        with_budget(max_unavailable="67%"),
        with_budget(max_unavailable="66%"),
    ),
    ("budget-without-effect", WARNING, with_budget(min_available=0), with_budget(min_available=1)),
    (
        "budget-contradicts",
        BROKEN,
        with_budget(min_available=1, max_unavailable=1),
        with_budget(max_unavailable=1),
    ),
    ("two-budgets", BROKEN, of(budgets=(BUDGET, replace(BUDGET, name="all"))), CORRECT),
    ("budget-missing", NOTE, of(budgets=()), of(budgets=(), replicas=1)),
    (
        "old-template",
        NOTE,
        replace(with_strategy(kind="OnDelete"), kind="StatefulSet"),
        of(kind="StatefulSet"),
    ),
    (
        "old-template",
        NOTE,
        replace(with_strategy(partition=2), kind="StatefulSet"),
        with_strategy(partition=0),
    ),
    ("job", NOTE, of(kind="Job", replicas=None, services=()), CORRECT),
    ("sidecar-ends-first", WARNING, beside(), beside(native_sidecar=True)),
    ("sidecar-ends-last", NOTE, beside(native_sidecar=True), beside()),
    (
        "sidecar-ends-last",
        WARNING,
        (beside(native_sidecar=True), told(drain_ns=33 * S)),
        (beside(), told(drain_ns=33 * S)),
    ),
    (
        "sidecar-ends-first",
        NOTE,
        beside(name="logs", image="example/logs:1"),
        beside(pre_stop=slept(37)),
    ),
]


def found(given: Given, code: str) -> Finding | None:
    subject, asked_for = given if isinstance(given, tuple) else (given, TOLD)
    return next((each for each in check(subject, asked_for) if each.code == code), None)


@pytest.mark.parametrize(("code", "level", "bad", "good"), ROWS)
def test_each_fault_is_found_and_its_neighbour_is_not(
    code: str, level: Level, bad: Given, good: Given
) -> None:
    finding = found(bad, code)
    assert finding is not None
    assert finding.level is level
    assert re.match(r"x\.yaml:\d+ \w+/", finding.where)
    assert finding.says
    assert finding.expected
    assert finding.because
    assert found(good, code) is None


def codes_in(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.py")):
        for line in re.findall(r"code=(.*)", path.read_text(encoding="utf-8")):
            yield from re.findall(r'"([a-z-]+)"', line)
        yield from re.findall(r'^ +"(shell-[a-z-]+)",$', path.read_text(encoding="utf-8"), re.M)


def test_every_check_has_its_row() -> None:
    assert checks.__file__ is not None
    assert set(codes_in(Path(checks.__file__).parent)) == {code for code, *_ in ROWS}


def test_it_is_silent_about_a_correct_workload() -> None:
    assert [f for f in check(CORRECT, TOLD) if f.level is not Level.NOTE] == []


def test_the_worst_comes_first() -> None:
    subject = replace(with_api(pre_stop=slept(99), readiness=None), budgets=())
    levels = [list(Level).index(f.level) for f in check(subject, TOLD)]
    assert levels == sorted(levels)
    assert {0, 1, 2} <= set(levels)


def test_pre_stop_over_grace_says_that_the_application_gets_two_seconds() -> None:
    finding = found(replace(with_api(pre_stop=slept(300)), grace_said_s=30), "pre-stop-over-grace")
    assert finding is not None
    assert "SIGTERM at 30 s, SIGKILL at 32 s, the application gets 2 s" in finding.says


def test_dns_older_than_the_hook_tells_the_window() -> None:
    given = (GRPC_HOOK, told(resolve_period_ns=30 * S, dns_ttl_ns=30 * S))
    finding = found(given, "dns-older-than-hook")
    assert finding is not None
    assert "connections fail for 20 s" in finding.says


@pytest.mark.parametrize(
    ("script", "level"),
    [
        ("server | tee log", BROKEN),
        ("server & wait", BROKEN),
        ("server &", BROKEN),
        ("while true; do server; sleep 1; done", BROKEN),
        ("", BROKEN),
        ("exec server &", BROKEN),
        ("exec server | tee log", BROKEN),
        ("server", WARNING),
        ("prepare && server 2>&1", WARNING),
        ("if test -f x; then exec server; fi", NOTE),
        ("exec server", None),
        ("helper & exec server", None),
        ('set -eu\nexec /app/server "$@"', None),
        ("exec server 2>&1", None),
        ("trap 'kill $p' TERM; server & p=$!; wait", None),
    ],
)
def test_shell_wrapper_scripts_that_do_not_use_exec_may_absorb_signals(
    script: str, level: Level | None
) -> None:
    finding = found(with_api(command=("sh", "-c", script)), "shell-swallows-signal")
    assert (finding.level if finding else None) is level


def test_what_does_not_fit_is_told_with_its_summands() -> None:
    finding = found(of(grace_said_s=36), "drain-over-grace")
    assert finding is not None
    assert finding.says.startswith("drain 25 s + close 2 s = 27 s, and")
    alone = found((of(grace_said_s=34), Told(drain_ns=25 * S)), "drain-over-grace")
    assert alone is not None
    assert alone.says.startswith("drain 25 s, and")


def test_a_grace_period_of_0_is_one_finding_and_no_arithmetic() -> None:
    broken = {f.code for f in check(of(grace_said_s=0), TOLD) if f.level is BROKEN}
    assert broken == {"grace-zero", "request-over-drain"}


def test_a_wait_beside_a_hook_that_is_enough_says_what_routes_need() -> None:
    finding = found((of(grace_said_s=60), told(wait_ns=5 * S)), "propagation-counted-twice")
    assert finding is not None
    assert finding.says.endswith("15 s of 60 s, where routes need 6 s")


def test_half_of_dns_is_said_without_the_other() -> None:
    finding = found((GRPC_HOOK, told(dns_ttl_ns=60 * S)), "dns-older-than-hook")
    assert finding is not None
    assert "at least 60 s old (how often they ask again is not told, TTL 60 s)" in finding.says


def test_a_native_sidecars_hook_runs_beside_the_applications() -> None:
    """K6: only its SIGTERM waits, for its own hook and for the application."""
    for hook_s, drain_s, says in (
        (20, 25, "SIGTERM 37 s after the deletion, when api has ended"),
        (40, 25, "SIGTERM 40 s after the deletion"),
        (99, 25, "SIGTERM 45 s after the deletion"),
    ):
        shares = told(drain_ns=drain_s * S)
        subject = beside(native_sidecar=True, pre_stop=slept(hook_s))
        finding = found((subject, shares), "sidecar-ends-last")
        assert finding is not None
        assert says in finding.says
    unknown = found((beside(native_sidecar=True), Told()), "sidecar-ends-last")
    assert unknown is not None
    assert "10 s after the deletion or later" in unknown.says
    assert "SIGKILL 35 s after that or sooner" in unknown.says


@pytest.mark.parametrize(
    ("kind", "fix", "breaks"),
    [
        ("Pod", "a Deployment instead of the Pod", ""),
        ("Deployment", "replicas: 2", "only rollouts happen"),
        ("StatefulSet", "replicas: 2", ""),
    ],
)
def test_a_single_pod_is_told_what_its_kind_can_do(kind: str, fix: str, breaks: str) -> None:
    finding = found(of(kind=kind, replicas=None, strategy=None), "single-pod")
    assert finding is not None
    assert finding.fix.startswith(fix)
    assert finding.breaks.startswith(breaks)
    assert bool(finding.breaks) == bool(breaks)


def test_a_hook_of_nothing_is_not_called_no_hook() -> None:
    finding = found((with_api(pre_stop=slept(0)), Told()), "nothing-waits-for-routes")
    assert finding is not None
    assert finding.says.startswith("a preStop hook of 0 s")


def test_a_budget_that_blocks_only_the_autoscalers_fewest_is_a_warning() -> None:
    """One pod at least, nine at most: the budget blocks while there is one."""
    guarded = replace(scaled(1), budgets=(replace(BUDGET, max_unavailable=None, min_available=1),))
    finding = found(guarded, "budget-blocks")
    assert finding is not None
    assert finding.level is WARNING
    assert "1 pod(s), the autoscaler's fewest," in finding.says
    never = replace(guarded, budgets=(replace(BUDGET, max_unavailable=0),))
    always = found(never, "budget-blocks")
    assert always is not None
    assert always.level is BROKEN


@pytest.mark.parametrize(
    ("script", "level"),
    [
        ("# exec server\nserver; true", BROKEN),
        ("exec server # the server", None),
        ("nohup server &\nexec tail -f log", BROKEN),
        ("helper & exec server", None),
        ("exec 2>&1; server", WARNING),
    ],
)
def test_comments_and_background_jobs_in_a_script(script: str, level: Level | None) -> None:
    finding = found(with_api(command=("sh", "-c", script)), "shell-swallows-signal")
    assert (None if finding is None else finding.level) == level
