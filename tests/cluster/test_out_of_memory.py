"""What the kernel ends for want of memory, while a preStop hook runs, on a real kubelet."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_drainwatch import App, Scenario, Trial
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.pod.ending import EndedBy, PreStopOutcome
from pytest_drainwatch.core.scenario import PreStop
from pytest_drainwatch.workload import manifests
from tests.cluster.endings import FEW

pytestmark = pytest.mark.cluster

# One process larger than the probe, and many that are smaller: the kernel takes the largest.
GLUTTON = "x = bytearray(10**9)"
CROWD = """
import os, time
for n in range(400):
    if os.fork() == 0:
        x = bytearray(2 * 2**20)
        time.sleep(60)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    real = manifests._container

    def container(app: App, image: str) -> manifests.Manifest:
        memory = {"memory": "96Mi"}
        return {**real(app, image), "resources": {"limits": memory, "requests": memory}}

    monkeypatch.setattr(manifests, "_container", container)


def hooked(name: str, script: str) -> Scenario:
    app = App(
        drain_ns=NS_PER_S,
        grace_period_s=6,
        pre_stop=PreStop(exec=("python3", "-c", script)),
    )
    return Scenario(app=app, flows=FEW, settle_ns=NS_PER_S, name=name)


def test_the_kernel_takes_the_probe(drainwatch: Callable[[Scenario], Trial]) -> None:
    trial = drainwatch(hooked("oom-of-the-probe", CROWD))
    (end,) = trial.pod_ends
    assert (end.ended_by, end.exit_code) == (EndedBy.OOM_KILLED, 137)
    assert end.pre_stop is None, "SIGTERM never came, so nothing says how the hook fared"
    assert trial.tcp.severed == FEW.tcp


def test_the_kernel_takes_the_hook_and_the_probe_drains(
    drainwatch: Callable[[Scenario], Trial],
) -> None:
    """The container's status says OOMKilled all the same, with exit code 0: it is no OOM kill.

    With cgroup v2 the kubelet has the kernel take the whole container: then it is one.
    """
    trial = drainwatch(hooked("oom-of-the-hook", GLUTTON))
    (end,) = trial.pod_ends
    if end.exit_code == 137:
        assert end.ended_by is EndedBy.OOM_KILLED
        return
    assert (end.ended_by, end.exit_code, end.reason) == (EndedBy.EXIT, 0, "OOMKilled")
    assert end.pre_stop is PreStopOutcome.FAILED
    assert trial.tcp.drained == FEW.tcp
