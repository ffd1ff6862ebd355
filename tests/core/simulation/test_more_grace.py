"""Whether a longer grace period helps: always, but for three exceptions, each with its test."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.scenario import Behavior
from pytest_drainwatch.core.simulation.inputs import Inputs
from pytest_drainwatch.core.simulation.life import Ending
from pytest_drainwatch.core.simulation.requests import Cause
from pytest_drainwatch.core.simulation.routes import POOLED
from pytest_drainwatch.core.simulation.run import simulate
from tests.core.simulation.test_experiment import any_inputs, of, s


@given(any_inputs, st.integers(1, 60))
def test_more_grace_never_makes_more_requests_fail(inputs: Inputs, more_s: int) -> None:
    """For who asks on new connections and once, and a process that SIGKILL ends at once.

    The three tests below are why it is not so for others.
    """
    inputs = replace(inputs, client_retries=0, keepalive=False, kill_ns=0)
    longer = replace(inputs, grace_period_s=inputs.grace_period_s + more_s)
    assert len(simulate(longer).failed) <= len(simulate(inputs).failed)


def test_more_grace_may_cut_off_what_would_have_been_refused_and_tried_again() -> None:
    """An accepted request that the drain's end cuts is lost; a refused one finds another pod."""
    inputs = replace(
        Inputs(), pre_stop_ns=s(19), drain_ns=s(0.01), longest_ns=s(5.786), client_retries=3
    )
    short, long = (simulate(replace(inputs, grace_period_s=grace_s)) for grace_s in (5, 6))
    assert (len(short.failed), len(long.failed)) == (3, 4)
    once = replace(inputs, client_retries=0)
    short, long = (simulate(replace(once, grace_period_s=grace_s)) for grace_s in (5, 6))
    assert len(long.failed) <= len(short.failed)


def test_more_grace_may_let_the_drain_end_while_the_pooled_client_asks() -> None:
    inputs = replace(Inputs(), pre_stop_ns=s(14.3), drain_ns=s(0.02), propagation_ns=0)
    inputs = replace(inputs, longest_ns=s(5))
    short, long = (simulate(replace(inputs, grace_period_s=grace_s)) for grace_s in (14, 15))
    assert not short.failed
    (one,) = long.failed
    assert (one.source, one.cause) == (POOLED, Cause.DRAIN_DEADLINE)
    assert of(long, POOLED)[-1] == one


def test_a_process_that_outlives_its_sigkill_serves_meanwhile() -> None:
    """So that exiting by itself, with more grace, may be the earlier end."""
    inputs = replace(
        Inputs(), pre_stop_ns=s(3), behavior=Behavior.EXIT_NOW, handler_ns=s(2), kill_ns=s(0.453)
    )
    short, long = (simulate(replace(inputs, grace_period_s=grace_s)) for grace_s in (5, 6))
    assert (short.life.ending, long.life.ending) == (Ending.SIGKILL, Ending.EXITED)
    assert short.life.exit_ns == long.life.exit_ns + s(0.453)
