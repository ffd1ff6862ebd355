"""A hand-made recording for each behaviour, as a real cluster would have given it."""

from __future__ import annotations

from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.recording import Recording
from pytest_drainwatch.core.scenario import Behavior, Scenario
from tests.core import story as s
from tests.core.story import at

TCP = "tcp-0001"


def recording_of(scenario: Scenario) -> Recording:
    """One TCP flow, terminated as the scenario's behaviour does it."""
    behavior = scenario.app.behavior
    term = [s.log(Event.SIGTERM_RECEIVED, 40)]
    if behavior is Behavior.DRAIN:
        return s.recording([s.accepted()], _drained(), term, s.cluster(0, 5200))
    if behavior is Behavior.EXIT_NOW:
        return s.recording([s.accepted()], _reset(41), term, s.cluster(0, 300))
    return s.recording([s.accepted()], _reset(10_050), term, s.cluster(137, 10_100))


def _drained() -> list[Observation]:
    return [
        *s.alive(TCP, 5039),
        s.client(Event.FLOW_ANNOUNCED, TCP, at(5040, 5041), seq=100, reason="drain-deadline"),
        s.client(Event.FLOW_FIN, TCP, at(5040, 5041)),
    ]


def _reset(ms: float) -> list[Observation]:
    reset = s.client(Event.FLOW_RESET, TCP, at(ms, ms + 1), errno="ECONNRESET")
    return [*s.alive(TCP, ms - 1), reset]
