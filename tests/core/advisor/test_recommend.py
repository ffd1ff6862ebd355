"""preStop and grace as numbers: what they are made of, and that they hold in the simulator."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.advisor.balancers import Balancer, Kind, Number
from pytest_drainwatch.core.advisor.checks import check
from pytest_drainwatch.core.advisor.finding import Level
from pytest_drainwatch.core.advisor.recommend import RESERVE_NS, recommend
from pytest_drainwatch.core.advisor.subject import Subject
from pytest_drainwatch.core.advisor.told import Told
from pytest_drainwatch.core.advisor.tried import both
from pytest_drainwatch.core.interval import whole_seconds
from pytest_drainwatch.core.simulation.requests import POOLED_TAKES_NS
from tests.core.advisor.subjects import (
    API,
    CORRECT,
    SERVICE,
    S,
    beside,
    executed,
    of,
    slept,
    told,
    with_api,
    with_service,
)

PLAIN = Told(propagation_ns=6 * S + 1, drain_ns=25 * S, reserve_ns=5 * S)


def number(seconds: int) -> Number:
    return Number(value=seconds * S, origin="--lb")


def numbers(subject: Subject, shares: Told) -> tuple[int | None, int | None]:
    found = recommend(subject, shares)
    return found.pre_stop_s, found.grace_s


def test_the_hook_covers_the_routes_and_grace_covers_everything() -> None:
    found = recommend(CORRECT, replace(PLAIN, close_ns=2 * S, flush_ns=S // 2))
    assert (found.pre_stop_s, found.grace_s) == (7, 40)
    assert [(line.name, line.ns) for line in found.parts] == [
        ("preStop hook", 7 * S),
        ("drain", 25 * S),
        ("close", 2 * S),
        ("flush", S // 2),
        ("reserve", 5 * S),
    ]
    assert found.missing == ()


@pytest.mark.parametrize(
    ("subject", "shares", "expected"),
    [
        # the application's own wait comes off the hook, and not off the grace period
        (CORRECT, replace(PLAIN, wait_ns=4 * S), (3, 37)),
        (CORRECT, replace(PLAIN, wait_ns=9 * S), (0, 39)),
        # a longer request needs a longer drain
        (CORRECT, replace(PLAIN, longest_request_ns=40 * S), (7, 52)),
        (CORRECT, replace(PLAIN, longest_request_ns=10 * S), (7, 37)),
        (CORRECT, replace(PLAIN, drain_ns=None, longest_request_ns=10 * S), (7, 22)),
        # the slowest of several routes decides
        (CORRECT, replace(PLAIN, balancer=Balancer(kind=Kind.AWS_ALB)), (18, 48)),
        (
            with_service(headless=True),
            replace(PLAIN, resolve_period_ns=30 * S, dns_ttl_ns=30 * S),
            (61, 91),
        ),
        (CORRECT, replace(PLAIN, resolve_period_ns=30 * S, dns_ttl_ns=30 * S), (7, 37)),
        # a pod that must outlive the balancer's draining
        (
            CORRECT,
            replace(
                PLAIN,
                balancer=Balancer(kind=Kind.GCP, lag=number(1), spread=number(2), delay=number(60)),
            ),
            (7, 121),
        ),
        # nobody is sent to a worker or a Job
        (replace(with_api(ports=()), services=()), replace(PLAIN, propagation_ns=None), (0, 30)),
        (of(kind="Job"), replace(PLAIN, propagation_ns=None), (0, 30)),
    ],
)
def test_each_number_follows_from_what_is_told(
    subject: Subject, shares: Told, expected: tuple[int, int]
) -> None:
    assert numbers(subject, shares) == expected


def test_what_is_not_known_stays_not_known() -> None:
    found = recommend(CORRECT, Told())
    assert (found.pre_stop_s, found.grace_s, found.snippet) == (None, None, None)
    assert len(found.missing) == 2
    found = recommend(CORRECT, Told(propagation_ns=6 * S))
    assert (found.pre_stop_s, found.grace_s) == (6, None)
    assert len(found.missing) == 1
    assert recommend(CORRECT, Told(balancer=Balancer(kind=Kind.CUSTOM))).pre_stop_s is None


def test_what_is_assumed_says_so() -> None:
    found = recommend(CORRECT, replace(PLAIN, reserve_ns=None))
    reserve = found.parts[-1]
    assert reserve.ns == RESERVE_NS
    assert "assumed" in reserve.because
    assert "close and flush" in reserve.because
    assert "assumed" not in recommend(CORRECT, PLAIN).parts[-1].because
    balanced = recommend(CORRECT, Told(drain_ns=S, balancer=Balancer(kind=Kind.AWS_ALB)))
    assert "assumed" in balanced.routes[0].because
    measured = recommend(CORRECT, replace(PLAIN, propagation_source="measured in 59 trials"))
    assert measured.routes[0].because == "measured in 59 trials"


def test_the_snippet_is_the_manifest_to_write() -> None:
    snippet = recommend(CORRECT, PLAIN).snippet
    assert snippet is not None
    pod = yaml.safe_load(snippet)["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 37
    assert pod["containers"][0]["lifecycle"] == {"preStop": {"sleep": {"seconds": 7}}}
    old = recommend(CORRECT, replace(PLAIN, kubernetes_minor=29)).snippet
    assert old is not None
    pod = yaml.safe_load(old)["spec"]["template"]["spec"]
    hook = pod["containers"][0]["lifecycle"]["preStop"]
    assert hook == {"exec": {"command": ["sleep", "7"]}}
    alone = recommend(of(kind="Pod"), replace(PLAIN, wait_ns=9 * S)).snippet
    assert alone is not None
    assert yaml.safe_load(alone)["spec"]["containers"][0]["lifecycle"] == {}


def test_a_hook_that_does_more_than_wait_is_not_written_over() -> None:
    subject = with_api(pre_stop=executed("sh", "-c", "/app/leave; sleep 5"))
    assert recommend(subject, PLAIN).snippet is None
    assert numbers(subject, PLAIN) == (7, 37)


durations = st.integers(0, 90 * S)
maybe = st.none() | durations


@settings(max_examples=60)
@given(
    durations,
    st.integers(POOLED_TAKES_NS, 40 * S),
    maybe,
    maybe,
    st.none() | st.integers(POOLED_TAKES_NS, 40 * S),
    st.none() | st.integers(0, 120),
)
def test_the_recommendation_holds_in_the_simulator_and_before_the_checks(
    propagation_ns: int,
    drain_ns: int,
    wait_ns: int | None,
    close_ns: int | None,
    longest_ns: int | None,
    spread_s: int | None,
) -> None:
    shares = Told(
        propagation_ns=propagation_ns,
        drain_ns=drain_ns,
        wait_ns=wait_ns,
        close_ns=close_ns,
        longest_request_ns=longest_ns,
        balancer=None
        if spread_s is None
        else Balancer(kind=Kind.AWS_ALB, lag=number(1), spread=number(spread_s)),
    )
    asked = recommend(CORRECT, shares)
    found = both(CORRECT, shares, asked)
    assert found is not None
    assert found.recommended.failed == 0, found.recommended.note
    assert asked.pre_stop_s is not None
    written = of(
        grace_said_s=asked.grace_s,
        containers=(replace(API, pre_stop=slept(asked.pre_stop_s) if asked.pre_stop_s else None),),
    )
    drained = next(line.ns for line in asked.parts if line.name == "drain")
    judged = check(written, replace(shares, drain_ns=drained))
    assert [f for f in judged if f.level is Level.BROKEN] == []
    worse = {f.code for f in judged if f.level is Level.WARNING}
    assert not worse & {"no-reserve", "pre-stop-leaves-minimum"}


def test_the_simulator_tells_what_present_values_break() -> None:
    short = of(containers=(replace(API, pre_stop=slept(2)),))
    found = both(short, told(), recommend(short, told()))
    assert found is not None
    assert found.recommended.failed == 0
    assert found.present.failed
    unseen = with_api(pre_stop=executed("/app/leave"))
    found = both(unseen, told(), recommend(unseen, told()))
    assert found is not None
    assert found.present.failed is None
    assert "not known" in found.present.note


def test_a_second_less_would_break_it() -> None:
    shares = Told(propagation_ns=9 * S, drain_ns=20 * S, reserve_ns=0)
    assert numbers(CORRECT, shares) == (9, 30)
    right = of(grace_said_s=30, containers=(replace(API, pre_stop=slept(9)),))
    for wrong in (
        of(grace_said_s=29, containers=(replace(API, pre_stop=slept(7)),)),
        of(grace_said_s=20, containers=(replace(API, pre_stop=slept(9)),)),
    ):
        found = both(wrong, shares, recommend(wrong, shares))
        assert found is not None
        assert found.present.failed
    found = both(right, shares, recommend(right, shares))
    assert found is not None
    assert found.present.failed == 0


def test_nothing_is_simulated_where_nothing_is_recommended() -> None:
    assert both(CORRECT, Told(), recommend(CORRECT, Told())) is None
    worker = replace(with_api(ports=()), services=())
    assert both(worker, PLAIN, recommend(worker, PLAIN)) is None


def test_what_is_too_much_to_simulate_says_so() -> None:
    day = 24 * 3600 * S
    shares = Told(propagation_ns=day, drain_ns=S)
    found = both(CORRECT, shares, recommend(CORRECT, shares))
    assert found is not None
    assert found.recommended.failed is None
    assert found.recommended.note
    nothing = Told(propagation_ns=S, drain_ns=0)
    found = both(CORRECT, nothing, recommend(CORRECT, nothing))
    assert found is not None
    assert "--longest-request" in found.recommended.note


@given(
    st.booleans(),
    maybe,
    maybe,
    maybe,
    st.integers(0, 20 * S),
    st.integers(0, 9 * S),
)
def test_what_is_recommended_is_never_called_broken(
    headless: bool,
    propagation_ns: int | None,
    period_ns: int | None,
    ttl_ns: int | None,
    drain_ns: int,
    reserve_ns: int,
) -> None:
    subject = with_service(headless=headless)
    shares = Told(
        propagation_ns=propagation_ns,
        resolve_period_ns=period_ns,
        dns_ttl_ns=ttl_ns,
        drain_ns=drain_ns,
        reserve_ns=reserve_ns,
    )
    asked = recommend(subject, shares)
    if asked.pre_stop_s is None or asked.grace_s is None:
        assert asked.missing
        assert asked.snippet is None
        return
    written = replace(
        subject,
        grace_said_s=asked.grace_s,
        containers=(replace(API, pre_stop=slept(asked.pre_stop_s) if asked.pre_stop_s else None),),
    )
    judged = check(written, shares)
    assert {f.code for f in judged if f.level is Level.BROKEN} == set()
    worse = {f.code for f in judged if f.level is Level.WARNING}
    assert not worse & {"no-reserve", "pre-stop-leaves-minimum", "dns-older-than-hook"}


GRPC = with_service(headless=True)
BOTH = of(services=(SERVICE, replace(SERVICE, name="peers", headless=True)))


@pytest.mark.parametrize(
    ("subject", "shares", "word"),
    [
        (CORRECT, replace(PLAIN, balancer=Balancer(kind=Kind.GCP)), "gcp still sends"),
        (CORRECT, replace(PLAIN, balancer=Balancer(kind=Kind.CUSTOM)), "custom still sends"),
        (GRPC, PLAIN, "--resolve-period and --dns-ttl"),
        (GRPC, replace(PLAIN, dns_ttl_ns=30 * S), "addresses of its clients get: --resolve-period"),
    ],
)
def test_a_way_of_which_nothing_is_known_is_never_taken_for_0(
    subject: Subject, shares: Told, word: str
) -> None:
    found = recommend(subject, shares)
    assert (found.pre_stop_s, found.grace_s, found.snippet) == (None, None, None)
    assert any(word in each for each in found.missing)


@pytest.mark.parametrize(
    ("subject", "shares", "word"),
    [
        (
            CORRECT,
            replace(PLAIN, propagation_ns=None, balancer=Balancer(kind=Kind.AWS_ALB)),
            "clients inside of the cluster",
        ),
        (BOTH, PLAIN, "--resolve-period and --dns-ttl"),
        (BOTH, replace(PLAIN, dns_ttl_ns=30 * S), "--resolve-period"),
    ],
)
def test_a_way_beside_the_known_ones_is_named_as_not_covered(
    subject: Subject, shares: Told, word: str
) -> None:
    found = recommend(subject, shares)
    assert found.pre_stop_s is not None
    assert any(word in each for each in found.uncovered)
    assert recommend(CORRECT, PLAIN).uncovered == ()


def test_one_half_of_dns_is_at_least_that_old() -> None:
    assert numbers(BOTH, replace(PLAIN, dns_ttl_ns=30 * S)) == (31, 61)


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        (Told(propagation_ns=0, drain_ns=0, reserve_ns=0), (0, 3)),
        (Told(propagation_ns=10 * S, drain_ns=S // 2, reserve_ns=0), (10, 13)),
        (Told(propagation_ns=10 * S, drain_ns=2 * S, reserve_ns=0), (10, 13)),
        (Told(propagation_ns=10 * S, drain_ns=3 * S, reserve_ns=0), (10, 14)),
    ],
)
def test_more_than_the_kubelets_minimum_is_left(shares: Told, expected: tuple[int, int]) -> None:
    assert numbers(CORRECT, shares) == expected
    found = recommend(CORRECT, shares)
    assert whole_seconds(sum(line.ns for line in found.parts)) == found.grace_s


@pytest.mark.parametrize("name", ["on", "123", "null", "1e3", "y", "api", "a-b", 'a"b', "0x1", "é"])
def test_a_name_stays_a_name_in_the_snippet(name: str) -> None:
    snippet = recommend(with_api(name=name), PLAIN).snippet
    assert snippet is not None
    (container,) = yaml.safe_load(snippet)["spec"]["template"]["spec"]["containers"]
    assert container["name"] == name


def test_a_drain_of_the_recommendation_is_tried_and_not_that_of_nobody() -> None:
    """The present values are tried with the drain that is told, or else with the recommended."""
    shares = Told(propagation_ns=6 * S, longest_request_ns=20 * S)
    found = both(CORRECT, shares, recommend(CORRECT, shares))
    assert found is not None
    assert found.present.failed == 0
    shares = replace(shares, drain_ns=5 * S)
    found = both(CORRECT, shares, recommend(CORRECT, shares))
    assert found is not None
    assert found.recommended.failed == 0
    assert found.present.failed


def test_both_kinds_of_routes_are_tried() -> None:
    balancer = Balancer(kind=Kind.AWS_ALB, lag=number(1), spread=number(4))
    shares = replace(PLAIN, propagation_ns=9 * S, balancer=balancer)
    for hook_s, fails in ((4, True), (7, True), (9, False)):
        subject = with_api(pre_stop=slept(hook_s))
        found = both(subject, shares, recommend(subject, shares))
        assert found is not None
        assert bool(found.present.failed) == fails


def test_a_hook_that_lasts_at_least_so_long_is_not_tried() -> None:
    subject = with_api(pre_stop=executed("sh", "-c", "/app/leave; sleep 5"))
    found = both(subject, PLAIN, recommend(subject, PLAIN))
    assert found is not None
    assert (found.present.failed, found.present.total) == (None, None)
    assert found.recommended.failed == 0


@pytest.mark.parametrize(("hook_s", "grace_s"), [(0, 37), (20, 37), (34, 37), (35, 38), (60, 63)])
@pytest.mark.parametrize("native", [False, True])
def test_hooks_of_other_containers_fit_too(hook_s: int, grace_s: int, native: bool) -> None:
    """They run beside the application's, from the deletion on (FACTS K5, K6)."""
    subject = beside(pre_stop=slept(hook_s), native_sidecar=native)
    subject = replace(subject, containers=(replace(API, pre_stop=slept(7)), subject.containers[1]))
    asked = recommend(subject, PLAIN)
    assert (asked.pre_stop_s, asked.grace_s) == (7, grace_s)
    judged = check(replace(subject, grace_said_s=asked.grace_s), PLAIN)
    worse = {f.code for f in judged if f.level is not Level.NOTE}
    assert not worse & {"pre-stop-over-grace", "pre-stop-leaves-minimum", "sidecar-ends-last"}
    reserve = next(line for line in asked.parts if line.name == "reserve")
    assert ("envoy (native sidecars) get SIGTERM only now" in reserve.because) == native


def test_a_native_sidecar_gets_more_than_the_kubelets_minimum() -> None:
    shares = replace(PLAIN, reserve_ns=0)
    assert numbers(beside(), shares) == (7, 33)
    subject = beside(native_sidecar=True)
    assert numbers(subject, shares) == (7, 35)
    assert "the end of api, for native sidecars" in recommend(subject, shares).parts[-1].because


def test_no_grace_period_holds_a_hook_that_never_ends() -> None:
    for hook in (slept(2**63 - 1), executed("sleep", "infinity")):
        found = recommend(beside(pre_stop=hook), PLAIN)
        assert found.grace_s is None
        assert any("envoy that ends" in each for each in found.missing)


def test_a_wait_for_health_checks_says_what_it_stands_on() -> None:
    checks = {"interval": number(10), "threshold": Number(value=3, origin="--lb")}
    by_checks = Balancer(kind=Kind.CUSTOM, **checks)
    by_spread = Balancer(kind=Kind.CUSTOM, lag=number(1), spread=number(20), **checks)
    for balancer, said in ((by_checks, True), (by_spread, False)):
        shares = replace(PLAIN, balancer=balancer)
        (route,) = [line for line in recommend(CORRECT, shares).routes if line.name == "custom"]
        assert ("must go on accepting that long (--wait)" in route.because) == said
        (finding,) = [f for f in check(CORRECT, shares) if f.code == "balancer-sends-longer"]
        assert ("must go on accepting that long (--wait)" in finding.fix) == said
        covered = with_api(pre_stop=slept(40))
        notes = [f.code for f in check(covered, shares) if f.code.startswith("balancer-")]
        assert notes == (["balancer-health-checks"] if said else [])
        assert not [f for f in check(CORRECT, replace(shares, wait_ns=30 * S)) if f.code in notes]


def test_requests_shorter_than_the_simulators_are_not_tried() -> None:
    """Its pooled client's take 0.1 s: a drain of 1 ms would cut them, and no hook helps."""
    for drain_ns, tried in ((S // 1000, False), (POOLED_TAKES_NS, True)):
        shares = Told(propagation_ns=0, wait_ns=S + S // 4 + 1, drain_ns=drain_ns)
        found = both(CORRECT, shares, recommend(CORRECT, shares))
        assert found is not None
        assert found.recommended.failed == (0 if tried else None)
        assert ("--longest-request" in found.recommended.note) != tried
