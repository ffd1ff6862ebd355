"""What the guide "Graceful Kubernetes Shutdowns" says, statement by statement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch.core.advisor.budget import Name, budget
from pytest_drainwatch.core.advisor.checks import check
from pytest_drainwatch.core.advisor.finding import Finding, Level
from pytest_drainwatch.core.advisor.subject import Action, Hook, Subject
from pytest_drainwatch.core.advisor.told import Told
from pytest_drainwatch.manifests import read
from tests.core.advisor.subjects import (
    API,
    CORRECT,
    TOLD,
    S,
    asked,
    at,
    executed,
    of,
    slept,
    told,
    with_api,
    with_strategy,
)
from tests.manifests.texts import FOLDER

# "5 s preStop, 5 s application-level readiness propagation, 25 s requests, 5 s cleanup, 5 s margin"
SHARES = Told(wait_ns=5 * S, drain_ns=25 * S, close_ns=5 * S, reserve_ns=5 * S)
(GUIDE,) = read([str(FOLDER / "guide.yaml")]).subjects


def codes(subject: Subject, shares: Told) -> set[str]:
    return {f.code for f in check(subject, shares)}


def finding(subject: Subject, shares: Told, code: str) -> Finding:
    return next(f for f in check(subject, shares) if f.code == code)


def test_a_45_second_budget_might_be_divided_into_5_5_25_5_5() -> None:
    spent = budget(GUIDE, GUIDE.containers[0], SHARES)
    assert [part.ns for part in spent.parts] == [5 * S, 5 * S, 25 * S, 5 * S, None, 5 * S]
    assert spent.left_ns == 0
    assert [part.name for part in spent.unknown] == [Name.FLUSH]
    assert not codes(GUIDE, SHARES) & {"drain-over-grace", "no-reserve"}


def test_every_phase_must_fit_within_one_shared_budget() -> None:
    assert "no-reserve" in codes(GUIDE, replace(SHARES, flush_ns=S))
    assert "drain-over-grace" in codes(GUIDE, replace(SHARES, flush_ns=6 * S))


def test_hook_and_wait_consume_ten_seconds_and_only_about_ten_seconds_remain() -> None:
    shares = Told(wait_ns=5 * S, drain_ns=25 * S)
    spent = budget(GUIDE, GUIDE.containers[0], shares)
    assert spent.left_ns == 10 * S
    assert [part.name for part in spent.unknown] == [Name.CLOSE, Name.FLUSH, Name.RESERVE]
    assert "10 s of 45 s" in finding(GUIDE, shares, "propagation-counted-twice").says


def test_the_grace_period_countdown_includes_prestop_execution() -> None:
    spent = budget(CORRECT, API, TOLD)
    assert (spent.sigterm_ns, spent.kill_ns, spent.remaining_ns) == (10 * S, 45 * S, 35 * S)


def test_a_long_sleep_reduces_the_time_available_for_real_work() -> None:
    said = finding(with_api(pre_stop=slept(25)), TOLD, "drain-over-grace").says
    assert "a grace period of 45 s leaves 20 s after a hook of 25 s: 7 s too long" in said


def test_distroless_images_may_not_contain_sh_or_sleep() -> None:
    image = "gcr.io/distroless/static"
    for command in (("/bin/sh", "-c", "sleep 5"), ("sleep", "5")):
        subject = with_api(pre_stop=executed(*command), image=image)
        assert finding(subject, TOLD, "hook-without-program").level is Level.BROKEN
    assert "hook-without-program" not in codes(with_api(pre_stop=slept(5), image=image), TOLD)


def test_a_fixed_delay_should_cover_observed_propagation() -> None:
    assert "stops-before-routes" in codes(CORRECT, told(propagation_ns=11 * S))
    assert "stops-before-routes" not in codes(CORRECT, told(propagation_ns=10 * S))


def test_exiting_immediately_on_sigterm() -> None:
    subject = with_api(pre_stop=None)
    assert finding(subject, told(wait_ns=0), "stops-before-routes").level is Level.BROKEN
    assert "stops-before-routes" not in codes(subject, told(wait_ns=6 * S))


def test_a_hook_must_not_block_forever() -> None:
    subject = with_api(pre_stop=Hook(action=Action.HTTP_GET, at=at(20)))
    assert "SIGKILL 2 s later" in finding(subject, TOLD, "hook-length-unknown").because


def test_letting_one_request_consume_the_full_grace_period() -> None:
    shares = Told(drain_ns=40 * S, longest_request_ns=40 * S)
    assert "nothing is left for its end" in finding(GUIDE, shares, "drain-over-grace").says
    close_call = finding(GUIDE, replace(shares, drain_ns=40 * S - S // 2), "no-reserve")
    assert "0.5 s over" in close_call.says
    assert "no-reserve" not in codes(GUIDE, replace(shares, drain_ns=35 * S))
    assert "request-over-drain" in codes(GUIDE, replace(shares, drain_ns=35 * S))


def test_a_different_stop_signal_applies() -> None:
    said = finding(with_api(stop_signal="SIGQUIT"), TOLD, "stop-signal")
    assert "SIGQUIT" in said.says
    assert said.level is Level.NOTE


def test_a_draining_process_is_alive_but_not_ready() -> None:
    assert "liveness-asks-readiness" in codes(with_api(liveness=asked("/ready")), TOLD)
    assert "liveness-asks-readiness" not in codes(with_api(liveness=asked("/alive")), TOLD)


def test_readiness_is_routing_intent_and_not_an_instant_traffic_barrier() -> None:
    assert "changes nothing for new TCP" in finding(CORRECT, TOLD, "readiness-drain").says
    single = finding(of(replicas=1), TOLD, "readiness-drain-single")
    assert "keeps passing" in single.expected


def test_ignoring_persistent_connections() -> None:
    assert "keep-alive-over-drain" in codes(CORRECT, told(keep_alive_ns=75 * S))
    assert "connection-age-over-grace" in codes(CORRECT, told(max_connection_age_ns=300 * S))


@pytest.mark.parametrize(
    "bad",
    [
        with_api(pre_stop=slept(45)),
        with_api(pre_stop=slept(30)),
        with_api(command=("sh", "-c", "s;:")),
    ],
)
def test_a_disruption_budget_does_not_make_a_terminating_pod_drain(bad: Subject) -> None:
    with_it = [f for f in check(bad, TOLD) if f.level is Level.BROKEN]
    without = [f for f in check(replace(bad, budgets=()), TOLD) if f.level is Level.BROKEN]
    assert with_it == without != []


def test_a_rollout_that_removes_capacity_faster_than_replacements_become_ready() -> None:
    assert "rollout-takes-all" in codes(with_strategy(max_unavailable=3), TOLD)
    assert "rollout-takes-all" not in codes(with_strategy(max_unavailable=2), TOLD)


def test_a_worker_has_no_routes_to_wait_for() -> None:
    worker = replace(with_api(ports=()), services=())
    assert "hook-without-traffic" in codes(worker, TOLD)
    assert "nothing-waits-for-routes" not in codes(
        replace(worker, containers=(replace(API, pre_stop=None, ports=()),)), Told()
    )
