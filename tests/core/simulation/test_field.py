"""Cases from the field that the simulator of requests answers: C24, C50, C55."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch.core.scenario import Behavior
from pytest_drainwatch.core.simulation.inputs import Inputs
from pytest_drainwatch.core.simulation.life import Ending
from pytest_drainwatch.core.simulation.requests import Cause
from pytest_drainwatch.core.simulation.routes import LOAD_BALANCER
from pytest_drainwatch.core.simulation.run import simulate
from tests.core.simulation.test_experiment import ran, s


@pytest.mark.parametrize(("pre_stop_s", "sigterm_s", "killed_s"), [(9999, 10, 12), (5, 5, 10)])
def test_a_hung_hook_and_an_ignored_sigterm_take_the_grace_period_and_two_seconds(
    pre_stop_s: int, sigterm_s: int, killed_s: int
) -> None:
    """C24: 12 s and never twice the grace period; a hook that ends in time costs nothing more."""
    life = ran(grace_period_s=10, pre_stop_ns=s(pre_stop_s), behavior=Behavior.IGNORE).life
    assert (life.sigterm_ns, life.exit_ns) == (s(sigterm_s), s(killed_s))
    assert life.ending is Ending.SIGKILL


def test_clients_that_resolve_later_than_the_hook_lasts_are_refused_for_the_excess() -> None:
    """C50: 30 s between look-ups and a TTL of 30 s, preStop 40 s, grace 50 s; a client's
    stale addresses are a route that ends late.
    """
    stale = Inputs(
        nodes=1, propagation_ns=s(60), pre_stop_ns=s(40), grace_period_s=50, keepalive=False
    )
    refused = [one for one in simulate(stale).failed if one.start_ns >= s(40)]
    assert [one.start_ns for one in refused] == [s(second) for second in range(40, 60)]
    assert {one.cause for one in refused} <= {Cause.LISTENER_CLOSED, Cause.PROCESS_GONE}
    # Look-ups that are fresh within the hook's time, or a hook that outlasts the stale ones.
    fresh = replace(stale, propagation_ns=s(40), longest_ns=s(5))
    assert not simulate(fresh).failed
    longer = replace(stale, pre_stop_ns=s(60), grace_period_s=90)
    assert not simulate(longer).failed


@pytest.mark.parametrize(("pre_stop_s", "refused"), [(5, 13), (17, 1), (18, 0), (25, 0)])
def test_the_hook_must_outlast_the_load_balancers_lag_and_spread(
    pre_stop_s: int, refused: int
) -> None:
    """C55: lag 3 s and spread 15 s: 5 s fail, 25 s pass, and 18 s are the least that do."""
    lag_and_spread_ns = s(3) + s(15)
    run = ran(
        load_balancer_ns=lag_and_spread_ns,
        propagation_ns=s(3),
        pre_stop_ns=s(pre_stop_s),
        grace_period_s=60,
    )
    assert len(run.failed) == refused
    assert {one.source for one in run.failed} <= {LOAD_BALANCER}
