"""What tests about a pod's end share: how to ask for one, and how to judge its times."""

from __future__ import annotations

import pytest

from pytest_drainwatch import App, Flows, Scenario, Trial
from pytest_drainwatch.core.document import PodEnd
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.pod.ending import Initiator

LATE_NS = 1 * NS_PER_S  # a busy machine's kubelet, which is only ever late
FEW = Flows(tcp=4, udp=2)


def asking(name: str, app: App) -> pytest.MarkDecorator:
    """Parametrise a test with one scenario of few flows."""
    scenario = Scenario(app=app, flows=FEW, settle_ns=1 * NS_PER_S, name=name)
    return pytest.mark.parametrize("scenario", [scenario])


def end_of(trial: Trial) -> PodEnd:
    """The target container's, deleted as asked and with the grace asked for."""
    (found,) = trial.pod_ends
    assert found.initiator is Initiator.API_DELETE
    assert found.deletion_grace_period_s == trial.scenario.app.grace_period_s
    return found


def within(at: tuple[int, int] | None, earliest_ns: int, late_ns: int = LATE_NS) -> None:
    """It may have been then, and was not later than a busy machine explains."""
    assert at is not None
    assert at[1] >= earliest_ns
    assert at[0] <= earliest_ns + late_ns
