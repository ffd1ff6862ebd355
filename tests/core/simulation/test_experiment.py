"""The experiment page on a pod's termination, sentence by sentence.

Each outcome that the page states has the neighbouring input that gives the other one.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario import Behavior
from pytest_drainwatch.core.simulation.inputs import Inputs
from pytest_drainwatch.core.simulation.life import Ending
from pytest_drainwatch.core.simulation.requests import Cause, Outcome, Request
from pytest_drainwatch.core.simulation.routes import LOAD_BALANCER, POOLED
from pytest_drainwatch.core.simulation.run import Simulated, simulate
from pytest_drainwatch.core.simulation.says import says
from pytest_drainwatch.core.simulation.steps import Happening, steps

DEFAULTS = Inputs()
LB_30 = replace(DEFAULTS, load_balancer_ns=30 * NS_PER_S)


def s(seconds: float) -> int:
    return round(seconds * NS_PER_S)


def ran(**changed: object) -> Simulated:
    return simulate(replace(DEFAULTS, **changed))  # type: ignore[arg-type]


def failed(run: Simulated) -> set[tuple[Outcome, Cause | None]]:
    return {(one.outcome, one.cause) for one in run.failed}


def of(run: Simulated, source: str) -> list[Request]:
    return [one for one in run.requests if one.source == source]


REFUSED = (Outcome.REFUSED, Cause.LISTENER_CLOSED)
KILLED = (Outcome.KILLED, Cause.SIGKILL)


# ---- what is modelled ----


def test_three_nodes_stop_at_staggered_times_up_to_the_slowest() -> None:
    assert [route.until_ns // NS_PER_MS for route in ran().routes] == [2666, 5333, 8000]
    assert [route.until_ns for route in ran(propagation_ns=s(3)).routes] == [s(1), s(2), s(3)]


def test_a_load_balancer_stops_at_its_own_delay() -> None:
    last = simulate(LB_30).routes[-1]
    assert (last.source, last.until_ns) == (LOAD_BALANCER, s(30))
    assert LOAD_BALANCER not in {route.source for route in ran().routes}


def test_each_source_opens_one_connection_a_second_while_it_routes_here() -> None:
    run = simulate(LB_30)
    for route in run.routes:
        starts = [one.start_ns for one in of(run, route.source)]
        since = [start for start in starts if start >= 0]
        assert [later - start for start, later in pairwise(since)] == ([s(1)] * (len(since) - 1))
        assert route.until_ns - s(1) <= since[-1] < route.until_ns


def test_durations_follow_a_fixed_pattern_that_includes_the_longest() -> None:
    for longest_ns in (s(20), s(4)):
        run = ran(longest_ns=longest_ns)
        taken = {one.takes_ns for one in run.requests if one.source != POOLED}
        assert max(taken) == longest_ns
        assert len(taken) == 4
    assert simulate(DEFAULTS) == simulate(DEFAULTS)


def test_a_pooled_client_keeps_sending_on_a_connection_it_opened_earlier() -> None:
    """It is answered after every route is gone, until the app closes the connection."""
    run = ran()
    last = max(one.start_ns for one in of(run, POOLED))
    assert max(route.until_ns for route in run.routes) < last < run.life.listener_closed_ns
    assert not of(ran(keepalive=False), POOLED)


# ---- the kubelet ----


def test_the_grace_period_counts_from_deletion_and_includes_the_hook() -> None:
    for pre_stop_s in (0, 10, 30):
        assert ran(pre_stop_ns=s(pre_stop_s)).life.kill_due_ns == s(45)


def test_an_overrunning_hook_gets_a_one_off_two_second_extension() -> None:
    """C24, C25: cut off at the end of the grace period, and the app gets two seconds."""
    life = ran(pre_stop_ns=s(300), grace_period_s=30).life
    assert (life.hook_cut, life.sigterm_ns, life.kill_due_ns) == (True, s(30), s(32))
    life = ran(pre_stop_ns=s(30), grace_period_s=30).life
    assert (life.hook_cut, life.sigterm_ns, life.kill_due_ns) == (False, s(30), s(32))
    life = ran(pre_stop_ns=s(27), grace_period_s=30).life
    assert (life.hook_cut, life.kill_due_ns) == (False, s(30))


def test_sigkill_ends_whatever_is_left() -> None:
    life = ran(behavior=Behavior.IGNORE, pre_stop_ns=s(300), grace_period_s=30).life
    assert (life.ending, life.exit_ns) == (Ending.SIGKILL, s(32))


# ---- controlled comparisons ----


def test_with_the_defaults_every_request_succeeds() -> None:
    run = ran()
    assert run.requests
    assert not run.failed
    assert max(route.until_ns for route in run.routes) == s(8)
    assert run.life.sigterm_ns == s(10)


def test_with_pre_stop_0_those_who_still_send_are_refused() -> None:
    run = ran(pre_stop_ns=0)
    assert failed(run) == {REFUSED}
    assert {one.source for one in run.failed} == {"node 1", "node 2", "node 3"}


def test_with_pre_stop_5_only_the_slower_sources_fail() -> None:
    run = ran(pre_stop_ns=s(5))
    assert failed(run) == {REFUSED}
    slower = {route.source for route in run.routes if route.until_ns > s(5)}
    assert {one.source for one in run.failed} == slower == {"node 2", "node 3"}
    assert "node 1" in {one.source for one in ran(pre_stop_ns=s(2)).failed}


def test_with_pre_stop_8_the_refusals_stop() -> None:
    assert not ran(pre_stop_ns=s(8)).failed
    assert failed(ran(pre_stop_ns=s(7.25))) == {REFUSED}


def test_with_a_grace_period_of_20_the_longest_request_fails_mid_flight() -> None:
    run = ran(grace_period_s=20)
    assert failed(run) == {KILLED}
    assert {one.takes_ns for one in run.failed} == {DEFAULTS.longest_ns}
    assert run.life.ending is Ending.SIGKILL
    assert run.life.exit_ns == s(20)
    assert not ran(grace_period_s=26).failed


@pytest.mark.parametrize("grace_period_s", [45, 3600])
def test_exiting_at_once_cuts_in_flight_work_however_generous_the_grace(
    grace_period_s: int,
) -> None:
    run = ran(behavior=Behavior.EXIT_NOW, grace_period_s=grace_period_s)
    assert (Outcome.KILLED, Cause.EXITED) in failed(run)
    assert run.life.exit_ns == run.life.sigterm_ns
    assert not ran(grace_period_s=grace_period_s).failed


def test_ignoring_sigterm_the_process_runs_until_sigkill() -> None:
    run = ran(behavior=Behavior.IGNORE)
    assert (run.life.ending, run.life.exit_ns) == (Ending.SIGKILL, s(45))
    assert not [one for one in run.failed if one.start_ns < s(44)]
    assert ran().life.ending is Ending.DRAINED


def test_idle_connections_left_open_cost_the_pooled_client_one_reset() -> None:
    run = ran(close_idle=False)
    (one,) = run.failed
    assert (one.source, one.outcome) == (POOLED, Outcome.RESET)
    assert run.life.exit_ns <= one.start_ns < run.life.exit_ns + s(1)
    assert not ran(close_idle=True).failed


def test_the_timeout_bounds_the_wait() -> None:
    """A drain that is over before its requests are: cut off, long before SIGKILL."""
    run = ran(drain_ns=s(5))
    assert failed(run) == {(Outcome.KILLED, Cause.DRAIN_DEADLINE)}
    assert run.life.exit_ns == s(15)
    assert not ran(drain_ns=s(16)).failed


def test_a_load_balancer_of_30_fails_and_a_pre_stop_and_a_grace_bring_it_back_to_zero() -> None:
    """C55 is the same with a preStop of 5 s. Neither of the two alone is enough."""
    assert REFUSED in failed(simulate(LB_30))
    assert REFUSED in failed(simulate(replace(LB_30, pre_stop_ns=s(5))))
    longer = replace(LB_30, pre_stop_ns=s(30))
    assert failed(simulate(longer)) == {KILLED}
    assert REFUSED in failed(simulate(replace(LB_30, grace_period_s=60)))
    assert not simulate(replace(longer, grace_period_s=60)).failed


# ---- the trace ----


def test_rows_that_extend_past_the_listener_closing_are_the_cause_of_refusals() -> None:
    late = [step for step in steps(ran(pre_stop_ns=s(5))) if step.kind is Happening.ROUTE_ENDS_LATE]
    assert [step.text.partition(" stops")[0].lower() for step in late] == ["node 2", "node 3"]
    assert not [step for step in steps(ran()) if step.kind is Happening.ROUTE_ENDS_LATE]


def test_the_trace_lists_the_order_and_the_first_failures_with_their_cause() -> None:
    told = steps(ran(grace_period_s=20))
    assert [step.at_ns for step in told] == sorted(step.at_ns for step in told)
    order = [step.kind for step in told if not step.kind.startswith("route")]
    assert order[:4] == ["deleted", "hook-begins", "hook-ends", "sigterm"]
    assert order.index(Happening.SIGKILL) < order.index(Happening.FAILS)
    fails = [step.text for step in told if step.kind is Happening.FAILS]
    assert fails
    assert all("cut off: SIGKILL" in text for text in fails)


@pytest.mark.parametrize(("kubelet_s", "begins"), [(0, "begins."), (20, "begins 20 s later.")])
def test_the_trace_says_when_the_grace_period_begins_that_sigkill_ends(
    kubelet_s: int, begins: str
) -> None:
    run = ran(kubelet_ns=s(kubelet_s), behavior=Behavior.IGNORE)
    told = steps(run)
    assert told[0].text == f"The pod is deleted: its grace period of 45 s {begins}"
    over = next(step for step in told if step.kind is Happening.SIGKILL)
    assert over.text == "SIGKILL: the grace period is over."
    assert over.at_ns == s(kubelet_s + 45)


def test_no_request_is_no_success() -> None:
    none = says(ran(keepalive=False, propagation_ns=0, longest_ns=NS_PER_MS))
    assert none == ("No request is sent to the pod: none shows what would become of it.",)
    one = says(ran(keepalive=False, propagation_ns=1, nodes=1, longest_ns=NS_PER_MS))
    assert one[0] == "The 1 request is answered."
    assert says(ran())[0] == "All 46 requests are answered."


def test_what_a_killed_request_lacked_counts_from_sigkill_however_long_that_takes() -> None:
    def lacked(kill_s: int) -> str:
        told = says(ran(grace_period_s=20, kill_ns=s(kill_s)))
        return next(sentence for sentence in told if "SIGKILL came at 20 s" in sentence)

    last = "5.333 s before the last of them would have been answered."
    assert lacked(0).endswith(last)
    assert lacked(5).endswith(last)


def test_clients_that_retry_reach_another_pod_once_their_source_routes_there() -> None:
    without, patient = ran(pre_stop_ns=0), ran(pre_stop_ns=0, client_retries=8)
    assert without.failed
    assert not patient.failed
    assert patient.totals[Outcome.RETRIED] == len(without.failed)
    # What was cut off may have had its effect: it is not sent again.
    assert failed(ran(grace_period_s=20, client_retries=8)) == {KILLED}


# ---- any inputs ----

few_seconds = st.integers(0, 40 * 1000).map(lambda ms: ms * NS_PER_MS)
any_inputs = st.builds(
    Inputs,
    grace_period_s=st.integers(0, 60),
    pre_stop_ns=few_seconds,
    behavior=st.sampled_from(Behavior),
    drain_ns=few_seconds,
    close_idle=st.booleans(),
    nodes=st.integers(1, 5),
    propagation_ns=few_seconds,
    load_balancer_ns=st.none() | few_seconds,
    longest_ns=st.integers(1, 30 * 1000).map(lambda ms: ms * NS_PER_MS),
    client_retries=st.integers(0, 3),
    keepalive=st.booleans(),
    slow_ns=few_seconds,
    kubelet_ns=st.integers(0, 3 * NS_PER_S),
    handler_ns=st.integers(0, 3 * NS_PER_S),
    kill_ns=st.integers(0, NS_PER_S),
)


@given(any_inputs)
def test_totals_add_up(inputs: Inputs) -> None:
    run = simulate(inputs)
    assert sum(run.totals.values()) == len(run.requests)
    assert sum(run.totals[one] for one in (Outcome.REFUSED, Outcome.RESET, Outcome.KILLED)) == len(
        run.failed
    )


@given(any_inputs)
def test_nobody_is_served_by_a_process_that_is_gone(inputs: Inputs) -> None:
    run = simulate(inputs)
    for one in run.requests:
        if one.outcome in (Outcome.SERVED, Outcome.SLOW):
            assert one.end_ns <= run.life.exit_ns
            if one.source != POOLED:
                assert one.start_ns < run.life.listener_closed_ns


@given(any_inputs)
def test_sigkill_is_never_later_than_the_grace_period_and_two_seconds(inputs: Inputs) -> None:
    life = simulate(inputs).life
    assert life.kill_due_ns - life.begins_ns <= s(max(inputs.grace_period_s, 1) + 2)
    assert life.exit_ns <= life.kill_due_ns + inputs.kill_ns


@given(any_inputs)
def test_who_is_refused_came_by_a_route_that_outlived_the_listener(inputs: Inputs) -> None:
    run = simulate(inputs)
    until = {route.source: route.until_ns for route in run.routes}
    for one in run.requests:
        if one.cause in (Cause.LISTENER_CLOSED, Cause.PROCESS_GONE):
            assert run.life.listener_closed_ns <= one.start_ns < until[one.source]
