"""The lesson on graceful drain, sentence by sentence."""

from __future__ import annotations

import pytest

from pytest_drainwatch.core.balancer.machine import Balancer, State
from tests.core.balancer.played import answers, play

THREE = "POOL a b c"


def test_active_receives_new_requests() -> None:
    assert answers(f"{THREE}; PICK; PICK; PICK; PICK") == ["a", "b", "c", "a"]


def test_drain_receives_no_new_requests() -> None:
    played = play(f"{THREE}; DRAIN b" + "; PICK" * 30)
    assert set(played.answers) == {"a", "c"}
    assert set(play(THREE + "; PICK" * 30).answers) == {"a", "b", "c"}


def test_requests_it_already_holds_run_to_completion() -> None:
    held = play("POOL a b; PICK; PICK; PICK; DRAIN a")
    assert held.in_flight("a") == 2
    assert play("DONE a", held.balancer).in_flight("a") == 1
    assert play("DONE a; DONE a", held.balancer).in_flight("a") == 0


def test_it_is_safe_to_terminate_once_its_in_flight_count_reaches_zero() -> None:
    held = play("POOL a b; PICK; PICK; PICK; DRAIN a").balancer
    assert answers("DONE a; REMOVABLE", held) == []
    assert answers("DONE a; DONE a; REMOVABLE", held) == ["a"]


def test_the_counter_goes_up_on_dispatch_and_down_on_completion() -> None:
    counts = []
    balancer = play("POOL a").balancer
    for command in ("PICK", "PICK", "DONE a", "PICK", "DONE a", "DONE a"):
        balancer = play(command, balancer).balancer
        counts.append(balancer.backend("a").in_flight)
    assert counts == [1, 2, 1, 2, 1, 0]


def test_a_timeout_fixes_a_deadline_at_now_plus_timeout() -> None:
    drained = play("POOL a b; NOW 100; DRAIN a 30; DRAIN b; NOW 107").balancer
    assert (drained.backend("a").since, drained.backend("a").deadline) == (100, 130)
    assert (drained.backend("b").since, drained.backend("b").deadline) == (100, None)


@pytest.mark.parametrize(
    ("now", "listed"), [(0, []), (129, []), (130, ["a!"]), (131, ["a!"]), (10**9, ["a!"])]
)
def test_a_drain_is_forced_once_now_has_reached_its_deadline(now: int, listed: list[str]) -> None:
    busy = f"POOL a; PICK; DRAIN a 130; NOW {now}"
    assert answers(f"{busy}; REMOVABLE") == ["a", *listed]


def test_whichever_comes_first_zero_in_flight_or_the_deadline() -> None:
    busy = "POOL a; PICK; DRAIN a 30"
    assert answers(f"{busy}; NOW 10; DONE a; REMOVABLE; REMOVE a") == ["a", "a", "killed 0"]
    assert answers(f"{busy}; NOW 30; REMOVABLE; REMOVE a") == ["a", "a!", "killed 1"]


def test_a_deadline_that_is_reached_with_nothing_in_flight_is_clean() -> None:
    assert answers("POOL a; DRAIN a 5; NOW 5; REMOVABLE") == ["a"]


def test_a_drain_with_no_limit_blocks_for_ever() -> None:
    played = play("POOL a; PICK; DRAIN a; NOW 9223372036854775807; REMOVABLE; REMOVE a")
    assert played.answers == ["a"]
    assert "has no deadline" in played.errors[0]
    assert answers("DRAIN a 0; REMOVABLE", played.balancer) == ["a!"]


def test_removable_lists_in_pool_order_and_marks_forced_ones() -> None:
    script = "POOL c b a d; PICK; PICK; PICK; DRAIN a 7; DRAIN b; DRAIN c; DONE b; NOW 7"
    # c waits without a deadline, d is ACTIVE.
    assert answers(f"{script}; REMOVABLE")[3:] == ["b a!"]


def test_a_backend_is_gone_once_it_is_removed() -> None:
    played = play(f"{THREE}; DRAIN b; REMOVE b; STATUS; PICK; PICK; PICK")
    assert played.answers == ["killed 0", "a ACTIVE 0", "c ACTIVE 0", "a", "c", "a"]
    gone = play("DONE b; DRAIN b; UNDRAIN b; REMOVE b", played.balancer)
    assert gone.balancer == played.balancer
    assert [error.split(",")[0] for error in gone.errors] == ["no b in the pool"] * 4


def test_undrain_rejoins_the_rotation_immediately() -> None:
    assert answers("POOL a b; DRAIN a; PICK; UNDRAIN a; PICK; PICK") == ["b", "b", "a"]


def test_undrain_takes_the_deadline_back() -> None:
    back = play("POOL a; PICK; DRAIN a 5; UNDRAIN a; NOW 9").balancer
    assert back.backend("a").state is State.ACTIVE
    assert answers("REMOVABLE", back) == []
    assert answers("DRAIN a; REMOVABLE", back) == []  # the old one does not come back


def test_the_rotation_of_the_lesson() -> None:
    """Its own table: the picks, and the counter after each."""
    balancer, told = Balancer(), []
    for command in (THREE, "PICK", "PICK", "DRAIN a", "PICK", "PICK"):
        played = play(command, balancer)
        balancer = played.balancer
        told += [(pick, balancer.counter) for pick in played.answers]
    assert told == [("a", 1), ("b", 2), ("b", 3), ("c", 4)]  # not c: the list shrank under it


def test_the_counter_is_never_reset() -> None:
    script = f"{THREE}; PICK; PICK; PICK; DRAIN c; DONE a; DONE b; DONE c; REMOVE c; UNDRAIN a"
    assert play(script).balancer.counter == 3
    assert play(f"{script}; PICK; DONE b; POOL x y; NOW 5").balancer.counter == 4


def test_yanking_the_machine_is_refused() -> None:
    """Hard removal of a backend that nobody drained, busy or not."""
    for before in (THREE, f"{THREE}; PICK"):
        played = play(f"{before}; REMOVE a")
        assert played.errors == ["a is ACTIVE, expected one that drains: DRAIN it first"]
        assert played.balancer == play(before).balancer
