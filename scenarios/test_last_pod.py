"""Who serves new connections while the only pod terminates?

Prediction: itself. With no ready endpoint left kube-proxy falls back to those that are
terminating and still serving, so a pod that keeps its readiness and its listener open
serves to its end; one that fails readiness is no longer serving, and everybody is refused.
Scaled to zero there is no replacement to take over.
"""

from __future__ import annotations

import pytest

from pytest_drainwatch import Trial, Trigger, arms
from pytest_drainwatch.core.interval import NS_PER_S
from scenarios.short import LATE_NS, LISTENING, asked, known, told, undisturbed

SCALED = asked("last-pod", LISTENING, trigger=Trigger.SCALE)
VALUES = {"fails": "fail", "keeps": "keep"}


@pytest.mark.trial
@pytest.mark.parametrize("arms", [arms(SCALED, "app.readiness_on_drain", VALUES)], ids=["scaled"])
def test_it_does_for_as_long_as_it_is_ready(trials: dict[str, Trial]) -> None:
    """From when new connections fail is what the readiness probe decides."""
    assert undisturbed(trials.values())
    window_ns = LISTENING.drain_ns
    for name, trial in trials.items():
        found = trial.new_connections
        assert (found.by_terminating or 0) > 0, told(found)
        assert found.observed_failing is not None, told(found)
        began = known(found.observed_failing.first_ns)
        if name == "keeps":
            assert began[1] >= window_ns, told(found)
        else:
            # The kubelet asks once a second, and kube-proxy follows within another.
            assert began[0] <= 2 * NS_PER_S + LATE_NS, told(found)
