"""The table from a request's facts to its fate: total, and each fate can happen."""

from __future__ import annotations

import itertools

import pytest

from pytest_drainwatch.core.http.ending import Ending, Pool
from pytest_drainwatch.core.http.fate import (
    FAILED,
    OURS,
    SERVED,
    UNKNOWN,
    Fate,
    fate,
    retry_safe,
)


def judged(
    ended: Ending, pool: Pool = Pool.REUSED, status: int | None = None, *, written: bool = True
) -> Fate:
    return fate(ended, pool=pool, status=status, expected=200, written=written)


def test_each_fate_is_in_one_set() -> None:
    sets = (SERVED, FAILED, OURS, UNKNOWN)
    assert sum(map(len, sets)) == len(Fate)
    assert frozenset().union(*sets) == frozenset(Fate)


def test_every_combination_has_a_fate_and_every_fate_one() -> None:
    found = {
        judged(ended, pool, status, written=written)
        for ended, pool, status, written in itertools.product(
            Ending, Pool, (None, 200, 404, 503), (True, False)
        )
    }
    assert found == frozenset(Fate) - {Fate.CLIENT_STALL}  # which only a stall tells


@pytest.mark.parametrize("pool", Pool)
def test_a_response_on_a_new_connection_after_the_old_one_was_closed(pool: Pool) -> None:
    gone = pool in (Pool.FIN, Pool.RST, Pool.UNASKED)
    expected = Fate.CLOSED_BEFORE_WRITE if gone else Fate.SERVED
    assert judged(Ending.RESPONSE, pool, 200) is expected


def test_a_new_connection_that_fails_too_is_no_mere_close_before_the_write() -> None:
    assert judged(Ending.REFUSED, Pool.FIN) is Fate.REFUSED
    assert judged(Ending.RESPONSE, Pool.FIN, 503) is Fate.SERVER_ERROR


def test_what_was_written_makes_the_difference() -> None:
    assert judged(Ending.RST) is Fate.WRITTEN_THEN_RESET
    assert judged(Ending.FIN) is Fate.WRITTEN_THEN_CLOSED
    assert judged(Ending.RST, Pool.EMPTY, written=False) is Fate.RESET_AT_CONNECT


@pytest.mark.parametrize(
    ("what", "method", "received", "safe"),
    [
        (Fate.CLOSED_BEFORE_WRITE, "POST", False, True),
        (Fate.REFUSED, "POST", False, True),
        (Fate.CONNECT_TIMEOUT, "POST", False, True),
        (Fate.WRITTEN_THEN_RESET, "GET", False, True),
        (Fate.WRITTEN_THEN_RESET, "GET", True, False),
        (Fate.WRITTEN_THEN_RESET, "POST", False, False),
        (Fate.WRITTEN_THEN_CLOSED, "HEAD", False, True),
        (Fate.TIMEOUT, "POST", False, False),
        (Fate.SERVER_ERROR, "GET", False, False),
        (Fate.SERVED, "GET", False, None),
        (Fate.UNFINISHED, "GET", False, None),
    ],
)
def test_who_may_repeat_it(what: Fate, method: str, received: bool, safe: bool | None) -> None:
    assert retry_safe(what, method=method, received=received) is safe
