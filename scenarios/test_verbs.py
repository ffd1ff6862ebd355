"""Delete, evict or scale: is there any difference?

Prediction: none for the connections. All three set the same deletion timestamp, and the
kubelet knows no other way to end a pod; only scaling to zero brings no replacement, so
after it new connections find nobody.
"""

from __future__ import annotations

import pytest

from pytest_drainwatch import Trial, arms
from scenarios.short import EXITING, LATE_NS, asked, known, told, undisturbed

VERBS = {"delete": "delete", "evict": "evict", "scale": "scale"}


@pytest.mark.trial
@pytest.mark.parametrize("arms", [arms(asked("verbs", EXITING), "trigger", VERBS)], ids=["three"])
def test_the_connections_cannot_tell(trials: dict[str, Trial]) -> None:
    """The same mechanism, within a second of each other, and the same exit code."""
    assert undisturbed(trials.values())
    fates = {name: trial.tcp.mechanisms for name, trial in trials.items()}
    assert fates["delete"] == fates["evict"] == fates["scale"]
    assert {trial.exit_codes for trial in trials.values()} == {(0,)}
    terms = [known(trial.summary.trigger_to_sigterm_ns) for trial in trials.values()]
    assert max(lo for lo, _ in terms) - min(hi for _, hi in terms) <= LATE_NS

    for name, trial in trials.items():
        found = trial.new_connections
        assert found.observed_failing is not None, told(found)
        recovered = found.last_answered_ns is not None and (
            found.last_answered_ns[0] > known(found.observed_failing.last_ns)[1]
        )
        assert recovered is (name != "scale"), told(found)
