"""Whatever an endpoint did, and however late frames showed it: the windows hold the truth."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Observation
from tests.core import story as s
from tests.core.story import OLD
from tests.core.tries import prober, tries

READY, NOT_READY = (True, True, False), (False, False, False)

# What the endpoint is from each instant on (ms since t = 0): "ready", "unready" or "absent".
Truth = list[tuple[int, str]]


@st.composite
def lives(draw: st.DrawFn) -> tuple[Truth, list[int]]:
    """An endpoint that is ready at t = 0, and how late each change was shown, in order."""
    at_ms, state, shown_ms = 0, "ready", 0
    truth, frames = list[tuple[int, str]](), list[int]()
    for _ in range(draw(st.integers(0, 6))):
        at_ms += draw(st.integers(1, 400))
        state = draw(st.sampled_from(sorted({"ready", "unready", "absent"} - {state})))
        shown_ms = max(shown_ms + 1, at_ms + draw(st.integers(0, 300)))
        truth.append((at_ms, state))
        frames.append(shown_ms)
    return truth, frames


def judged(truth: Truth, frames: list[int], *also: Observation) -> TrialReport:
    listed = {"ready": [(OLD, *READY)], "unready": [(OLD, *NOT_READY)], "absent": []}
    slices = [s.endpoints(-100, (OLD, *READY))]
    for (_, state), ms in zip(truth, frames, strict=True):
        slices.append(s.endpoints(ms, *listed[state]))
    return derive(s.recording([s.accepted()], slices, [s.deleted(ms=9000)], also)).trial


def held(truth: Truth, states: set[str]) -> list[tuple[int, int | None]]:
    """The true stretches in which the endpoint was in one of the states, since t = 0."""
    found: list[tuple[int, int | None]] = []
    opens: int | None = None
    for at_ms, state in [(0, "ready"), *truth]:
        if state in states and opens is None:
            opens = at_ms
        elif state not in states and opens is not None:
            found.append((opens, at_ms))
            opens = None
    return [*found, *([(opens, None)] if opens is not None else [])]


def within(bounds: tuple[int, int] | None, at_ms: int | None) -> bool:
    if bounds is None or at_ms is None:
        return bounds is None and at_ms is None
    return bounds[0] <= at_ms * NS_PER_MS <= bounds[1]


@given(lives())
@settings(max_examples=150, deadline=None)
def test_windows_and_their_breaks_hold_the_truth(life: tuple[Truth, list[int]]) -> None:
    (found,) = judged(*life).windows
    for span, states in (
        (found.ready_routable, {"ready"}),
        (found.advertised, {"ready", "unready"}),
    ):
        true = held(life[0], states)
        assert within(span.closes_ns, true[-1][1])
        assert len(span.breaks) == len(true) - 1
        for one, (_, end), (begin, _) in zip(span.breaks, true, true[1:], strict=False):
            assert within(one.opens_ns, end)
            assert within(one.closes_ns, begin)


@given(lives())
@settings(max_examples=100, deadline=None)
def test_answers_while_it_was_not_ready_are_within_their_bounds(
    life: tuple[Truth, list[int]],
) -> None:
    """A removal alone says nothing of its readiness."""
    truth, _ = life
    unready, last = list[tuple[int, bool]](), False
    for at_ms, state in truth:
        last = last if state == "absent" else state == "unready"
        unready.append((at_ms, last))
    attempts = tries(0, 400)
    (who,) = judged(*life, *prober(attempts)).new_connections[0].answered_by
    count = sum(
        next((is_so for at_ms, is_so in reversed(unready) if at_ms <= one.ms), False)
        for one in attempts
    )
    if who.after_unready is None:
        assert not any(is_so for _, is_so in unready)
    else:
        assert who.after_unready[0] <= count <= who.after_unready[1]
