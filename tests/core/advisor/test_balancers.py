"""Load balancers outside: floors, jitter, health checks, and what annotations say of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.advisor.annotations import balancer_of, not_used
from pytest_drainwatch.core.advisor.balancers import PRESETS, Balancer, Kind, Number
from pytest_drainwatch.core.advisor.checks import check
from pytest_drainwatch.core.advisor.subject import Fronting, Subject
from pytest_drainwatch.core.advisor.told import Told
from tests.core.advisor.subjects import CORRECT, S, at, of, told, with_service

ATTRIBUTES = "service.beta.kubernetes.io/aws-load-balancer-target-group-attributes"


def number(seconds: int) -> Number:
    return Number(value=seconds * S, origin="--lb")


def times(count: int) -> Number:
    return Number(value=count, origin="--lb")


@given(st.integers(0, 3600), st.integers(0, 3600))
def test_the_effective_delay_is_the_larger_of_delay_and_floor(delay: int, floor: int) -> None:
    balancer = Balancer(kind=Kind.CUSTOM, delay=number(delay), floor=number(floor))
    assert balancer.effective_ns == max(delay, floor) * S


def test_jitter_gives_a_mean_and_a_worst_case() -> None:
    balancer = replace(PRESETS[Kind.GCP], delay=number(30))
    assert balancer.drained_ns == (60 * S, 90 * S)
    assert replace(balancer, lag=number(2)).drained_ns == (62 * S, 92 * S)
    assert PRESETS[Kind.GCP].drained_ns is None


@given(st.integers(1, 60), st.integers(1, 9), st.integers(0, 9), st.integers(0, 10**9 - 1))
def test_health_checks_notice_between_their_bounds(
    interval_s: int, threshold: int, timeout_s: int, part: int
) -> None:
    balancer = Balancer(
        kind=Kind.CUSTOM,
        interval=number(interval_s),
        threshold=times(threshold),
        timeout=number(timeout_s),
    )
    assert balancer.unhealthy_ns is not None
    mean, worst = balancer.unhealthy_ns
    assert worst == (interval_s * threshold + timeout_s) * S
    # Checks come at 0, interval, 2 x interval…; the server fails `after` the one at 0.
    after = interval_s * part
    noticed = (interval_s * threshold + timeout_s) * S - after
    assert worst - interval_s * S < noticed <= worst
    assert worst - mean == interval_s * S - interval_s * S // 2


def test_health_checks_decide_where_nothing_else_is_known() -> None:
    balancer = Balancer(kind=Kind.CUSTOM, interval=number(10), threshold=times(3))
    assert balancer.sends_for is not None
    assert balancer.sends_for[0] == 30 * S
    assert Balancer(kind=Kind.CUSTOM, interval=number(10)).sends_for is None
    lagging = replace(balancer, lag=number(5)).sends_for
    assert lagging is not None
    assert lagging[0] == 35 * S
    spread = replace(balancer, lag=number(5), spread=number(1)).sends_for
    assert spread is not None
    assert spread[0] == 6 * S


def test_an_alb_needs_lag_and_spread() -> None:
    """C55: a hook of 5 s fails, 25 s pass; the summands are assumed, and say so."""
    known = PRESETS[Kind.AWS_ALB].sends_for
    assert known is not None
    assert known[0] == 18 * S
    assert all(each.assumed for each in known[1])


def with_front(kind: str, said: dict[str, str]) -> Subject:
    return of(fronts=(Fronting(kind=kind, name="orders", at=at(70), annotations=said),))


@pytest.mark.parametrize(
    ("subject", "kind", "delay"),
    [
        (with_front("Ingress", {"alb.ingress.kubernetes.io/target-type": "ip"}), "aws-alb", None),
        (
            with_front(
                "Ingress",
                {
                    "alb.ingress.kubernetes.io/target-group-attributes": "a.b=c, "
                    "deregistration_delay.timeout_seconds=30,x=y"
                },
            ),
            "aws-alb",
            30,
        ),
        (
            with_service(annotations={ATTRIBUTES: "deregistration_delay.timeout_seconds=5"}),
            "aws-nlb",
            5,
        ),
        (with_service(annotations={ATTRIBUTES: "deregistration_delay=5"}), "aws-nlb", None),
        (
            with_front("BackendConfig", {"spec.connectionDraining.drainingTimeoutSec": "60"}),
            "gcp",
            60,
        ),
        (with_front("Ingress", {"nginx.ingress.kubernetes.io/x": "y"}), None, None),
        (CORRECT, None, None),
    ],
)
def test_annotations_say_which_balancer_it_is(
    subject: Subject, kind: str | None, delay: int | None
) -> None:
    found = balancer_of(subject, Told())
    assert (None if found is None else str(found.kind)) == kind
    said = None if found is None else found.delay
    assert (None if said is None else said.value) == (None if delay is None else delay * S)
    assert said is None or not said.assumed


def test_health_checks_are_read_from_annotations() -> None:
    prefix = "alb.ingress.kubernetes.io/"
    subject = with_front(
        "Ingress",
        {
            f"{prefix}healthcheck-interval-seconds": "15",
            f"{prefix}healthcheck-timeout-seconds": "5",
            f"{prefix}unhealthy-threshold-count": "2",
        },
    )
    found = balancer_of(subject, Told())
    assert found is not None
    assert found.unhealthy_ns == (27 * S + S // 2, 35 * S)
    broken = with_front("Ingress", {f"{prefix}healthcheck-interval-seconds": "0"})
    found = balancer_of(broken, Told())
    assert found is not None
    assert found.interval is None


def test_an_option_goes_before_an_annotation() -> None:
    subject = with_service(annotations={ATTRIBUTES: "deregistration_delay.timeout_seconds=5"})
    found = balancer_of(subject, told(balancer=Balancer(kind=Kind.AWS_NLB, delay=number(200))))
    assert found is not None
    assert found.delay == number(200)
    assert found.floor == PRESETS[Kind.AWS_NLB].floor


def test_the_warning_says_that_the_setting_is_not_what_happens() -> None:
    subject = with_service(annotations={ATTRIBUTES: "deregistration_delay.timeout_seconds=5"})
    said = {f.code: f.says for f in check(subject, told())}["balancer-delay-below-floor"]
    assert "your 5 s setting is not what happens, 120 s is" in said


def test_both_budget_lines_are_told() -> None:
    subject = with_front("BackendConfig", {"spec.connectionDraining.drainingTimeoutSec": "60"})
    said = {f.code: f.says for f in check(subject, told())}["balancer-outlives-pod"]
    assert "in the mean 90 s, at worst 120 s" in said


@pytest.mark.parametrize(
    ("text", "seconds", "shown"),
    [
        ("deregistration_delay.timeout_seconds=0", 0, None),
        ("a=b, deregistration_delay.timeout_seconds = 3600 ,c=d", 3600, None),
        ("deregistration_delay.timeout_seconds=3601", None, '"3601"'),
        ("a=b,deregistration_delay.timeout_seconds=1e3,c=d", None, '"1e3"'),
        ("deregistration_delay.timeout_seconds=", None, '""'),
        ("deregistration_delay.timeout_seconds=-5", None, '"-5"'),
        ("stickiness.enabled=true", None, None),
    ],
)
def test_a_delay_that_is_none_is_told_and_not_used(
    text: str, seconds: int | None, shown: str | None
) -> None:
    subject = with_service(annotations={ATTRIBUTES: text})
    found = balancer_of(subject, Told())
    assert found is not None
    assert (None if found.delay is None else found.delay.value) == (
        None if seconds is None else seconds * S
    )
    assert [each.shown for each in not_used(subject)] == ([] if shown is None else [shown])
