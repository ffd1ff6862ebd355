"""What is a drain worth when the pod is force-deleted, or its container killed?

Prediction: force-delete takes the object at once, and the kubelet makes a grace period of 0 its
minimum of two seconds: a drain of five is cut there, and nobody is told how it ended. A kill past
the API leaves nothing: connections end as the process does, the pod stays, and new connections
fail until its container has started again and is Ready.
"""

from __future__ import annotations

import pytest

from pytest_drainwatch import Trial, arms
from pytest_drainwatch.core.interval import NS_PER_S
from scenarios.short import LATE_NS, LISTENING, asked, failing, known, undisturbed

MINIMUM_NS = 2 * NS_PER_S
VERBS = {"delete": "delete", "forced": "force-delete", "killed": "container-kill"}


def last_end(trial: Trial) -> tuple[int, int]:
    """When the last TCP connection of the pod ended."""
    ends = [known(f.terminal_ns) for f in trial.flows if f.proto == "tcp" and f.role == "target"]
    return max(ends, key=lambda end: end[1])


@pytest.mark.trial
@pytest.mark.parametrize("arms", [arms(asked("hurry", LISTENING), "trigger", VERBS)], ids=["three"])
def test_only_who_is_given_time_says_goodbye(trials: dict[str, Trial]) -> None:
    """The same app: all of its connections closed cleanly, or none of them."""
    assert undisturbed(trials.values())
    flows = {name: trial.tcp for name, trial in trials.items()}
    assert flows["delete"].drained == flows["delete"].total
    assert flows["forced"].severed == flows["forced"].total
    assert flows["killed"].severed == flows["killed"].total

    drain_ns = trials["delete"].scenario.app.drain_ns
    assert drain_ns <= last_end(trials["delete"])[1] <= drain_ns + 2 * LATE_NS
    assert MINIMUM_NS <= last_end(trials["forced"])[1] <= MINIMUM_NS + 2 * LATE_NS
    assert last_end(trials["killed"])[1] <= LATE_NS

    (forced,), (killed,) = (trials[name].pod_ends for name in ("forced", "killed"))
    assert (forced.initiator, forced.deletion_grace_period_s) == ("force-delete", 0)
    assert (killed.initiator, killed.exit_code, killed.sigterm_ns) == ("container-kill", 137, None)
    # Whoever came to the killed one's pod found nobody, until it was Ready again.
    assert known(failing(trials["killed"].new_connections).lasts_ns)[0] > 0
