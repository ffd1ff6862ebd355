"""The kubelet's own arithmetic, against its source's examples and a slow re-telling of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval
from pytest_drainwatch.core.pod.kubelet import (
    kill_after,
    kill_within,
    remaining_after,
    sigterm_after,
)

S = NS_PER_S


@pytest.mark.parametrize(
    ("grace_s", "hook_s", "sigterm_s", "sigkill_s"),
    [
        (30, 0, 0, 30),
        (30, 300, 30, 32),  # case C25: the app gets two seconds
        (10, 9999, 10, 12),  # case C24
        (10, 3, 3, 10),
        (10, 3.9, 3.9, 10.9),  # whole seconds only are taken off
        (10, 8, 8, 10),
        (10, 8.5, 8.5, 10.5),
        (10, 9, 9, 11),  # two seconds at least
        (1, 0, 0, 2),
        (0, 0, 0, 2),
        (0, 5, 1, 3),  # a grace period of 0 is one of 1 to the kubelet
    ],
)
def test_the_rule(grace_s: int, hook_s: float, sigterm_s: float, sigkill_s: float) -> None:
    hook_ns = round(hook_s * S)
    assert sigterm_after(grace_s, hook_ns) == round(sigterm_s * S)
    assert kill_after(grace_s, hook_ns) == round(sigkill_s * S)


graces = st.integers(0, 60)
hooks = st.integers(0, 70 * S)


@given(graces, hooks, hooks, st.floats(0, 1))
def test_bounds_hold_for_every_hook_between(grace_s: int, a: int, b: int, part: float) -> None:
    hook = Interval(min(a, b), max(a, b))
    some_ns = hook.lo + round(part * hook.width)
    some_ns = min(max(some_ns, hook.lo), hook.hi)
    hook_ends = (hook.lo, hook.hi)
    kill = kill_within(grace_s, hook)
    assert kill.lo <= kill_after(grace_s, some_ns) <= kill.hi
    left = [remaining_after(grace_s, sigterm_after(grace_s, ns)) for ns in hook_ends]
    assert left[0] >= remaining_after(grace_s, sigterm_after(grace_s, some_ns)) >= left[1]


@given(graces, hooks)
def test_sigkill_is_never_before_the_grace_period_and_never_two_seconds_after_it(
    grace_s: int, hook_ns: int
) -> None:
    assert max(grace_s, 2) * S <= kill_after(grace_s, hook_ns) <= (max(grace_s, 1) + 2) * S


def test_bounds_are_reached() -> None:
    """Between 3.2 and 5.5 s: earliest at a whole second, latest just before one."""
    found = kill_within(10, Interval(3200 * NS_PER_MS, 5500 * NS_PER_MS))
    assert found == Interval(10 * S, 11 * S - 1)
