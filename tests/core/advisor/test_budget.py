"""The shutdown budget as numbers, against the kubelet's rule."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.advisor.budget import Name, Origin, budget
from pytest_drainwatch.core.advisor.checks import check
from pytest_drainwatch.core.advisor.told import Told
from pytest_drainwatch.core.interval import whole_seconds
from pytest_drainwatch.core.pod.kubelet import kill_after
from tests.core.advisor.subjects import API, CORRECT, S, executed, of, slept, told


def test_a_hook_of_unknown_length_leaves_the_ends_unknown() -> None:
    asked = replace(API, pre_stop=executed("/app/drain"))
    spent = budget(CORRECT, asked, told())
    assert (spent.sigterm_ns, spent.kill_ns) == (None, None)
    assert spent.part(Name.HOOK).origin is Origin.UNKNOWN
    assert spent.part(Name.HOOK) in spent.unknown


seconds = st.integers(0, 90)


@given(st.integers(1, 90), seconds, seconds, seconds)
def test_what_does_not_fit_is_what_the_kubelet_would_cut(
    grace_s: int, hook_s: int, drain_s: int, close_s: int
) -> None:
    subject = of(grace_said_s=grace_s, containers=(replace(API, pre_stop=slept(hook_s)),))
    shares = Told(drain_ns=drain_s * S, close_ns=close_s * S)
    # Equal is cut as well: the drain begins after SIGTERM was sent, by however little.
    cut = min(hook_s, grace_s) + drain_s + close_s >= kill_after(grace_s, hook_s * S) // S
    found = {f.code for f in check(subject, shares)}
    assert ("drain-over-grace" in found) == cut


@given(st.integers(0, 10**15))
def test_whole_seconds_cover_what_they_are_for(ns: int) -> None:
    assert 0 <= whole_seconds(ns) * S - ns < S
