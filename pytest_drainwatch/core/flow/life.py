"""One flow's life: its signals run through the table, and the step at which it ended."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pytest_drainwatch.core.flow.signals import Step, signals
from pytest_drainwatch.core.flow.table import (
    ENDLESS,
    LIVING,
    PUSHED,
    SILENCES,
    TRANSITIONS,
    Proto,
    State,
)
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.core.stall import NO_STALLS, Stalls


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowLife:
    """Where a flow's life led: final state, when it left the living, by which step."""

    proto: Proto
    state: State
    end: Interval | None
    end_step: Step | None
    steps: tuple[Step, ...]


def live(
    proto: Proto,
    history: Sequence[Observation],
    workload: AbstractSet[str],
    stalls: Stalls = NO_STALLS,
    *,
    all_pods_known: bool = True,
) -> FlowLife:
    """Run a flow's observations through the table; see :func:`.signals.signals`."""
    state = State.NEW
    end: Step | None = None
    steps = tuple(signals(proto, history, workload, stalls, all_pods_known=all_pods_known))
    for step in steps:
        before, state = state, TRANSITIONS[state, step.signal]
        if state in LIVING:
            end = None
        elif state in ENDLESS:
            continue
        elif before in LIVING or (before in SILENCES and step.signal in PUSHED):
            end = step
    return FlowLife(
        proto=proto, state=state, end=end.at if end else None, end_step=end, steps=steps
    )
