"""The results that the page's script is held to are Python's."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace

import pytest

from pytest_drainwatch.core.scenario import Behavior
from pytest_drainwatch.core.scenario.values import ScenarioError
from pytest_drainwatch.core.simulation.document import document, dumped
from pytest_drainwatch.core.simulation.inputs import (
    LONGEST_GRACE_S,
    LONGEST_NS,
    MOST_NODES,
    MOST_REQUESTS,
    MOST_RETRIES,
    Inputs,
)
from pytest_drainwatch.core.simulation.life import Ending
from pytest_drainwatch.core.simulation.requests import Cause, Outcome
from pytest_drainwatch.core.simulation.routes import EVERY_NS, PATTERN
from pytest_drainwatch.core.simulation.run import simulate
from pytest_drainwatch.core.simulation.says import covering_ns
from pytest_drainwatch.core.simulation.steps import Happening
from tests.core.simulation import vectors

KEPT = vectors.read()
# From here on JavaScript's numbers skip some.
EXACT_IN_JAVASCRIPT = 2**53


def test_python_still_gives_what_the_file_says() -> None:
    assert len(KEPT) == vectors.COUNT
    for kept in KEPT:
        assert document(simulate(Inputs(**kept["inputs"]))) == kept


def test_another_model_would_be_seen() -> None:
    kept = KEPT[0]
    other = replace(Inputs(**kept["inputs"]), pre_stop_ns=5 * EVERY_NS)
    assert document(simulate(other)) != kept


def test_everything_that_can_happen_is_in_the_file() -> None:
    requests = [request for kept in KEPT for request in kept["sent"]]
    assert {request["outcome"] for request in requests} == set(Outcome)
    assert {request["cause"] for request in requests} == {None, *Cause}
    assert {kept["life"]["ending"] for kept in KEPT} == set(Ending)
    assert {kept["inputs"]["behavior"] for kept in KEPT} == set(Behavior)
    assert {step["kind"] for kept in KEPT for step in kept["steps"]} == set(Happening)


def test_no_number_is_more_than_javascript_can_hold() -> None:
    assert LONGEST_NS * max(MOST_NODES, *PATTERN) < EXACT_IN_JAVASCRIPT
    latest_ns = 3 * LONGEST_NS + (LONGEST_GRACE_S + 2 + MOST_RETRIES) * EVERY_NS
    assert latest_ns < EXACT_IN_JAVASCRIPT


def test_totals_add_up_and_nobody_is_answered_after_the_end() -> None:
    chance = random.Random(5)
    for inputs in (vectors.drawn(chance) for _ in range(150)):
        run = simulate(inputs)
        counted = Counter(request.outcome for request in run.requests)
        assert {**dict.fromkeys(Outcome, 0), **counted} == dict(run.totals)
        life = run.life
        assert life.exit_ns <= life.kill_due_ns + inputs.kill_ns
        assert life.listener_closed_ns <= life.exit_ns
        for request in run.requests:
            failed = request.outcome in (Outcome.REFUSED, Outcome.RESET, Outcome.KILLED)
            assert request.failed == failed
            assert request.end_ns >= request.start_ns
            if request.outcome in (Outcome.SERVED, Outcome.SLOW):
                assert request.cause is None
                assert request.end_ns <= life.exit_ns
            else:
                assert request.cause is not None
        assert json.loads(dumped(run)) == document(run)


def test_more_grace_never_hurts_work_in_flight() -> None:
    chance = random.Random(7)
    for inputs in (vectors.drawn(chance) for _ in range(100)):
        # Of a hook that is not cut: a cut one that runs on moves everything.
        grace_s = max(inputs.grace_period_s, -(-inputs.pre_stop_ns // EVERY_NS), 2)
        less = simulate(replace(inputs, grace_period_s=grace_s))
        more = simulate(replace(inputs, grace_period_s=grace_s + 15))
        assert more.totals[Outcome.KILLED] <= less.totals[Outcome.KILLED]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"nodes": 0}, "nodes is 0, expected a whole number 1..100"),
        ({"pre_stop_ns": -1}, "pre_stop_ns is -1"),
        ({"drain_ns": LONGEST_NS + 1}, "drain_ns is"),
        ({"longest_ns": 0}, "longest_ns is 0"),
        ({"grace_period_s": 1.5}, "grace_period_s is 1.5"),
        ({"behavior": "dance"}, "behavior is 'dance', expected one of: drain, exit-now, ignore"),
        ({"close_idle": 1}, "close_idle is 1, expected bool"),
        ({"load_balancer_ns": "30"}, "load_balancer_ns is '30'"),
        ({"nodes": 100, "propagation_ns": LONGEST_NS}, f"expected {MOST_REQUESTS} at most"),
    ],
)
def test_what_means_nothing_is_refused_in_words(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        Inputs(**wrong)  # type: ignore[arg-type]
    assert said in str(refused.value)


def test_the_hook_that_is_told_covers_the_routes_and_a_shorter_one_does_not() -> None:
    chance, told = random.Random(17), 0
    for inputs in (vectors.drawn(chance) for _ in range(150)):
        inputs = replace(inputs, client_retries=0)
        run = simulate(inputs)
        hook_ns = covering_ns(run)
        if hook_ns is None:
            ends_by_kill = run.life.listener_closed_ns >= run.life.kill_due_ns
            assert ends_by_kill or not run.totals[Outcome.REFUSED]
            continue
        told += 1
        # Long enough that SIGKILL has no say in it.
        covered = replace(inputs, pre_stop_ns=hook_ns, grace_period_s=300)
        assert not simulate(covered).totals[Outcome.REFUSED]
        last_ns = max(route.until_ns for route in run.routes)
        shorter = simulate(replace(covered, pre_stop_ns=hook_ns - 1_000_000))
        assert shorter.life.listener_closed_ns < last_ns
    assert told > 20
