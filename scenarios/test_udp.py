"""Does UDP follow?

Prediction: it follows readiness and nothing else. kube-proxy drops a UDP flow's conntrack
entry when its pod is no longer *serving*: with readiness failed the flows move to the
other pod while the old one could still answer; with readiness kept they stay to its end.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch import Mechanism, Trial, arms
from scenarios.short import LATE_NS, LISTENING, asked, known, undisturbed

TWO = asked("udp", replace(LISTENING, replicas=2))
VALUES = {"fails": "fail", "keeps": "keep"}


@pytest.mark.trial
@pytest.mark.parametrize("arms", [arms(TWO, "app.readiness_on_drain", VALUES)], ids=["two"])
def test_it_follows_the_readiness_probe(trials: dict[str, Trial]) -> None:
    """Moved within seconds of SIGTERM, or at the end of the window."""
    assert undisturbed(trials.values())
    for name, trial in trials.items():
        ends = [
            known(f.terminal_ns) for f in trial.flows if f.proto == "udp" and f.role == "target"
        ]
        assert len(ends) == trial.scenario.flows.udp
        if name == "fails":
            assert trial.udp.mechanisms == {Mechanism.REHOMED: len(ends)}
            assert max(hi for _, hi in ends) < LISTENING.drain_ns
        else:
            assert min(hi for _, hi in ends) >= LISTENING.drain_ns - LATE_NS
